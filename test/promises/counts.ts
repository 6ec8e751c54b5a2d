/**
 * How many Nodes a Skyhook selects, by the Nodes that exist. Whoever counts them is late, by a stated time: until then
 * an earlier number counts as well. How many Nodes there are at all, each agent can see for itself: nothing excuses
 * more.
 */
import type { DeploymentPolicySpec } from '../../src/schemas/deployment-policy.ts'
import { isEqual } from '../../src/schemas/json.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { selects } from '../../src/schemas/selectors.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import { compartmentsIn } from './allowed.ts'
import type { AdmissionWorld } from './admission-facts.ts'

/**
 * In this time of an agent that nothing hinders, a change of the Nodes is counted. In a fleet of fifty nodes that loses
 * its leader and all candidates: 15 s until the Lease has expired, up to 100 s until the next look of one that is left,
 * up to 60 s until a leader that cannot count gives up, and half a minute to list and to write.
 */
export const countDelayMs = 205_000

/** An agent that asks for a slot has listed the Nodes at most so long before. */
const ownLookMs = 5_000

type Count = {
  readonly sinceMs: number
  readonly nodeSelectors: unknown
  readonly policy: DeploymentPolicySpec | undefined
  readonly matched: number
  readonly byCompartment: ReadonlyMap<string, number>
}

export function followCounts(world: AdmissionWorld) {
  const counts = new Map<string, Count[]>()
  const totals: { readonly sinceMs: number; readonly total: number }[] = []

  function recount(name: string, atMs: number): void {
    const skyhook = world.skyhook(name)
    if (skyhook === undefined) return
    const history = counts.get(name) ?? []
    counts.set(name, history)
    const policy = policyOf(world, skyhook)
    const now = { nodeSelectors: skyhook.spec.nodeSelectors, policy, ...countOf(world, skyhook, policy) }
    history.push({ sinceMs: atMs, ...now })
  }

  return {
    /** Another version of a Skyhook, of its policy, or of a Node. */
    skyhookChanged: recount,
    nodeChanged(atMs: number, before: KubernetesNode | undefined, after: KubernetesNode | undefined): void {
      const isSame = before !== undefined && after !== undefined
      if (isSame && isEqual(before.metadata.labels, after.metadata.labels)) return
      totals.push({ sinceMs: atMs, total: world.nodes().length })
      for (const name of counts.keys()) recount(name, atMs)
    },
    everythingChanged(atMs: number): void {
      totals.push({ sinceMs: atMs, total: world.nodes().length })
      for (const name of counts.keys()) recount(name, atMs)
    },
    /** The largest number that may still be believed at this time, for the spec as it stands. */
    matched(skyhook: Skyhook, atMs: number, compartment?: string): number {
      const policy = policyOf(world, skyhook)
      const history = counts.get(skyhook.metadata.name) ?? []
      const known = history.map((one) => {
        const isOfSpec = isEqual(one.nodeSelectors, skyhook.spec.nodeSelectors) && isEqual(one.policy, policy)
        const matched = compartment === undefined ? one.matched : (one.byCompartment.get(compartment) ?? 0)
        return { sinceMs: one.sinceMs, value: isOfSpec ? matched : 0 }
      })
      const existing = totals.map(({ sinceMs, total }) => ({ sinceMs, value: total }))
      return Math.min(largestSince(known, world.countedUntilMs()), largestSince(existing, atMs - ownLookMs))
    },
  }
}

export const policyOf = (world: AdmissionWorld, { spec }: Skyhook): DeploymentPolicySpec | undefined =>
  spec.deploymentPolicy ? world.policy(spec.deploymentPolicy) : undefined

/** A node that several compartments match counts in each of them. */
function countOf(
  world: AdmissionWorld,
  { spec }: Skyhook,
  policy: DeploymentPolicySpec | undefined,
): Pick<Count, 'matched' | 'byCompartment'> {
  const labels = world.nodes().map(({ metadata }) => metadata.labels ?? {})
  const selected = labels.filter((one) => selects(spec.nodeSelectors, one))
  const byCompartment = new Map<string, number>()
  const named = policy?.compartments ?? []
  const matches = (one: (typeof named)[number], of: Readonly<Record<string, string>>): boolean =>
    selects(one.selector, of)
  for (const { name } of policy === undefined ? [] : compartmentsIn(policy)) {
    const own = named.find((one) => one.name === name)
    const isIn = (of: Readonly<Record<string, string>>): boolean =>
      own === undefined ? !named.some((one) => matches(one, of)) : matches(own, of)
    byCompartment.set(name, selected.filter(isIn).length)
  }
  return { matched: selected.length, byCompartment }
}

/** Of values each of which is in force until the next one. */
function largestSince(
  history: readonly { readonly sinceMs: number; readonly value: number }[],
  sinceMs: number,
): number {
  let largest = 0
  for (let index = history.length - 1; index >= 0; index--) {
    const { value, sinceMs: fromMs } = history[index] ?? { value: 0, sinceMs: 0 }
    largest = Math.max(largest, value)
    if (fromMs <= sinceMs) break
  }
  return largest
}
