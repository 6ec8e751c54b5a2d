/**
 * `make measure-census`: what the census costs with 1,000 nodes and 50 Skyhooks on a real API server, each figure
 * beside its promise. CPU is that of the census process alone, in shares of a core, so a busy machine makes it little
 * worse. Exits with 1 if a promise is not met.
 */
import { readFile } from 'node:fs/promises'
import { cpus, loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createScreen } from '../demo/screen.ts'
import { statusOf } from '../src/census/model/skyhook-status.ts'
import type { Skyhook } from '../src/schemas/skyhook.ts'
import {
  cpuSeconds,
  skyhooksPath,
  startCensusCluster,
  type CensusCluster,
  type RunningCensus,
} from '../test/cluster/census-cluster.ts'
import { startInstalledCluster } from '../test/cluster/chart-cluster.ts'
import { peakRss } from '../test/kit/tool/tool-program.ts'
import { createFleet, leaseRenewalsPerSecond, type Fleet } from './census-fleet.ts'
import { meetsTarget, reportOf, type Figure } from './figure.ts'

const usage = `usage: node bench/census.ts [--nodes N] [--skyhooks N] [--wide N] [--changes N] [--seconds N]
                             [--profile DIR]

  --nodes N     (default 1000)
  --skyhooks N  (default 50)
  --wide N      how many Skyhooks select every node; the others select a tenth each (default 10)
  --changes N   changes of a node's status in a second of a rollout (default 100)
  --seconds N   how long each of the two phases is measured (default 60)
  --profile DIR write a CPU profile of the census there, which costs time of its own
`

const settleMs = 15_000
const objectIntervalMs = 2_000
const countTimeoutMs = 120_000

/** CPU time and waiting for a processor, in ms, of a process so far. */
type Usage = { readonly atMs: number; readonly cpuMs: number; readonly waitedMs: number }

async function usageOf(pid: number): Promise<Usage> {
  const [, waitedNs = '0'] = (await readFile(`/proc/${pid}/schedstat`, 'utf8')).split(' ')
  return { atMs: performance.now(), cpuMs: (await cpuSeconds(pid)) * 1000, waitedMs: Number(waitedNs) / 1e6 }
}

/**
 * The share of a core between two moments. If the server took fewer changes than wanted, it is raised in proportion: a
 * census that is shown more at once counts less often for each change, so this is the most that it would have been. A
 * bound that is missed only then has to be measured on a machine with more time.
 */
