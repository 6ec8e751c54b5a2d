import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { drainFacts, groupPods, podsInTheWay } from '../../../src/stages/drain/pods.ts'
import type { Snapshot } from '../../../src/stages/model/snapshot.ts'
import { describeStep, hasUnconditionalInterrupt } from './host-evidence.ts'
import { type Invariant, violate } from './invariant.ts'

/** A change that ends in an interrupt begins on a drained node. */
export const drainComesFirst: Invariant = ({ beginsChange, viewOf }) => ({
  stepStarts(action, snapshot) {
    if (!beginsChange(action) || !hasUnconditionalInterrupt(action.spec)) return
    const { metadata, spec } = viewOf(action)
    if (!isDrained(snapshot, metadata.name, spec)) violate(`${describeStep(action)} runs before the node is drained`)
  },
})

function isDrained(snapshot: Snapshot, skyhook: string, spec: SkyhookSpec): boolean {
  const { node, pods } = snapshot
  const isCordoned =
    node.spec?.unschedulable === true && node.metadata.annotations?.[`skyhook.nvidia.com/cordon_${skyhook}`] === 'true'
  if (!isCordoned || !pods.known || pods.value.since !== 'cordoned') return false
  const groups = groupPods(pods.value.pods, spec, drainFacts(snapshot, skyhook))
  return groups.protected.length === 0 && (podsInTheWay(groups).length === 0 || spec.drain?.singleNode === 'skip')
}
