/** The plan of a run, from its seed alone. */
import { actionKinds, editKinds, faultKinds } from '../../kit/fleet/action-kinds.ts'
import { planCensusFault } from '../../kit/fleet/census-faults.ts'
import { type Chance, createChance } from '../../kit/fleet/chance.ts'
import { type Phase, phases } from '../../kit/fleet/phase.ts'
import type { Plan, PlannedAction, SkyhookPlan } from '../../kit/fleet/plan.ts'
import { withBudgetActions } from './plan-budgets.ts'
import { planLives } from './plan-lives.ts'
import { planNodes } from './plan-nodes.ts'
import { withOverlaps } from './plan-overlaps.ts'
import { planSkyhooks } from '../../kit/fleet/plan-skyhooks.ts'
import { withStayers } from './plan-stayers.ts'
import { firstActionAtMs, healAtMs, rolloutMs, skyhooksAtMs } from '../../kit/fleet/plan-time.ts'
import { type Pair, pairsOf } from './steering.ts'

type Names = { readonly nodes: readonly string[]; readonly skyhooks: readonly string[] }

/** Edits that give the fleet work: without them most faults would meet idle nodes. */
const workMakers = ['package-version', 'package-config', 'package-added', 'package-version'] as const
export function planRun(seed: number): Plan {
  const chance = createChance(seed, 0)
  const pairs = pairsOf(seed)
  const meets = (...some: readonly Phase[]): boolean => pairs.some(({ phase }) => some.includes(phase))
  const count = chance.isHit(0.01) ? 50 : chance.pick([1, 2, 2, 2, 3, 3, 3, 3, 4, 4])
  const skyhooks = planSkyhooks(chance, count, {
    reboots: meets('down', 'booted') || (meets('draining') && !meets('interrupting')),
    restarts: meets('interrupting'),
    drains: meets('draining'),
    hasTwoPackages: meets('between-steps') || pairs.some(({ kind }) => kind === 'package-removed'),
  })
  const isTainted = skyhooks.some(({ spec }) => spec.runtimeRequired === true)
  const isUpgraded = pairs.some(({ kind }) => kind === 'agent-upgraded')
  const nodes = planNodes(chance, count, { isTainted, isDrained: meets('draining'), isUpgraded })
  const names = { nodes: nodes.map(({ name }) => name), skyhooks: skyhooks.map(({ name }) => name) }
  const kinds = [
    ...choose(chance, Object.keys(faultKinds), chance.integer(1, 4)),
    ...choose(chance, Object.keys(editKinds), chance.integer(0, 2)),
  ]
  const chosen = kinds.map((kind) => planAction(chance, kind, names, chance.isHit(0.85)))
  const steered = pairs.map((pair) => planPair(chance, pair, names))
  const work = Array.from({ length: chance.integer(1, 2) }, () =>
    planAction(chance, chance.pick(workMakers), names, false),
  )
  const actions = [...chosen, ...steered, ...work]
    .toSorted((a, b) => a.atMs - b.atMs)
    .map((action, id) => ({ ...action, id }))
  const hasDaemonSet = needsDaemonSet(skyhooks) || chance.isHit(0.15)
  const drawn = withLives(overlapped(chance, actions), planLives(seed, names))
  const census = { node: names.nodes[0] ?? '', skyhooks: names.skyhooks }
  const plan: Plan = {
    seed,
    nodes,
    skyhooks,
    hasDaemonSet,
    actions: [...drawn, ...planCensusFault(createChance(seed, 9), { ...census, firstId: drawn.length })],
    healsEarly: chance.isHit(0.9),
  }
  return withOverlaps(withBudgetActions(withStayers(plan)))
}

const withLives = (
  actions: readonly PlannedAction[],
  lives: readonly Omit<PlannedAction, 'id'>[],
): readonly PlannedAction[] => [
  ...actions,
  ...lives.map((action, index) => ({ ...action, id: actions.length + index })),
]

const needsDaemonSet = (skyhooks: readonly SkyhookPlan[]): boolean =>
  skyhooks.some(({ spec }) => (spec.pace?.minReadySeconds ?? 0) > 0)

/** Some actions meet a node in the middle of another one: what waits for a retry is what a second fault may spoil. */
function overlapped(chance: Chance, actions: readonly PlannedAction[]): readonly PlannedAction[] {
  const lasting = actions.filter(({ forMs = 0 }) => forMs > 2_000)
  if (lasting.length === 0) return actions
  return actions.map((action) => {
    const other = chance.pick(lasting)
    if (action.node === undefined || other.node === undefined) return action
    if (other.id >= action.id || !chance.isHit(0.3)) return action
    const { during: _, ...timed } = action
    return { ...timed, node: other.node, follows: { id: other.id, afterMs: chance.integer(500, other.forMs ?? 0) } }
  })
}

const choose = (chance: Chance, from: readonly string[], count: number): string[] =>
  Array.from({ length: count }, () => chance.pick(from))

function planAction(chance: Chance, kind: string, names: Names, isAimed: boolean): PlannedAction {
  const { impossible = {} } = actionKinds[kind] ?? {}
  const during = isAimed ? chance.pick(aims.filter((phase) => !(phase in impossible))) : undefined
  return {
    ...withDetails(chance, kind, names),
    atMs: chance.integer(...timesOf(during)),
    node: chance.pick(names.nodes),
    ...(during !== undefined && { during }),
  }
}

/** As soon as any node is in the phase, from some moment of the first rollout on. */
function planPair(chance: Chance, { kind, phase }: Pair, names: Names): PlannedAction {
  const [from, to] = timesOf(phase)
  // nodes without a budget for many drain once, all together
  const latest = phase === 'draining' ? from : chance.isHit(0.7) ? Math.min(to, from + 10_000) : to
  return {
    ...withDetails(chance, kind, names),
    ...(kind === 'package-removed' && { skyhook: names.skyhooks.at(-1) ?? '' }),
    atMs: chance.integer(from, latest),
    during: phase,
  }
}

function withDetails(chance: Chance, kind: string, names: Names): Omit<PlannedAction, 'atMs' | 'node' | 'during'> {
  const { lastsMs, draw } = actionKinds[kind] ?? {}
  return {
    id: 0,
    kind,
    skyhook: chance.pick(names.skyhooks),
    ...(lastsMs !== undefined && { forMs: chance.integer(...lastsMs) }),
    ...(draw !== undefined && { detail: draw(chance) }),
  }
}

/** Short phases are aimed at more often: they are missed more often, too. */
const aims: readonly Phase[] = [
  ...phases,
  ...(['interrupting', 'interrupting', 'interrupting', 'interrupting', 'booted', 'booted', 'down', 'down'] as const),
  ...(['idle', 'completing', 'draining', 'slot-held', 'step', 'between-steps'] as const),
]

/** Most phases come in the first rollout, and again only if something changes. */
function timesOf(during: Phase | undefined): readonly [from: number, to: number] {
  if (during === undefined) return [firstActionAtMs, healAtMs - 30_000]
  if (during === 'idle') return [firstActionAtMs, skyhooksAtMs]
  return during === 'released' ? [skyhooksAtMs, healAtMs / 2] : rolloutMs
}
