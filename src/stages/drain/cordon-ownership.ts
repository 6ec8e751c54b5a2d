import type { HeldCordon } from '../../schemas/journal.ts'

/**
 * Who a cordon belongs to. Administrators cordon nodes too, before we come and while we hold one; a node must end as
 * they last wished it. Invariant, searched in test/model/cordon.test.ts: when no mark of ours is left, the node is
 * unschedulable exactly when an administrator wants it so (or asked us to keep it).
 *
 * What is remembered on the Node: one mark per Skyhook, and `before`: whether the node was cordoned without us. The
 * journal has a copy of both, for a Node that loses them while the work lasts.
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
 * The Node's new fields; absent ones stay. All of it goes in one PATCH under the resourceVersion that the state was
 * read at.
 */
export type CordonChange = {
  readonly unschedulable?: boolean
  readonly addMark?: string
  readonly removeMark?: string
  /** null removes it. */
  readonly before?: boolean | null
}

/**
 * What the journal knows of `before` for a Node that lost it. Undefined where the Node says by itself whether it would
 * be cordoned without us: another Node of this name, one that lost its cordon too, one that somebody cordoned since.
 */
export function recalledBefore(
  { unschedulable }: CordonState,
  held: HeldCordon | undefined,
  { isSameNode, lastSeen }: { readonly isSameNode: boolean; readonly lastSeen: boolean | undefined },
): boolean | undefined {
  return isSameNode && unschedulable && lastSeen !== false ? held?.before : undefined
}

/**
 * What this Skyhook needs written to have the node cordoned under its mark; undefined when it is so already. Also the
 * way back after somebody uncordoned during our hold: a node found schedulable was wanted schedulable.
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
 * What giving the cordon back writes; the node becomes schedulable only with the last mark, and only if nobody else
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
 * A change of `unschedulable` by somebody else, seen while marks exist: if someone cordons a node that we work on, we
 * assume they want it cordoned afterwards; if they uncordon it, they do not. `lastSeen` is what we saw or wrote last.
 */
export function cordonAfterExternalChange(
  lastSeen: boolean,
  { unschedulable, marks, before }: CordonState,
): CordonChange | undefined {
  if (marks.size === 0 || lastSeen === unschedulable || before === unschedulable) return undefined
  return { before: unschedulable }
}
