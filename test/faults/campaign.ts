/**
 * `make faults`: whatever fails at any failpoint of the agent, a node ends as if nothing had happened. The failpoints
 * are those that an undisturbed run passes; each is combined with each fault. Meanwhile agents keep their promises, by
 * the record of the cluster. Ends with `N passed, N failed`.
 */
import { appendFileSync, mkdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { openPassed } from '../../build/campaigns.ts'
import { linesOf } from '../kit/recorded/findings.ts'
import { installNoFsyncAgent } from './no-fsync-control.ts'
import { openFaultCluster, type FaultCluster } from './fault-cluster.ts'
import { faultNames, type FaultName } from './fault-names.ts'
import type { Runner } from './runner.ts'
import { workloadNames, workloads, type WorkloadName } from './workloads.ts'
import { runSchedule, type TrialEnvironment } from './schedule.ts'
import { allCases, caseName, sample, sampleWithRegressions, type Case } from './matrix.ts'
import { deviationsOf, type Outcome } from './verdict.ts'
import { createTrials, type Expected, type Result, type Trials } from './trial.ts'

const usage = `usage: node test/faults/campaign.ts [--runners N] [--sample N] [--shift N] [--minutes N] [--rest] [--workload NAME] [--fault NAME] [--point NAME#N] [--keep]

  --runners N      nodes under test at the same time (default 3), plus one for the census. Many cases with the API server
                   down run on a second cluster with two more nodes
  --sample N       run only N cases, spread evenly; --shift N selects others
  --minutes N      start no case after N minutes; the cases up to then are spread over all
  --rest           skip the cases that have passed on these sources before, as a file of the cache says
  --workload, --fault, --point   run only these: ${workloadNames.join(', ')}; ${faultNames.join(', ')}
  --list           only print the failpoints
  --keep           leave the sandbox up (SANDBOX=name, default faults)
`

/** Power cuts that the agent without fsync may survive before the campaign counts as blind. */
const controlAttempts = 8
const logFile = join(import.meta.dirname, '..', '..', 'dist', 'faults.log')
const startedMs = Date.now()

function log(text: string): void {
  const line = `+${((Date.now() - startedMs) / 1000).toFixed(1).padStart(6)} s  ${text}`
  console.log(line)
  appendFileSync(logFile, `${line}\n`)
}

/** Runs each workload undisturbed, twice: a difference between the two would later be blamed on a fault. */
async function recordBaseline(
  { runners }: FaultCluster,
  trials: Trials,
  names: readonly WorkloadName[],
): Promise<Expected> {
  const expected: Partial<Record<WorkloadName, Expected[WorkloadName]>> = {}
  for (const workload of names) {
    const outcomes: Outcome[] = []
    let points: readonly string[] = []
    for (const runner of [runners[0], runners.at(-1)] as Runner[]) {
      const number = trials.nextRun()
      await runner.prepare(workload, number)
      runner.agent.setFailpoint(number, 'none', '-')
      await runner.applySpec()
      outcomes.push(await runner.awaitOutcome())
      points = runner.agent.passed(number)
      await runner.cleanUp(false)
    }
    const [one, other] = outcomes as [Outcome, Outcome]
    const deviations = deviationsOf(one, other, false)
    if (deviations.length > 0)
      throw new Error(`two undisturbed runs of ${workload} ended differently: ${deviations.join('; ')}`)
    if (one.boots !== workloads[workload].boots) throw new Error(`${workload}: the host booted ${one.boots} times`)
    expected[workload] = { points, outcome: one }
    log(`${workload} (${workloads[workload].what}): ${one.lines.length} steps, ${points.length} failpoints`)
  }
  return expected as Expected
}

/** Whether the campaign catches an agent that does not wait for the disk, by power cuts right after journal writes. */
async function isNoFsyncDetected(
  cluster: FaultCluster,
  trials: Trials,
  expected: Expected,
  workload: WorkloadName,
): Promise<boolean> {
  log('negative control, an agent without the fsync of its journal:')
  const restoreAgent = await installNoFsyncAgent(cluster.box)
  const points = expected[workload].points.filter((point) => point.startsWith('fsync:agent/#'))
  try {
    for (const point of sample(points, controlAttempts, 1)) {
      const one: Case = { workload, fault: 'power cut', point }
      const { verdict, why, durationMs } = await trials.single(cluster.runners[0] as Runner, one, expected)
      log(
        `${verdict === 'failed' ? 'caught' : 'not caught'}: ${workload}, power cut at ${point} ` +
          `(${(durationMs / 1000).toFixed(1)} s)`,
      )
      for (const reason of why) log(`      ${reason}`)
      if (verdict === 'failed') return true
    }
    return false
  } finally {
    await restoreAgent()
  }
}

/** How many promises were broken, whatever the nodes ended as. */
async function brokenPromises(clusters: readonly FaultCluster[]): Promise<number> {
  let broken = 0
  for (const { box, recording } of clusters) {
    const timelineFile = `${logFile}.${box.name}-timeline`
    const findings = await recording.judge(timelineFile)
    for (const line of linesOf(findings)) log(line)
    const failed = findings.filter(({ violations }) => violations.length > 0)
    if (failed.length > 0) log(`failed: ${failed.map(({ name }) => name).join(', ')}; the timeline is ${timelineFile}`)
    broken += failed.length
  }
  return broken
}

const commandOf = ({ workload, fault, point }: Case): string =>
  `node test/faults/campaign.ts --runners 1 --workload ${workload} --fault '${fault}' --point ${point}`

async function main(): Promise<number> {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean', default: false } as const
  const options = {
    runners: text,
    sample: text,
    shift: text,
    minutes: text,
    rest: flag,
    workload: text,
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
  const only = { workload: values.workload, fault: values.fault, point: values.point } as Partial<Case>
  const names = workloadNames.filter((name) => only.workload === undefined || name === only.workload)
  log('booting hosts with their own disks')
  const name = process.env['SANDBOX'] ?? 'faults'
  const runners = Number(values.runners ?? 3)
  const cluster = await openFaultCluster(name, runners, values.keep)
  const clusters = [cluster]
  const trials = createTrials(cluster, logFile)
  const count = { passed: 0, failed: 0, 'not reached': 0 }
  let isControlDetected: boolean | undefined
  const perFault = new Map<FaultName, number>()
  try {
    const expected = await recordBaseline(cluster, trials, names)
    const points = Object.fromEntries(names.map((name) => [name, expected[name].points])) as Record<
      WorkloadName,
      readonly string[]
    >
    if (values.list) {
      for (const name of names) console.log(`${name}: ${points[name].join(' ')}`)
      return 0
    }
    const record = await openPassed('faults')
    if (Object.values(only).every((part) => part === undefined)) record.setTotal(allCases(points).length)
    const all = allCases(points, only).filter((one) => !values.rest || !record.has(caseName(one)))
    const cases = sampleWithRegressions(all, Number(values.sample ?? all.length), Number(values.shift ?? 0))
    log(`${cases.length} of ${all.length} cases on ${cluster.runners.length} nodes`)
    const report = (one: Case, result: Result): void => {
      count[result.verdict]++
      if (result.verdict === 'passed') perFault.set(one.fault, (perFault.get(one.fault) ?? 0) + 1)
      const done = count.passed + count.failed + count['not reached']
      const seconds = (result.durationMs / 1000).toFixed(1)
      log(`${done}/${cases.length} ${result.verdict}: ${caseName(one)} (${seconds} s)`)
      if (result.verdict === 'passed') record.add(caseName(one))
      for (const reason of result.why) log(`      ${reason}`)
      // whoever has only the summary of all tests must see what it was
      if (result.verdict === 'failed') console.log(`again: ${commandOf(one)} # ${result.why.join('; ')}`)
    }
    const openSecondCluster = async (runnerCount: number): Promise<TrialEnvironment> => {
      const other = await openFaultCluster(`${name}-api`, runnerCount, values.keep)
      clusters.push(other)
      return { cluster: other, trials: createTrials(other, `${logFile}.api`) }
    }
    const minutes = values.minutes === undefined ? undefined : Number(values.minutes)
    await runSchedule(cases, { environment: { cluster, trials }, openSecondCluster, minutes, expected, report })
    count.failed += await brokenPromises(clusters) // the control breaks some
    if (only.point === undefined)
      isControlDetected = await isNoFsyncDetected(cluster, trials, expected, names[0] as WorkloadName)
  } catch (error) {
    log(`stopped: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`) // the end may fail too
    throw error
  } finally {
    for (const each of clusters) await each.close()
  }
  for (const fault of faultNames) log(`${fault}: ${perFault.get(fault) ?? 0} cases passed`)
  if (count['not reached'] > 0)
    log(`${count['not reached']} failpoints were not reached: the agent merged two writes or made one more`)
  if (isControlDetected === false)
    log('failed: the agent without fsync was not caught, so the power cuts above prove nothing')
  const failed = count.failed + (isControlDetected === false ? 1 : 0)
  console.log(`${count.passed + (isControlDetected ? 1 : 0)} passed, ${failed} failed`)
  return failed === 0 && count.passed > 0 ? 0 : 1
}

process.exitCode = await main()
