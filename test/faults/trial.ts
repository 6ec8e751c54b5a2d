/** One workload on one node with one fault at one point, and the verdict. */
import { writeFileSync } from 'node:fs'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { terminatesHost, injectFault, type FaultName } from './faults.ts'
import type { Runner } from './runner.ts'
import type { WorkloadName } from './workloads.ts'
import type { Case } from './matrix.ts'
import { deviationsOf, type Outcome } from './verdict.ts'

export type Result = {
  readonly verdict: 'passed' | 'failed' | 'not met'
  readonly why: readonly string[]
  readonly durationMs: number
}
/** What each workload passes and how it ends when nothing goes wrong. */
export type Expected = Readonly<Record<WorkloadName, { readonly points: readonly string[]; readonly outcome: Outcome }>>

/** A workload at its point, or past its end. */
export type PendingTrial = {
  readonly runner: Runner
  readonly testCase: Case
  readonly hasHitPoint: boolean
  readonly setupError?: string
  readonly startedMs: number
}

export type Trials = {
  /** A number that no run on this sandbox had. */
  nextRun(): number
  /** Begins the workload and waits until the agent is at the point. */
  runToPoint(runner: Runner, testCase: Case): Promise<PendingTrial>
  /** After the fault: waits for the end, judges it, and makes the node ready for another workload. */
  judge(pending: PendingTrial, expected: Expected): Promise<Result>
  /** All of it, for a fault of the node alone. */
  single(runner: Runner, testCase: Case, expected: Expected): Promise<Result>
}

/** `evidence` is what the names of files begin with that keep what was seen of a failure. */
export function createTrials(box: Sandbox, evidence: string): Trials {
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
        return { runner, testCase, hasHitPoint: await runner.waitForPoint(), startedMs }
      } catch (error) {
        return { runner, testCase, hasHitPoint: false, setupError: messageOf(error), startedMs }
      }
    },
    async judge({ runner, testCase, hasHitPoint, setupError, startedMs }, expected) {
      const hasHostEnded = hasHitPoint && terminatesHost(testCase.fault)
      const why =
        setupError === undefined
          ? await deviationsAtEnd(runner, expected[testCase.workload].outcome, hasHostEnded)
          : [setupError]
      const verdict = why.length > 0 ? 'failed' : hasHitPoint ? 'passed' : 'not met'
      if (verdict === 'failed') {
        const file = `${evidence}.${runner.node}-${run}`
        writeFileSync(file, await runner.evidence())
        why.push(`more in ${file}`)
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

/** Copies for people follow the journal, on a busy machine some seconds later; all else is judged as it stands. */
const recordsTimeoutMs = 10_000

async function deviationsAtEnd(runner: Runner, expected: Outcome, hasHostEnded: boolean): Promise<string[]> {
  const untilMs = Date.now() + recordsTimeoutMs
  try {
    for (;;) {
      const deviations = deviationsOf(await runner.awaitOutcome(), expected, hasHostEnded)
      if (Date.now() > untilMs || deviations.length === 0 || !deviations.every((fault) => fault.startsWith('files: ')))
        return deviations
    }
  } catch (error) {
    return [messageOf(error)]
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
