import type { HeldCordon } from '../../schemas/journal.ts'

/**
 * Who a cordon belongs to. Administrators cordon nodes too, before and during our work; a node must end in the state
 * that they set last. Invariant, searched in test/model/cordon.test.ts: when no mark of ours is left, the node is
 * unschedulable exactly when an administrator wants it so (or asked us to keep it).
 *
 * The Node records one mark per Skyhook, and `before`: whether the node was cordoned without us. The journal has a copy
 * of both, for a Node that loses them while the work lasts.
 */
export type CordonState = {
  readonly unschedulable: boolean
  /** Skyhooks whose mark the Node carries. */
  readonly marks: ReadonlySet<string>
  /** `cordoned-before` of the Node; undefined when absent. */
  readonly before: boolean | undefined
  /**
   * `keep-cordoned`: a person wants the node to stay cordoned, regardless of what was before. A plain cordon of a node
   * that we cordoned writes nothing.
   */
  readonly keep: boolean
}

/**
 * The Node's new fields; absent ones stay. All of them go into one PATCH with the resourceVersion of the state that was
 * read.
 */
export type CordonChange = {
  readonly unschedulable?: boolean
  readonly addMark?: string
  readonly removeMark?: string
  /** null removes it. */
  readonly before?: boolean | null
}

/**
 * The journal's `before` for a Node that lost it. Undefined where the Node itself shows whether it would be cordoned
 * without us: another Node of this name, one that lost its cordon too, one that someone cordoned since.
 */
export function recalledBefore(
  { unschedulable }: CordonState,
  held: HeldCordon | undefined,
  { isSameNode, lastSeen }: { readonly isSameNode: boolean; readonly lastSeen: boolean | undefined },
): boolean | undefined {
  return isSameNode && unschedulable && lastSeen !== false ? held?.before : undefined
}

/**
 * The change that cordons the node under the mark of this Skyhook; undefined when it is already cordoned so. Also
 * restores the cordon after someone uncordoned during our work: a node found schedulable stays schedulable afterwards.
 */
export function cordonFor(skyhook: string, { unschedulable, marks, before }: CordonState): CordonChange | undefined {
  const isMarked = marks.has(skyhook)
  if (unschedulable && isMarked) return undefined
  // A mark without `before` is the operator's, which cordons only schedulable nodes.
  const wasCordoned = before ?? (marks.size > 0 ? false : undefined)
  const next = unschedulable ? (wasCordoned ?? true) : false
  return {
    ...(!unschedulable && { unschedulable: true }),
    ...(!isMarked && { addMark: skyhook }),
    ...(before !== next && { before: next }),
  }
}

/**
 * The change that gives the cordon back. The node becomes schedulable only with the last mark, and only if no one else
 * wants it cordoned.
 */
export function uncordonFor(
  skyhook: string,
  { unschedulable, marks, before, keep }: CordonState,
): CordonChange | undefined {
  if (!marks.has(skyhook)) return undefined
  const isLast = marks.size === 1
  if (!isLast) return { removeMark: skyhook }
  const isKept = keep || before === true
  return { removeMark: skyhook, before: null, ...(unschedulable && !isKept && { unschedulable: false }) }
}

/**
 * A change of `unschedulable` by someone else, seen while marks exist: if someone cordons a node that we work on, we
 * assume they want it cordoned afterwards; if they uncordon it, they do not. `lastSeen` is what we saw or wrote last.
 */
export function cordonAfterExternalChange(
  lastSeen: boolean,
  { unschedulable, marks, before }: CordonState,
): CordonChange | undefined {
  if (marks.size === 0 || lastSeen === unschedulable || before === unschedulable) return undefined
  return { before: unschedulable }
}
