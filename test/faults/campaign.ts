/**
 * `make torture`: whatever goes wrong, wherever the agent stands, a node ends as if nothing had happened. The points are those that an
 * undisturbed run passes; each meets each fault. Ends with `N passed, N failed`.
 */
import { appendFileSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { installCarelessAgent } from './no-fsync-agent.ts'
import { openBench, type Bench } from './runner-host.ts'
import { faultNames, type FaultName } from './faults.ts'
import type { Lane } from './runner.ts'
import { lifeNames, lives, type LifeName } from './workloads.ts'
import { goThrough, type Place } from './schedule.ts'
import { allCases, isSame, passedIn, sample, sampleWithKnown, type Case } from './matrix.ts'
import { faultsOf, type Outcome } from './verdict.ts'
import { createTrials, type Expected, type Result, type Trials } from './trial.ts'

const usage = `usage: node test/faults/campaign.ts [--lanes N] [--sample N] [--shift N] [--minutes N] [--done FILE] [--life NAME] [--fault NAME] [--point NAME#N] [--keep]

  --lanes N    nodes that are tortured at the same time (default 3); one more counts for them. Of many cases, those with the API server
               down are gone through on a cluster of their own beside it, of two nodes more
  --sample N   only so many of all cases, spread evenly; --shift N takes others
  --minutes N  begins no case after that time; what was tortured until then is spread over all there is
  --done FILE  without what passed in that log of an earlier run; more than once for several
  --life, --fault, --point   only these: ${lifeNames.join(', ')}; ${faultNames.join(', ')}
  --list       only prints the crash points
  --keep       leaves the sandbox up (SANDBOX=name, default torture)
`

/** Tries with the careless agent until it is found out. */
const controls = 8
const logFile = join(import.meta.dirname, '..', '..', 'dist', 'torture.log')
const startedMs = Date.now()

function say(text: string): void {
  const line = `+${((Date.now() - startedMs) / 1000).toFixed(1).padStart(6)} s  ${text}`
  console.log(line)
  appendFileSync(logFile, `${line}\n`)
}

/** Each life undisturbed, twice: what differs between the two would be blamed on faults later. */
async function livedInPeace({ lanes }: Bench, trials: Trials, names: readonly LifeName[]): Promise<Expected> {
  const expected: Partial<Record<LifeName, Expected[LifeName]>> = {}
  for (const life of names) {
    const outcomes: Outcome[] = []
    let points: readonly string[] = []
    for (const lane of [lanes[0], lanes.at(-1)] as Lane[]) {
      const number = trials.nextRun()
      await lane.begin(life, number)
      lane.agent.order(number, 'none', '-')
      await lane.tell()
      outcomes.push(await lane.end())
      points = lane.agent.passed(number)
      await lane.tidy(false)
    }
    const [one, other] = outcomes as [Outcome, Outcome]
    const faults = faultsOf(one, other, false)
    if (faults.length > 0) throw new Error(`two undisturbed runs of ${life} end differently: ${faults.join('; ')}`)
    if (one.boots !== lives[life].boots) throw new Error(`${life}: the host booted ${one.boots} times`)
    expected[life] = { points, outcome: one }
    say(`${life} (${lives[life].what}): ${one.lines.length} steps, ${points.length} crash points`)
  }
  return expected as Expected
}

/** Power cuts right after the journal was written, with an agent that did not wait for the disk: one of them at least must show. */
async function carelessnessShows(bench: Bench, trials: Trials, expected: Expected, life: LifeName): Promise<boolean> {
  say('the same agent without the fsync of its journal:')
  const putBack = await installCarelessAgent(bench.box)
  const points = expected[life].points.filter((point) => point.startsWith('fsync:agent/#'))
  try {
    for (const point of sample(points, controls, 1)) {
      const one: Case = { life, fault: 'power cut', point }
      const { is, why, tookMs } = await trials.alone(bench.lanes[0] as Lane, one, expected)
      say(`${is === 'failed' ? 'it shows' : 'unnoticed'}: ${life}, power cut at ${point} (${(tookMs / 1000).toFixed(1)} s)`)
      for (const reason of why) say(`      ${reason}`)
      if (is === 'failed') return true
    }
    return false
  } finally {
    await putBack()
  }
}

async function main(): Promise<number> {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean', default: false } as const
  const options = {
    lanes: text,
    sample: text,
    shift: text,
    minutes: text,
    done: { type: 'string', multiple: true } as const,
    life: text,
    fault: text,
    point: text,
    list: flag,
    keep: flag,
    help: flag,
  }
  const { values } = parseArgs({ options })
  if (values.help) {
    console.log(usage)
    return 0
  }
  mkdirSync(dirname(logFile), { recursive: true })
  rmSync(logFile, { force: true })
  const only = { life: values.life, fault: values.fault, point: values.point } as Partial<Case>
  const names = lifeNames.filter((name) => only.life === undefined || name === only.life)
  say('booting hosts with disks of their own')
  const name = process.env['SANDBOX'] ?? 'torture'
  const lanes = Number(values.lanes ?? 3)
  const bench = await openBench(name, lanes, values.keep)
  const benches = [bench]
  const trials = createTrials(bench.box, logFile)
  const count = { passed: 0, failed: 0, 'not met': 0 }
  let isControlled: boolean | undefined
  const perFault = new Map<FaultName, number>()
  try {
    const expected = await livedInPeace(bench, trials, names)
    const points = Object.fromEntries(names.map((name) => [name, expected[name].points])) as Record<LifeName, readonly string[]>
    if (values.list) {
      for (const name of names) console.log(`${name}: ${points[name].join(' ')}`)
      return 0
    }
    const passed = (values.done ?? []).flatMap((file) => passedIn(readFileSync(file, 'utf8')))
    const all = allCases(points, only).filter((one) => !passed.some((other) => isSame(one, other)))
    const cases = sampleWithKnown(all, Number(values.sample ?? all.length), Number(values.shift ?? 0))
    say(`${cases.length} of ${all.length} cases on ${bench.lanes.length} nodes`)
    const tell = (one: Case, result: Result): void => {
      count[result.is]++
      if (result.is === 'passed') perFault.set(one.fault, (perFault.get(one.fault) ?? 0) + 1)
      const done = count.passed + count.failed + count['not met']
      say(`${done}/${cases.length} ${result.is}: ${one.life}, ${one.fault} at ${one.point} (${(result.tookMs / 1000).toFixed(1)} s)`)
      for (const reason of result.why) say(`      ${reason}`)
    }
    const openAside = async (laneCount: number): Promise<Place> => {
      const other = await openBench(`${name}-api`, laneCount, values.keep)
      benches.push(other)
      return { bench: other, trials: createTrials(other.box, `${logFile}.api`) }
    }
    const minutes = values.minutes === undefined ? undefined : Number(values.minutes)
    await goThrough(cases, { place: { bench, trials }, openAside, minutes, expected, tell })
    if (only.point === undefined) isControlled = await carelessnessShows(bench, trials, expected, names[0] as LifeName)
  } finally {
    for (const each of benches) await each.close()
  }
  for (const fault of faultNames) say(`${fault}: ${perFault.get(fault) ?? 0} points passed`)
  if (count['not met'] > 0) say(`${count['not met']} points were not met in their run: the agent joined two writes, or made one more`)
  if (isControlled === false)
    say('failed: an agent that does not wait for the disk was not found out, so the power cuts above prove nothing')
  const failed = count.failed + (isControlled === false ? 1 : 0)
  console.log(`${count.passed + (isControlled ? 1 : 0)} passed, ${failed} failed`)
  return failed === 0 && count.passed > 0 ? 0 : 1
}

process.exitCode = await main()
