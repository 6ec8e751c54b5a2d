import type { Plan } from '../../src/stages/model/plan.ts'
import type { Decide } from '../kit/node-simulator/node-simulator.ts'

/**
 * Decisions of one run, to be repeated in runs that differ from it only later: what was decided and judged once need
 * not be decided for each of them. Two runs are the same up to a round when nothing disturbed either of them before.
 */
export class ReplayedDecisions {
  readonly #plans: Plan[] = []
  readonly #callsBeforeRound: number[] = []

  /** Decides, and records. */
  recording(decide: Decide): Decide {
    return (snapshot, reasons) => {
      const plan = decide(snapshot, reasons)
      this.#plans.push(plan)
      return plan
    }
  }

  /** Call it at the beginning of each round of the recorded run. */
  beginRound(): void {
    this.#callsBeforeRound.push(this.#plans.length)
  }

  /** Repeats the decisions of the rounds before `round`, and decides from there on. */
  replaying(decide: Decide, round: number): Decide {
    let calls = 0
    const recorded = this.#callsBeforeRound[round] ?? 0
    return (snapshot, reasons) => {
      const plan = calls < recorded ? this.#plans[calls] : undefined
      calls++
      return plan ?? decide(snapshot, reasons)
    }
  }
}
