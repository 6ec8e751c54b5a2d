/** Whether a wait for a rollout is over. */
import type { SkyhookConditionReason } from '../../../schemas/catalogue/conditions.ts'
import type { Skyhook } from '../../../schemas/skyhook.ts'
import { conditionOf } from './fleet-status.ts'

export type WaitVerdict =
  | { readonly verdict: 'waiting' }
  | { readonly verdict: 'complete' }
  /** There is nothing to do: the pool is scaled to zero, or the selector is wrong. */
  | { readonly verdict: 'no-nodes' }
  | { readonly verdict: 'stalled'; readonly message: string }
  /** The spec differs from that of the call: its end would not be an answer. */
  | { readonly verdict: 'superseded'; readonly generation: number }
  | { readonly verdict: 'gone' }

const noNodeSelected: SkyhookConditionReason<'Ready'> = 'NoNodeSelected'

/** The verdict about the awaited generation. Conditions of an earlier one do not count. */
export function waitVerdict(
  skyhook: Skyhook | undefined,
  bound: { readonly uid: string; readonly generation: number },
): WaitVerdict {
  if (skyhook === undefined || skyhook.metadata.uid !== bound.uid) return { verdict: 'gone' }
  const { generation = 0 } = skyhook.metadata
  if (generation !== bound.generation) return { verdict: 'superseded', generation }
  const isCurrent = (condition: { readonly observedGeneration: number } | undefined): boolean =>
    condition?.observedGeneration === generation
  const ready = conditionOf(skyhook, 'Ready')
  if (isCurrent(ready) && ready?.status === 'True')
    return { verdict: ready.reason === noNodeSelected ? 'no-nodes' : 'complete' }
  const stalled = conditionOf(skyhook, 'Stalled')
  if (isCurrent(stalled) && stalled?.status === 'True')
    return { verdict: 'stalled', message: `${stalled.reason}: ${stalled.message}` }
  return { verdict: 'waiting' }
}
