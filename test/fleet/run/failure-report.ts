/** What a failing seed is reported with: the smallest plan that fails alike, and the end of its trace. */
import { invariants } from '../../promises/all.ts'
import type { Plan } from '../../kit/fleet/plan.ts'
import { runPlan } from '../../kit/fleet/run-plan.ts'
import { shrinkPlan } from './shrink.ts'

const tracedLines = 60

/** Undefined if the seed does not fail. `withinMs`: of real time, for the search of a smaller plan. */
export async function reportFailure(
  plan: Plan,
  { withinMs, isWhole = false }: { readonly withinMs: number; readonly isWhole?: boolean },
): Promise<string | undefined> {
  const { seed } = plan
  const { violation } = await runPlan(plan, { invariants })
  if (violation === undefined) return undefined
  const startedMs = performance.now()
  const smallest = await shrinkPlan(
    plan,
    async (smaller) => (await runPlan(smaller, { invariants })).violation?.rule === violation.rule,
    () => performance.now() - startedMs > withinMs,
  )
  const { trace, violation: found } = await runPlan(smallest, { invariants, isTraced: true })
  return [
    `seed ${seed}: ${found?.rule}: ${found?.message}`,
    ...planLines(smallest),
    ...(isWhole ? trace : trace.slice(-tracedLines)),
    `again: make fleet SEED=${seed}`,
  ].join('\n')
}

function planLines({ nodes, skyhooks, policies = [], actions }: Plan): string[] {
  return [
    ...nodes.map(
      ({ name, isControlPlane, pods, ...rest }) =>
        `  ${name}${isControlPlane ? ' (control plane)' : ''} ${JSON.stringify(pods)} ${JSON.stringify(rest)}`,
    ),
    ...policies.map(({ name, spec }) => `  ${name} ${JSON.stringify(spec)}`),
    ...skyhooks.map(({ name, spec }) => `  ${name} ${JSON.stringify(spec)}`),
    ...actions.map(({ atMs, kind, ...rest }) => `  from ${atMs / 1_000} s: ${kind} ${JSON.stringify(rest)}`),
  ]
}
