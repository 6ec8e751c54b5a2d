/** The plan of a run, from its seed alone. */
import { actionKinds, editKinds, faultKinds } from './action-kinds.ts'
import { type Chance, createChance } from './chance.ts'
import { type Phase, phases } from './phase.ts'
import type { NodePlan, Plan, PlannedAction, PodPlan } from './plan.ts'
import { planSkyhooks } from './plan-skyhooks.ts'
import { firstActionAtMs, healAtMs, rolloutMs, skyhooksAtMs } from './plan-time.ts'

/** Edits that give the fleet work: without them most faults would meet idle nodes. */
const workMakers = ['package-version', 'package-config', 'package-added', 'package-version'] as const

export function planRun(seed: number): Plan {
  const chance = createChance(seed, 0)
  const nodes = planNodes(chance)
  const skyhooks = planSkyhooks(chance, nodes.length)
  const names = { nodes: nodes.map(({ name }) => name), skyhooks: skyhooks.map(({ name }) => name) }
  const kinds = [
    ...choose(chance, Object.keys(faultKinds), chance.integer(3, 8)),
    ...choose(chance, Object.keys(editKinds), chance.integer(1, 5)),
  ]
  const aimed = kinds.map((kind) => planAction(chance, kind, names, chance.isHit(0.85)))
  const work = Array.from({ length: chance.integer(1, 2) }, () =>
    planAction(chance, chance.pick(workMakers), names, false),
  )
  const actions = [...aimed, ...work].toSorted((a, b) => a.atMs - b.atMs).map((action, id) => ({ ...action, id }))
  return { seed, nodes, skyhooks, actions: overlapped(chance, actions), healsEarly: chance.isHit(0.9) }
}

/** Some actions meet a node in the middle of another one: what waits for a retry is what a second fault may spoil. */
function overlapped(chance: Chance, actions: readonly PlannedAction[]): readonly PlannedAction[] {
  const lasting = actions.filter(({ forMs = 0 }) => forMs > 2_000)
  return actions.map((action) => {
    const other = lasting[chance.integer(0, lasting.length - 1)]
    if (other?.node === undefined || other.id >= action.id || !chance.isHit(0.3)) return action
    const { during: _, ...timed } = action
    return { ...timed, node: other.node, follows: { id: other.id, afterMs: chance.integer(500, other.forMs ?? 0) } }
  })
}

const choose = (chance: Chance, from: readonly string[], count: number): string[] =>
  Array.from({ length: count }, () => chance.pick(from))

function planNodes(chance: Chance): readonly NodePlan[] {
  const count = chance.isHit(0.01) ? 50 : chance.pick([1, 2, 2, 2, 3, 3, 3, 3, 4, 4])
  const controlPlanes = chance.isHit(0.25) ? chance.integer(1, Math.min(3, count)) : 0
  const arePodsGuarded = chance.isHit(0.5)
  return Array.from({ length: count }, (_, index) => ({
    name: `host${index + 1}`,
    isControlPlane: index < controlPlanes,
    pods: planPods(chance, index, arePodsGuarded),
  }))
}

function planPods(chance: Chance, node: number, isGuarded: boolean): readonly PodPlan[] {
  const plain = chance.isHit(0.6) ? [{ name: `app${node}`, isProtected: false, isGuarded }] : []
  const critical = chance.isHit(0.2) ? [{ name: `job${node}`, isProtected: true, isGuarded: false }] : []
  return [...plain, ...critical].map((pod) => ({ ...pod, graceMs: chance.integer(0, 10_000) }))
}

function planAction(
  chance: Chance,
  kind: string,
  names: { readonly nodes: readonly string[]; readonly skyhooks: readonly string[] },
  isAimed: boolean,
): PlannedAction {
  const { lastsMs, draw, impossible = {} } = actionKinds[kind] ?? {}
  const during = isAimed ? chance.pick(aims.filter((phase) => !(phase in impossible))) : undefined
  return {
    id: 0,
    atMs: chance.integer(...timesOf(during)),
    kind,
    node: chance.pick(names.nodes),
    skyhook: chance.pick(names.skyhooks),
    ...(during !== undefined && { during }),
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
