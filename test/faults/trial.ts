/** One workload on one node with one fault at one failpoint, and the verdict. */
import { writeFileSync } from 'node:fs'
import type { FaultCluster } from './fault-cluster.ts'
import type { FaultName } from './fault-names.ts'
import { terminatesHost, injectFault } from './faults.ts'
import { faultsOf } from './recorded-faults.ts'
import type { Runner } from './runner.ts'
import type { WorkloadName } from './workloads.ts'
import type { Case } from './matrix.ts'
import { deviationsOf, type Outcome } from './verdict.ts'

export type Result = {
  readonly verdict: 'passed' | 'failed' | 'not reached'
  readonly why: readonly string[]
  readonly durationMs: number
}
/** The failpoints and the outcome of each workload without a fault. */
export type Expected = Readonly<Record<WorkloadName, { readonly points: readonly string[]; readonly outcome: Outcome }>>

/** A workload stopped at its failpoint, or complete. */
export type PendingTrial = {
  readonly runner: Runner
  readonly testCase: Case
  readonly hasHitPoint: boolean
  readonly setupError?: string
  readonly startedMs: number
  /** The agent was at its failpoint, or the workload was complete. */
  readonly stoppedMs: number
}

export type Trials = {
  /** A run number that this sandbox has not used. */
  nextRun(): number
  /** Starts the workload and waits until the agent is at the failpoint. */
  runToPoint(runner: Runner, testCase: Case): Promise<PendingTrial>
  /** After the fault: waits for completion, judges the outcome and restores the node. */
  judge(pending: PendingTrial, expected: Expected): Promise<Result>
  /** A whole trial, for a fault that affects one node. */
  single(runner: Runner, testCase: Case, expected: Expected): Promise<Result>
}

/** `evidence` is the prefix of the files with the evidence of failures. */
export function createTrials({ box, recording }: Pick<FaultCluster, 'box' | 'recording'>, evidence: string): Trials {
  let run = Math.floor(Date.now() / 1000) % 1_000_000
  const trials: Trials = {
    nextRun: () => ++run,
    async runToPoint(runner, testCase) {
      const startedMs = Date.now()
      const number = trials.nextRun()
      try {
        await runner.prepare(testCase.workload, number)
        runner.agent.setFailpoint(number, testCase.fault === 'agent killed' ? 'kill' : 'stop', testCase.point)
        await runner.applySpec()
        const hasHitPoint = await runner.waitForPoint()
        return { runner, testCase, hasHitPoint, startedMs, stoppedMs: Date.now() }
      } catch (error) {
        return { runner, testCase, hasHitPoint: false, setupError: messageOf(error), startedMs, stoppedMs: startedMs }
      }
    },
    async judge({ runner, testCase, hasHitPoint, setupError, startedMs, stoppedMs }, expected) {
      const overMs = Date.now()
      const hasHostEnded = hasHitPoint && terminatesHost(testCase.fault)
      const why =
        setupError === undefined
          ? await deviationsAtEnd(runner, expected[testCase.workload].outcome, hasHostEnded)
          : [setupError]
      const times = { hitMs: stoppedMs, overMs, endedMs: Date.now() }
      if (hasHitPoint || setupError !== undefined)
        recording.registerFaults(faultsOf(testCase.fault, runner.node, times))
      const verdict = why.length > 0 ? 'failed' : hasHitPoint ? 'passed' : 'not reached'
      if (verdict === 'failed') {
        const file = `${evidence}.${runner.node}-${run}`
        writeFileSync(file, await runner.evidence())
        why.push(`evidence in ${file}`)
      }
      await runner.cleanUp(verdict === 'failed')
      return { verdict, why, durationMs: Date.now() - startedMs }
    },
    async single(runner, testCase, expected) {
      const pending = await trials.runToPoint(runner, testCase)
      if (!pending.hasHitPoint) return await trials.judge(pending, expected)
      try {
        await injectFault(testCase.fault as Exclude<FaultName, 'API server down'>, {
          box,
          node: runner.node,
          agent: runner.agent,
        })
      } catch (error) {
        return await trials.judge({ ...pending, setupError: messageOf(error) }, expected)
      }
      return await trials.judge(pending, expected)
    },
  }
  return trials
}

/** Published records follow the journal, some seconds later on a busy machine; all else is judged at once. */
const recordsTimeoutMs = 10_000

async function deviationsAtEnd(runner: Runner, expected: Outcome, hasHostEnded: boolean): Promise<string[]> {
  let untilMs: number | undefined // counts from the first look: a host may have to boot before that
  try {
    for (;;) {
      const deviations = deviationsOf(await runner.awaitOutcome(), expected, hasHostEnded)
      untilMs ??= Date.now() + recordsTimeoutMs
      if (Date.now() > untilMs || deviations.length === 0 || !deviations.every((fault) => fault.startsWith('files: ')))
        return deviations
    }
  } catch (error) {
    return [messageOf(error)]
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
