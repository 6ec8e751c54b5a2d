/** `kubectl skyhook status` as it is shipped, with 1,000 nodes and 20 Skyhooks on a real API server. */
import { spawn } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { skyhookScope } from '../../src/lease/names.ts'
import { newLease } from '../../src/lease/slot.ts'
import * as keys from '../../src/schemas/annotations.ts'
import { sha256Hex } from '../../src/schemas/canonical-json.ts'
import type { Skyhook, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { appliedHash } from '../../src/stages/model/package-inputs.ts'
import { slowness } from '../kit/machine-speed.ts'
import { buildTool, peakRss, type ToolProgram } from '../kit/tool/tool-program.ts'
import { type CensusCluster, leasesPath, startCensusCluster } from './census-cluster.ts'
import { borrowChartCluster } from './shared-cluster.ts'

const nodeCount = 1_000
const names = Array.from({ length: nodeCount }, (_, at) => `ip-10-0-${at}.eu-central-1.compute.internal`)
const skyhookNames = Array.from({ length: 20 }, (_, at) => `host-tuning-${at}`)
const packageNames = ['kernel-settings', 'crash-dumps', 'drivers', 'monitoring']
const spec: SkyhookSpec = {
  interruptionBudget: { percent: 5 },
  packages: Object.fromEntries(
    packageNames.map((name) => [name, { version: '1.0.0', image: `registry.example.com/packages/${name}` }]),
  ),
}
const mergePatch = 'application/merge-patch+json'
const since = new Date(Date.now() - 300_000).toISOString()
const message = 'the budget of 50 nodes is used up'

let census: CensusCluster
let tool: ToolProgram

const inParallel = async (count: number, task: (at: number) => Promise<void>): Promise<void> => {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) await task(next++)
  }
  await Promise.all(Array.from({ length: 16 }, worker))
}

/** What an agent publishes: half of the nodes are complete, every twentieth works, the others wait. */
function annotationsOf(at: number, skyhook: string, nodeUID: string): Record<string, string> {
  const status = at % 2 === 0 ? 'complete' : at % 20 === 1 ? 'in_progress' : 'waiting'
  const isDone = status === 'complete'
  const state = JSON.stringify(
    Object.fromEntries(
      packageNames.map((name) => [
        `${name}|1.0.0`,
        {
          name,
          version: '1.0.0',
          image: `registry.example.com/packages/${name}`,
          stage: isDone ? 'config' : 'apply',
          state: isDone ? 'complete' : 'in_progress',
        },
      ]),
    ),
  )
  const companion = { v: 1, rev: at, sha256: sha256Hex(state), nodeUID, ...(isDone && { applied: appliedHash(spec) }) }
  return {
    [keys.nodeStateKey(skyhook)]: state,
    [keys.statusKey(skyhook)]: status,
    [keys.journalKey(skyhook)]: JSON.stringify(companion),
    ...(status === 'waiting' && {
      [keys.reasonKey(skyhook)]: JSON.stringify({ reason: 'WaitingForSlot', message, since }),
    }),
  }
}

/** Nodes have lists of images, which a screen must not read. */
const images = Array.from({ length: 50 }, (_, at) => ({
  names: [`registry.example.com/some/image-${at}@sha256:${'0'.repeat(64)}`, `registry.example.com/some/image-${at}:1`],
  sizeBytes: 123_456_789 + at,
}))

beforeAll(async () => {
  census = await startCensusCluster(await borrowChartCluster())
  const { admin } = census
  await inParallel(nodeCount, async (at) => {
    const name = names[at] ?? ''
    await census.createNode(name)
    const path = `/api/v1/nodes/${name}`
    const { metadata } = await admin.json<{ metadata: { uid: string } }>('PATCH', `${path}/status`, {
      body: { status: { images } },
      contentType: mergePatch,
    })
    const annotations = Object.assign({}, ...skyhookNames.map((skyhook) => annotationsOf(at, skyhook, metadata.uid)))
    await admin.json('PATCH', path, { body: { metadata: { annotations } }, contentType: mergePatch })
  })
  await inParallel(skyhookNames.length, async (at) => {
    const { metadata }: Skyhook = await census.apply(skyhookNames[at] ?? '', spec)
    for (let index = 0; index < 20; index++) {
      const node = { name: names[index * 20 + 1] ?? '', uid: `uid-${index}`, bootId: '' }
      const progress = { phase: 'working', generation: 1, packages: [] } as const
      const body = newLease(skyhookScope(metadata), { index }, node, progress, Date.now())
      await admin.json('POST', leasesPath, { body })
    }
  })
  tool = await buildTool({ KUBECONFIG: census.cluster.server.kubeconfig })
}, 600_000)
afterAll(async () => {
  await tool.remove()
  await census.stop()
})

