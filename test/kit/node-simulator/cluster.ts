/** What the cluster does for the agent: evictions, patches of the Node, and the number of Nodes. */
import type { NodeCondition, NodePatch } from '../../../src/schemas/kubernetes.ts'
import { ownerKeyOf, toleratesCordon } from '../../../src/stages/drain/pods.ts'
import type { Pod } from '../../../src/stages/model/pods.ts'
import type { NodeState } from './node-state.ts'

export function countNodes(simulated: NodeState): true {
  simulated.nodeCount = { isSingle: simulated.clusterSize === 1, atMs: simulated.nowMs }
  return true
}

export function evict(simulated: NodeState, pod: Pod, force: boolean): boolean {
  const { uid, name } = pod.metadata
  if (!force && simulated.refusingPods.has(name)) {
    const retryAtMs = simulated.nowMs + 5_000
    const message = 'PDB shop/cart: 0 allowed'
    simulated.evictions.set(uid, { state: 'blocked', message, sinceMs: simulated.nowMs, retryAtMs })
    return true
  }
  simulated.evictions.set(uid, { state: 'requested' })
  simulated.evictedPods.push(name)
  const owner = ownerKeyOf(pod)
  if (toleratesCordon(pod) && simulated.evictedOwners.get(owner)?.uids.has(uid) !== true) {
    const uids = new Set(simulated.pods.map(({ metadata }) => metadata.uid))
    simulated.evictedOwners.set(owner, { atMs: simulated.nowMs, uids })
  }
  simulated.terminatingPods.add(uid)
  simulated.pods = simulated.pods.map((pod) =>
    pod.metadata.uid === uid ? { ...pod, metadata: { ...pod.metadata, deletionTimestamp: 'now' } } : pod,
  )
  return true
}

export function publish(simulated: NodeState, patch: NodePatch): boolean {
  if (simulated.arePatchesDelayed) return false
  simulated.observer.published?.(patch)
  simulated.patches++
  const hasConditions = patch.conditions.length > 0 || patch.removedConditions.length > 0
  if (hasConditions && (patch.unschedulable !== undefined || patch.taints))
    throw new Error('no request takes spec and conditions')
  const merged = (before: Readonly<Record<string, string>> = {}, change: Readonly<Record<string, string | null>>) =>
    Object.fromEntries(
      Object.entries({ ...before, ...change }).filter((entry): entry is [string, string] => entry[1] !== null),
    )
  const types = new Set([...patch.removedConditions, ...patch.conditions.map(({ type }) => type)])
  const kept: NodeCondition[] = (simulated.node.status?.conditions ?? []).filter(({ type }) => !types.has(type))
  const { metadata, spec, status } = simulated.node
  simulated.node = {
    metadata: {
      ...metadata,
      annotations: merged(metadata.annotations, patch.annotations),
      labels: merged(metadata.labels, patch.labels),
    },
    spec: {
      ...spec,
      ...(patch.unschedulable !== undefined && { unschedulable: patch.unschedulable }),
      ...(patch.taints && { taints: patch.taints }),
    },
    status: { ...status, conditions: [...kept, ...patch.conditions] },
  }
  return true
}
