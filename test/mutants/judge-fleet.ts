/** Whether a simulated fleet with a deliberate bug breaks the rule that it has to. */
import type { Runner } from '../fleet/run/runner.ts'
import type { FleetRuns } from './fleet-runs.ts'
import type { Judgment } from './judgment.ts'
import { keepPlan, keptPlan } from './kept-plans.ts'
import type { FleetCatch } from './mutant.ts'
import { findSeed, type SearchBounds } from './search.ts'

export type SeedSearch = SearchBounds & { readonly isKeeping: boolean }

const missedBecause = (why: string): Judgment => ({ outcome: 'missed', why })

type Runners = { readonly withBug: Runner; readonly withoutBug: Runner }

/** By the plan that was kept for it; with `search` by any seed first. */
export async function judgeByFleet(
  { withBug, withoutBug }: Runners,
  by: FleetCatch,
  search: SeedSearch | undefined,
): Promise<Judgment> {
  const runs: FleetRuns = {
    withBug: async (plan) => (await withBug.run(plan)).violation,
    withoutBug: async (plan) => (await withoutBug.run(plan)).violation,
  }
  return search === undefined ? await replay(by, runs) : await searchFor(by, runs, search)
}

/** It must fail by its rule with the bug, and pass without it. */
async function replay(by: FleetCatch, runs: FleetRuns): Promise<Judgment> {
  const plan = keptPlan(by)
  if (plan === undefined) return missedBecause('no plan is kept for it')
  const good = await runs.withoutBug(plan)
  if (good !== undefined) return missedBecause(`its plan fails without the bug: ${good.rule}: ${good.message}`)
  const bad = await runs.withBug(plan)
  if (bad?.rule === by.rule) return { outcome: 'caught', how: `kept plan, ${by.rule}` }
  return missedBecause(`its plan ${bad ? `fails by ${bad.rule}: ${bad.message}` : 'passes'} with the bug`)
}

/** Where no seed shows the bug, the plan that was kept for it has to. */
async function searchFor(by: FleetCatch, runs: FleetRuns, { isKeeping, ...bounds }: SeedSearch): Promise<Judgment> {
  const { find, others } = await findSeed(by, runs, bounds)
  if (find !== undefined) {
    if (isKeeping) keepPlan(by, find.plan)
    const { nodes, skyhooks, actions } = find.plan
    const kinds = actions.map(({ kind }) => kind).join(' + ') || 'no fault, no edit'
    const size = `${nodes.length} nodes, ${skyhooks.length} Skyhooks, ${kinds}`
    return { outcome: 'caught', how: `seed ${find.seed}, ${size}\n    ${by.rule}: ${find.violation.message}` }
  }
  if (bounds.isTimeUp()) return { outcome: 'undecided' }
  const noSeed = [`no seed of ${bounds.seeds} shows it`, ...others.slice(0, 5)].join('\n    ')
  const replayed = await replay(by, runs)
  if (replayed.outcome === 'missed') return missedBecause(`${noSeed}, and ${replayed.why}`)
  return replayed.outcome === 'caught' ? { ...replayed, how: `${replayed.how}\n    ${noSeed}` } : replayed
}
