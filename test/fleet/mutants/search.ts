/** Looks for a seed that shows a deliberate bug, and makes its plan small. */
import type { Plan } from '../../kit/fleet/plan.ts'
import { withPolicies, withRenamedPolicies } from '../../kit/fleet/plan-policies.ts'
import { planRun } from '../run/plan-run.ts'
import type { Violation } from '../../kit/fleet/run-plan.ts'
import { shrinkPlan } from '../run/shrink.ts'
import type { FleetMutant } from './mutant.ts'
import type { MutantRuns } from './mutant-runs.ts'

export type Find = { readonly seed: number; readonly plan: Plan; readonly violation: Violation }

export type SearchBounds = {
  readonly first: number
  readonly seeds: number
  readonly shrinkMs: number
  readonly isTimeUp: () => boolean
}

/** Runs of large fleets cost more than they find. */
const maxNodes = 10

const isPromising = ({ mayShow }: FleetMutant, plan: Plan): boolean =>
  plan.nodes.length <= maxNodes && (mayShow?.(plan) ?? true)

function planFor({ hasPolicies, hasRenames }: FleetMutant, seed: number): Plan {
  const plan = planRun(seed)
  if (hasRenames === true) return withRenamedPolicies(plan)
  return hasPolicies === true ? withPolicies(plan) : plan
}

/** At most `seeds` runs, of those seeds from `first` on whose plans have what the bug needs. */
export async function findSeed(
  mutant: FleetMutant,
  runs: MutantRuns,
  { first, seeds, shrinkMs, isTimeUp }: SearchBounds,
): Promise<{ readonly find: Find | undefined; readonly others: readonly string[] }> {
  const others: string[] = []
  let left = seeds
  for (let seed = first; left > 0 && !isTimeUp() && seed < first + 1_000 * seeds; seed++) {
    const plan = planFor(mutant, seed)
    if (!isPromising(mutant, plan)) continue
    left--
    const violation = await runs.withBug(mutant, plan)
    if (violation === undefined) continue
    if (violation.rule !== mutant.rule || (await runs.withoutBug(plan)) !== undefined) {
      others.push(`${seed}: ${violation.rule}: ${violation.message}`)
      continue
    }
    return { find: { seed, violation, plan: await shrink(mutant, runs, plan, shrinkMs) }, others }
  }
  return { find: undefined, others }
}

async function shrink(mutant: FleetMutant, runs: MutantRuns, plan: Plan, withinMs: number): Promise<Plan> {
  const startedMs = performance.now()
  const showsBug = async (smaller: Plan): Promise<boolean> =>
    (await runs.withBug(mutant, smaller))?.rule === mutant.rule && (await runs.withoutBug(smaller)) === undefined
  return await shrinkPlan(plan, showsBug, () => performance.now() - startedMs > withinMs)
}