function cpuFigure(
  name: string,
  target: number,
  [before, after]: readonly [Usage, Usage],
  rate: { readonly wanted: number; readonly done: number; readonly of: string },
): Figure {
  const ms = after.atMs - before.atMs
  const percent = (100 * (after.cpuMs - before.cpuMs)) / ms
  const raise = Math.max(1, rate.wanted / rate.done)
  const waited = ((100 * (after.waitedMs - before.waitedMs)) / ms).toFixed(1)
  return {
    name,
    unit: '% of a core',
    target,
    measured: percent * raise,
    detail:
      `${percent.toFixed(2)} % with ${rate.done.toFixed(1)} of ${rate.wanted.toFixed(1)} ${rate.of} a second; ` +
      `waited for a processor ${waited} % of ${(ms / 1000).toFixed(0)} s` +
      (raise > 1.1 ? '; raised in proportion, as the machine was too busy for more' : ''),
  }
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      nodes: { type: 'string', default: '1000' },
      skyhooks: { type: 'string', default: '50' },
      wide: { type: 'string', default: '10' },
      changes: { type: 'string', default: '100' },
      seconds: { type: 'string', default: '60' },
      profile: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const [nodes = 0, skyhooks = 0, wide = 0, changes = 0, seconds = 0] = (
    ['nodes', 'skyhooks', 'wide', 'changes', 'seconds'] as const
  ).map((key) => Number(values[key]))
  const areNumbers = [nodes, skyhooks, wide, changes, seconds].every((value) => Number.isInteger(value) && value > 0)
  if (values.help || !areNumbers || wide > skyhooks) {
    process.stderr.write(usage)
    return values.help ? 0 : 2
  }
  const screen = createScreen(process.stderr, () => performance.now())
  screen.line('starting etcd and an API server')
  const cluster = await startCensusCluster(await startInstalledCluster())
  try {
    screen.line(`creating ${nodes} nodes and ${skyhooks} Skyhooks`)
    const fleet = await createFleet(cluster, { nodes, skyhooks, wide })
    const [bare, whole] = fleet.nodeBytes.map((bytes) => (bytes / 1024).toFixed(0))
    screen.line(`a Node has ${bare} KiB, ${whole} KiB with what agents write`)
    const nodeFlags = values.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${values.profile}`]
    const figures = await measure(cluster, fleet, { changes, seconds, nodeFlags }, (text) => screen.line(text))
    const load = loadavg().map((one) => one.toFixed(1))
    console.log(`\n${reportOf(figures)}\n\nmachine: ${cpus().length} cores, load ${load.join(' ')}, ${process.version}`)
    return figures.every(meetsTarget) ? 0 : 1
  } finally {
    await cluster.stop()
  }
}

async function measure(
  cluster: CensusCluster,
  fleet: Fleet,
  {
    changes,
    seconds,
    nodeFlags,
  }: { readonly changes: number; readonly seconds: number; readonly nodeFlags: readonly string[] },
  say: (text: string) => void,
): Promise<Figure[]> {
  const { nodeNames, wideNames } = fleet
  const census = await cluster.census(nodeNames[0] ?? '', { nodeFlags })
  const startedMs = performance.now()
  await untilComplete(cluster, fleet)
  const pid = census.pid()
  if (pid === undefined) throw new Error(`the census has ended: ${census.deaths.join('; ')}`)
  const first = await usageOf(pid)
  say(
    `first count after ${((first.atMs - startedMs) / 1000).toFixed(1)} s, ${(first.cpuMs / 1000).toFixed(1)} s of CPU`,
  )

  const heartbeat = async (signal: AbortSignal): Promise<number> =>
    (await Promise.all([fleet.renewLeases(signal), fleet.reportStatus(signal)]))[0]
  const [idle, renewalsPerSecond] = await during(heartbeat, async () => {
    await sleep(settleMs)
    say(`nothing changes and nodes heartbeat, ${seconds} s`)
    const writesBefore = writesIn(census.lines)
    const before = await usageOf(pid)
    await sleep(seconds * 1000)
    const usage = [before, await usageOf(pid)] as const
    return { usage, writes: writesIn(census.lines) - writesBefore, peakMiB: await peakRss(pid) }
  })
  // without renewals, which the census is never shown: the server shall have time for what it is shown
  const [rollouts] = await during(
    async (signal) => await fleet.reportStatus(signal),
    async () => {
      say(`rollouts, ${changes} changes a second, ${seconds} s`)
      const before = await usageOf(pid)
      const enough = AbortSignal.timeout(seconds * 1000)
      const [{ done, ms }, largest] = await Promise.all([
        fleet.rollOut(changes, enough),
        largestObject(cluster, wideNames, enough),
      ])
      return { usage: [before, await usageOf(pid)] as const, perSecond: done / (ms / 1000), largest }
    },
  )
  await sleep(settleMs) // the last status is written
  const peakMiB = await peakRss(pid)
  await census.stop()
  say(`the census sent ${requestsIn(census.lines)}`)
  if (census.deaths.length > 0) throw new Error(`the census has died: ${census.deaths.join('; ')}`)
  if (peakMiB === undefined || idle.peakMiB === undefined) throw new Error('the census has no peak of its RSS')
  const megabytes = (mebibytes: number): number => (mebibytes * 2 ** 20) / 1e6
  return [
    {
      name: 'RSS, the highest of all',
      unit: 'MB',
      target: 200,
      measured: megabytes(peakMiB),
      detail: `${megabytes(idle.peakMiB).toFixed(1)} before the rollouts`,
    },
    cpuFigure('idle, nodes heartbeat', 1, idle.usage, {
      wanted: leaseRenewalsPerSecond(nodeNames.length),
      done: renewalsPerSecond,
      of: 'Lease renewals',
    }),
    { name: 'idle, writes', unit: '', target: 0, measured: idle.writes, detail: 'PUT, PATCH, POST and DELETE' },
    cpuFigure('rollouts', 20, rollouts.usage, {
      wanted: changes,
      done: rollouts.perSecond,
      of: 'changes',
    }),
    { name: 'Skyhook with 5 packages', unit: 'KiB', target: 256, ...rollouts.largest },
  ]
}

/** Runs a task while something else repeats, and says what that resolved with when it was ended. */
async function during<T, U>(
  repeat: (signal: AbortSignal) => Promise<U>,
  task: () => Promise<T>,
): Promise<readonly [result: T, repeated: U]> {
  const ended = new AbortController()
  const repeating = repeat(ended.signal)
  repeating.catch(() => {}) // it is awaited below
  const result = await task().finally(() => ended.abort())
  return [result, await repeating]
}

/** Waits until the census says that every wide Skyhook is complete on every node. */
async function untilComplete(cluster: CensusCluster, { nodeNames, wideNames }: Fleet): Promise<void> {
  const expected = `${nodeNames.length}/${nodeNames.length}`
  const endMs = performance.now() + countTimeoutMs
  for (const name of wideNames) {
    for (;;) {
      const { completeNodes } = await cluster.status(name)
      if (completeNodes === expected) break
      if (performance.now() > endMs)
        throw new Error(`${name}: expected ${expected} complete nodes, the census counted ${completeNodes}`)
      await sleep(200)
    }
  }
}

type Lines = RunningCensus['lines']

function writesIn(lines: Lines): number {
  return lines
    .flatMap((line) => (line.kind === 'requests' ? line.counts : []))
    .filter(({ verb }) => verb !== 'GET' && verb !== 'WATCH')
    .reduce((sum, { count }) => sum + count, 0)
}

/** The requests of the census by verb and code, most first. */
function requestsIn(lines: Lines): string {
  const sums = new Map<string, number>()
  for (const { verb, code, count } of lines.flatMap((line) => (line.kind === 'requests' ? line.counts : [])))
    sums.set(`${verb} ${code}`, (sums.get(`${verb} ${code}`) ?? 0) + count)
  return [...sums]
    .toSorted(([, a], [, b]) => b - a)
    .map(([what, count]) => `${count} ${what}`)
    .join(', ')
}

/** The largest Skyhook, as the API server sends it, of those that are seen every few seconds until the signal aborts. */
async function largestObject(
  { admin }: CensusCluster,
  names: readonly string[],
  signal: AbortSignal,
): Promise<Pick<Figure, 'measured' | 'detail'>> {
  let largest = { measured: 0, detail: '' }
  for (let at = 0; !signal.aborted; at++) {
    const skyhook = await admin.json<Skyhook>('GET', `${skyhooksPath}/${names[at % names.length]}`)
    const { managedFields } = skyhook.metadata as { readonly managedFields?: readonly unknown[] }
    const kibibytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value)) / 1024
    const measured = kibibytes(skyhook)
    if (measured > largest.measured) {
      const fields = kibibytes(managedFields).toFixed(0)
      largest = { measured, detail: `${statusOf(skyhook)?.status}, ${fields} KiB of it managedFields` }
    }
    await sleep(objectIntervalMs)
  }
  return largest
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error(`measuring failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`)
  process.exitCode = 1
}
