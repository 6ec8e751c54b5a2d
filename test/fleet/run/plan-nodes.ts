/** The hosts of a run, and the pods on them. */
import type { Chance } from '../../kit/fleet/chance.ts'
import type { NodePlan, PodPlan } from '../../kit/fleet/plan.ts'

/** What the rest of the plan needs of its nodes. */
export type NodeNeeds = {
  /** Some Skyhook lifts the runtime-required taint. */
  readonly isTainted: boolean
  /** Each node has a pod that has to leave and takes its time. */
  readonly isDrained: boolean
  /** The first agents are of the version before. */
  readonly isUpgraded: boolean
}

/** Nodes that join do so in the middle of the first rollout. */
const joinsMs = [20_000, 90_000] as const

export function planNodes(chance: Chance, count: number, needs: NodeNeeds): readonly NodePlan[] {
  const controlPlanes = chance.isHit(0.25) ? chance.integer(1, Math.min(3, count)) : 0
  const arePodsGuarded = chance.isHit(0.5)
  return Array.from({ length: count }, (_, index) => {
    const joins = chance.isHit(needs.isTainted ? 0.3 : 0.05)
    return {
      name: `host${index + 1}`,
      isControlPlane: index < controlPlanes,
      pods: planPods(chance, index, arePodsGuarded, needs),
      ...(joins && { joinsAtMs: chance.integer(...joinsMs) }),
      ...(needs.isTainted && chance.isHit(joins ? 0.8 : 0.3) && { isTainted: true }),
      ...((chance.isHit(0.12) || needs.isUpgraded) && { startsWithOlderAgent: true }),
    }
  })
}

function planPods(chance: Chance, node: number, isGuarded: boolean, { isDrained }: NodeNeeds): readonly PodPlan[] {
  const plain = chance.isHit(0.6) || isDrained ? [{ name: `app${node}`, isProtected: false, isGuarded }] : []
  const critical = chance.isHit(0.2) ? [{ name: `job${node}`, isProtected: true, isGuarded: false }] : []
  const tolerant = chance.isHit(0.15)
    ? [{ name: `log${node}`, isProtected: false, isGuarded: false, toleratesCordon: true }]
    : []
  const fromMs = isDrained ? 2_000 : 0
  return [...plain, ...critical, ...tolerant].map((pod) => ({ ...pod, graceMs: chance.integer(fromMs, 10_000) }))
}
