import { measureFleet } from './measure.ts'
import { planName, type FleetPlan } from './plan.ts'
import { regressionsOf } from './regression.ts'
import { fleetReport } from './report.ts'
import { readCommitted } from './result-file.ts'

/**
 * Small enough for every test run. No node waits for a slot and none is cordoned: how long nodes wait changes how often
 * they look and what they say meanwhile, and how fast the node controller is decides about conflicts. A busy machine
 * would change these counts.
 */
const plan: FleetPlan = {
  nodes: 20,
  budget: 'none',
  strategy: 'none',
  interrupt: 'none',
  skyhooks: 1,
  stepMs: 0,
  workers: 1,
  idleSeconds: 0,
  restart: false,
}

/** Measures a small fleet and says what is worse than committed. */
export async function checkFleet(
  say: (text: string) => void,
): Promise<{ readonly regressions: readonly string[]; readonly report: string }> {
  const committed = readCommitted(planName(plan))
  if (committed === undefined) throw new Error(`bench/results/${planName(plan)}.json is missing`)
  const result = await measureFleet(plan, say)
  return {
    regressions: regressionsOf(result, committed.result, plan.nodes),
    report: fleetReport(plan, result, committed.result),
  }
}
