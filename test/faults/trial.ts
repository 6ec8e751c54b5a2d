/** One life on one node with one fault at one point, and the verdict. */
import { writeFileSync } from 'node:fs'
import type { Sandbox } from '../sandbox/sandbox.ts'
import { endsTheHost, strike, type FaultName } from './faults.ts'
import type { Lane } from './runner.ts'
import type { LifeName } from './workloads.ts'
import type { Case } from './matrix.ts'
import { faultsOf, type Outcome } from './verdict.ts'

export type Result = { readonly is: 'passed' | 'failed' | 'not met'; readonly why: readonly string[]; readonly tookMs: number }
/** What each life passes and how it ends when nothing goes wrong. */
export type Expected = Readonly<Record<LifeName, { readonly points: readonly string[]; readonly outcome: Outcome }>>

/** A life at its point, or past its end. */
export type Standing = {
  readonly lane: Lane
  readonly one: Case
  readonly isCaught: boolean
  readonly trouble?: string
  readonly fromMs: number
}

export type Trials = {
  /** A number that no run on this sandbox had. */
  nextRun(): number
  /** Begins the life and waits until the agent is at the point. */
  standAt(lane: Lane, one: Case): Promise<Standing>
  /** After the fault: waits for the end, judges it, and makes the node ready for another life. */
  judge(standing: Standing, expected: Expected): Promise<Result>
  /** All of it, for a fault of the node alone. */
  alone(lane: Lane, one: Case, expected: Expected): Promise<Result>
}

/** `evidence` is what the names of files begin with that keep what was seen of a failure. */
export function createTrials(box: Sandbox, evidence: string): Trials {
  let run = Math.floor(Date.now() / 1000) % 1_000_000
  const trials: Trials = {
    nextRun: () => ++run,
    async standAt(lane, one) {
      const fromMs = Date.now()
      const number = trials.nextRun()
      try {
        await lane.begin(one.life, number)
        lane.agent.order(number, one.fault === 'agent killed' ? 'kill' : 'stop', one.point)
        await lane.tell()
        return { lane, one, isCaught: await lane.caught(), fromMs }
      } catch (error) {
        return { lane, one, isCaught: false, trouble: messageOf(error), fromMs }
      }
    },
    async judge({ lane, one, isCaught, trouble, fromMs }, expected) {
      const hostEnded = isCaught && endsTheHost(one.fault)
      const why = trouble === undefined ? await faultsAtEnd(lane, expected[one.life].outcome, hostEnded) : [trouble]
      const is = why.length > 0 ? 'failed' : isCaught ? 'passed' : 'not met'
      if (is === 'failed') {
        const file = `${evidence}.${lane.node}-${run}`
        writeFileSync(file, await lane.evidence())
        why.push(`more in ${file}`)
      }
      await lane.tidy(is === 'failed')
      return { is, why, tookMs: Date.now() - fromMs }
    },
    async alone(lane, one, expected) {
      const standing = await trials.standAt(lane, one)
      if (!standing.isCaught) return await trials.judge(standing, expected)
      try {
        await strike(one.fault as Exclude<FaultName, 'API server down'>, { box, node: lane.node, agent: lane.agent })
      } catch (error) {
        return await trials.judge({ ...standing, trouble: messageOf(error) }, expected)
      }
      return await trials.judge(standing, expected)
    },
  }
  return trials
}

/** Copies for people follow the journal, on a busy machine some seconds later; all else is judged as it stands. */
const copiesFollowWithinMs = 10_000

async function faultsAtEnd(lane: Lane, expected: Outcome, hostEnded: boolean): Promise<string[]> {
  const untilMs = Date.now() + copiesFollowWithinMs
  try {
    for (;;) {
      const faults = faultsOf(await lane.end(), expected, hostEnded)
      if (Date.now() > untilMs || faults.length === 0 || !faults.every((fault) => fault.startsWith('files: '))) return faults
    }
  } catch (error) {
    return [messageOf(error)]
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))
