/** Which Skyhooks a change of a Node concerns. Nodes change all the time; few changes matter to a count. */
import { ignoreLabel } from '../schemas/annotations.ts'
import type { PolicyKnowledge } from '../schemas/deployment-policy.ts'
import { isEqual } from '../schemas/equal.ts'
import { selects } from '../schemas/selectors.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { skyhookOfKey, type CensusNode } from './node-facts.ts'

export type NodeChange = {
  /** Undefined for a node that did not exist. */
  readonly before: CensusNode | undefined
  /** Undefined for a node that no longer does. */
  readonly after: CensusNode | undefined
  /** It matters to every Skyhook that selects the node. */
  readonly isForAll: boolean
  /** The Skyhooks whose annotations changed. */
  readonly skyhooks: ReadonlySet<string>
  readonly hasOtherLabels: boolean
}

export function nodeChange(before: CensusNode | undefined, after: CensusNode | undefined): NodeChange {
  const hasOtherLabels = !isEqual(before?.labels, after?.labels)
  const isForAll =
    before?.uid !== after?.uid ||
    before?.labels[ignoreLabel] !== after?.labels[ignoreLabel] ||
    !isEqual(before?.cordonedBy, after?.cordonedBy) // any cordon takes the node out of service
  return { before, after, isForAll, skyhooks: changedSkyhooks(before?.annotations, after?.annotations), hasOtherLabels }
}

/** Whether it can change the count for a Skyhook. `policy`: of the name in its spec. */
export function affectsCount(
  { metadata, spec }: Skyhook,
  { before, after, isForAll, skyhooks, hasOtherLabels }: NodeChange,
  policy?: PolicyKnowledge,
): boolean {
  if (!isForAll && !hasOtherLabels && !skyhooks.has(metadata.name)) return false
  const was = before !== undefined && selects(spec.nodeSelectors, before.labels)
  const is = after !== undefined && selects(spec.nodeSelectors, after.labels)
  if (was !== is) return true
  if (!was || !is) return false
  if (isForAll || skyhooks.has(metadata.name)) return true
  return policy?.state === 'found' && mayMove(policy.spec.compartments ?? [], before.labels, after.labels)
}

type Compartments = NonNullable<Extract<PolicyKnowledge, { readonly state: 'found' }>['spec']['compartments']>

/** Other compartments select it: it may be in another one, and each counts those that it selects. */
const mayMove = (compartments: Compartments, before: CensusNode['labels'], after: CensusNode['labels']): boolean =>
  compartments.some(({ selector }) => selects(selector, before) !== selects(selector, after))

type Annotations = CensusNode['annotations'] | undefined

function changedSkyhooks(before: Annotations = {}, after: Annotations = {}): ReadonlySet<string> {
  const changed = new Set<string>()
  const add = (key: string): void => {
    const skyhook = before[key] === after[key] ? undefined : skyhookOfKey(key)
    if (skyhook !== undefined) changed.add(skyhook)
  }
  for (const key of Object.keys(after)) add(key)
  for (const key of Object.keys(before)) if (!Object.hasOwn(after, key)) add(key)
  return changed
}
