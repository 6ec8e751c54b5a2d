/**
 * What makes drains hard in some runs: pods that tolerate the cordon or belong to Jobs, clusters that grow from one
 * node or shrink to one, and the fields of `spec.drain` for both. Drawn apart: the rest of a plan stays as it was.
 */
import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { type Chance, createChance } from '../../kit/fleet/chance.ts'
import type { NodePlan, Plan, PlannedAction, PodPlan, SkyhookPlan } from '../../kit/fleet/plan.ts'

type Drain = NonNullable<SkyhookSpec['drain']>

const toleratings = [undefined, undefined, 'evict', 'wait', 'leave'] as const
export const singleNodes = ['drain', 'skip'] as const

export function withStayers(plan: Plan): Plan {
  const chance = createChance(plan.seed, 22)
  const hasStayers = chance.isHit(0.12)
  const isGrowing = chance.isHit(0.06)
  if (!hasStayers && !isGrowing) return plan
  const nodes = isGrowing ? growing(chance, plan.nodes) : plan.nodes
  return {
    ...plan,
    nodes: hasStayers
      ? nodes.map((node) => ({ ...node, pods: [...node.pods, ...stayersOf(chance, node.name)] }))
      : nodes,
    skyhooks: plan.skyhooks.map((one) => {
      const tolerating = hasStayers ? chance.pick(toleratings) : undefined
      return withDrain(one, {
        ...(tolerating !== undefined && { tolerating }),
        ...(isGrowing && { singleNode: 'skip' }),
      })
    }),
    actions: [...plan.actions, ...actionsOf(chance, plan, { hasStayers, isGrowing })],
  }
}

function stayersOf(chance: Chance, node: string): readonly PodPlan[] {
  const graceMs = chance.integer(0, 5_000)
  const kinds: readonly PodPlan[] = [
    { name: `train-${node}`, isProtected: false, isGuarded: false, toleratesAll: true, isOfJob: true, graceMs },
    { name: `back-${node}`, isProtected: false, isGuarded: false, toleratesAll: true, graceMs },
    { name: `batch-${node}`, isProtected: false, isGuarded: false, toleratesCordon: true, isOfJob: true, graceMs },
  ]
  return kinds.filter(() => chance.isHit(0.4))
}

/** The first agent counts one Node. */
const growing = (chance: Chance, [first, ...others]: readonly NodePlan[]): readonly NodePlan[] => [
  ...(first === undefined ? [] : [{ name: first.name, isControlPlane: first.isControlPlane, pods: first.pods }]),
  ...others.map((node) => ({ ...node, joinsAtMs: chance.integer(30_000, 120_000) })),
]

const withDrain = ({ name, spec }: SkyhookPlan, drain: Drain): SkyhookPlan => ({
  name,
  spec: Object.keys(drain).length === 0 ? spec : { ...spec, drain: { ...spec.drain, ...drain } },
})

function actionsOf(
  chance: Chance,
  { actions, nodes, skyhooks }: Plan,
  { hasStayers, isGrowing }: { readonly hasStayers: boolean; readonly isGrowing: boolean },
): readonly PlannedAction[] {
  const first = nodes[0]?.name ?? ''
  const skyhook = skyhooks[0]?.name ?? ''
  const added: Omit<PlannedAction, 'id'>[] = []
  const atMs = chance.integer(130_000, 200_000)
  if (isGrowing) {
    added.push({ atMs, kind: 'package-version', node: first, skyhook, detail: { index: 0 } })
    if (chance.isHit(0.5))
      added.push({
        atMs: atMs + 20_000,
        kind: 'cluster-shrunk',
        node: first,
        skyhook,
        forMs: chance.integer(30_000, 90_000),
      })
    if (chance.isHit(0.3))
      added.push({
        atMs: chance.integer(20_000, 200_000),
        kind: 'single-node',
        node: first,
        skyhook,
        detail: { singleNode: chance.pick(singleNodes) },
      })
  }
  if (hasStayers && chance.isHit(0.5))
    added.push({
      atMs: chance.integer(15_000, 200_000),
      kind: 'tolerating',
      node: first,
      skyhook,
      detail: { tolerating: chance.pick(toleratings) ?? null },
    })
  return added.map((action, index) => ({ ...action, id: actions.length + index }))
}
