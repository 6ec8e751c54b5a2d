/** Looks for a seed of a fleet that shows a deliberate bug, and makes its plan small. */
import { planRun } from '../fleet/run/plan-run.ts'
import { shrinkPlan } from '../fleet/run/shrink.ts'
import type { Plan } from '../kit/fleet/plan.ts'
import { withPolicies, withRenamedPolicies } from '../kit/fleet/plan-policies.ts'
import type { Violation } from '../kit/fleet/run-plan.ts'
import type { FleetRuns } from './fleet-runs.ts'
import type { FleetCatch } from './mutant.ts'

export type Find = { readonly seed: number; readonly plan: Plan; readonly violation: Violation }

export type SearchBounds = {
  readonly first: number
  readonly seeds: number
  readonly shrinkMs: number
  readonly isTimeUp: () => boolean
}

/** Runs of large fleets cost more than they find. */
const maxNodes = 10

const isPromising = ({ mayShow }: FleetCatch, plan: Plan): boolean =>
  plan.nodes.length <= maxNodes && (mayShow?.(plan) ?? true)

function planFor({ policies }: FleetCatch, seed: number): Plan {
  const plan = planRun(seed)
  if (policies === 'renamed') return withRenamedPolicies(plan)
  return policies === 'given' ? withPolicies(plan) : plan
}

/** At most `seeds` runs, of those seeds from `first` on whose plans have what the bug needs. */
export async function findSeed(
  by: FleetCatch,
  runs: FleetRuns,
  { first, seeds, shrinkMs, isTimeUp }: SearchBounds,
): Promise<{ readonly find: Find | undefined; readonly others: readonly string[] }> {
  const others: string[] = []
  let left = seeds
  for (let seed = first; left > 0 && !isTimeUp() && seed < first + 1_000 * seeds; seed++) {
    const plan = planFor(by, seed)
    if (!isPromising(by, plan)) continue
    left--
    const violation = await runs.withBug(plan)
    if (violation === undefined) continue
    if (violation.rule !== by.rule || (await runs.withoutBug(plan)) !== undefined) {
      others.push(`${seed}: ${violation.rule}: ${violation.message}`)
      continue
    }
    return { find: { seed, violation, plan: await shrink(by, runs, plan, shrinkMs) }, others }
  }
  return { find: undefined, others }
}

async function shrink(by: FleetCatch, runs: FleetRuns, plan: Plan, withinMs: number): Promise<Plan> {
  const startedMs = performance.now()
  const showsBug = async (smaller: Plan): Promise<boolean> =>
    (await runs.withBug(smaller))?.rule === by.rule && (await runs.withoutBug(smaller)) === undefined
  return await shrinkPlan(plan, showsBug, () => performance.now() - startedMs > withinMs)
}