test('the first screen is there within 1.5 s on a quiet machine, in at most 150 MiB', async () => {
  const runs = []
  const slow = [slowness()]
  for (let count = 0; count < 7; count++) {
    runs.push(await tool.run('status'))
    slow.push(slowness())
  }
  for (const { code, stdout, stderr } of runs) {
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    for (const name of skyhookNames)
      expect(stdout).toMatch(new RegExp(String.raw`${name} .*500 of 1000 nodes complete \(50%\)`))
  }
  // Whatever else the machine does only adds: the best run is what the tool takes, on the machine as it was then.
  const quietMs = runs.map(({ firstOutputMs = Infinity }, at) => {
    const [before = 1, after = 1] = slow.slice(at, at + 2)
    return firstOutputMs / ((before + after) / 2)
  })
  const bestMs = Math.min(...quietMs)
  const peakMiB = Math.max(...runs.map(({ peakRssMiB = Infinity }) => peakRssMiB))
  const all = runs.map(({ firstOutputMs = 0 }) => Math.round(firstOutputMs)).join(' ')
  const factors = slow.map((factor) => factor.toFixed(2)).join(' ')
  const text = `best ${Math.round(bestMs)} ms of ${all}; machine ${factors} times slower than a quiet one`
  console.log(`first screen: ${text}; peak ${peakMiB.toFixed(1)} MiB`)
  expect(bestMs, text).toBeLessThan(1_500)
  expect(peakMiB).toBeLessThan(150)
}, 180_000)

test('a screen that is watched is drawn at most once a second, however much changes, and shows the end', async () => {
  // in a pseudo-terminal: elsewhere each change is a line
  const child = spawn('script', ['-qec', `${tool.file} status --watch`, '/dev/null'], {
    env: {
      PATH: process.env['PATH'],
      HOME: '/nonexistent',
      TERM: 'xterm',
      NO_COLOR: '1',
      KUBECONFIG: census.cluster.server.kubeconfig,
    },
  })
  let screen = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (screen += text))
  const drawn = (): number => screen.split('\u001b[H\u001b[J').length - 1
  while (drawn() < 2) await sleep(50)
  const startMs = performance.now()
  const before = drawn()
  const [first = ''] = skyhookNames
  let changes = 0
  await inParallel(nodeCount, async (at) => {
    const annotations = { [keys.statusKey(first)]: 'erroring' }
    await census.annotate(names[at] ?? '', annotations)
    changes++
  })
  const seconds = (performance.now() - startMs) / 1000
  const count = drawn() - before
  const peakMiB = (await peakRss(await toolUnder(child.pid ?? 0))) ?? Infinity
  while (!screen.slice(screen.lastIndexOf('\u001b[H\u001b[J')).includes('1000 erroring')) await sleep(100)
  child.kill('SIGTERM')
  console.log(`${changes} changes in ${seconds.toFixed(1)} s: drawn ${count} times; peak ${peakMiB.toFixed(1)} MiB`)
  expect(count).toBeGreaterThan(0)
  expect(count).toBeLessThanOrEqual(Math.ceil(seconds) + 1)
  expect(peakMiB).toBeLessThan(150)
}, 180_000)

/** The tool's own process below `script`. */
async function toolUnder(pid: number): Promise<number> {
  const children = (await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ').filter(Boolean).map(Number)
  for (const child of children) {
    const line = await readFile(`/proc/${child}/cmdline`, 'utf8')
    return line.includes('kubectl-skyhook\0status') && !line.startsWith('sh') ? child : await toolUnder(child)
  }
  throw new Error(`no tool below process ${pid}`)
}
