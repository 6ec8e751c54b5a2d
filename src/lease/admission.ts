/** What one consistent LIST of a scope allows the asking node. Pure; the requests are in slot-acquisition.ts. */
import { isPastWork } from '../schemas/skyhook.ts'
import type { Scope } from './names.ts'
import { admissibleIndices, isStillAdmissible, pickIndex, type Limit } from './rule.ts'
import type { ScopeListing } from './slot-reads.ts'
import { heldIndices, isHeldBy, type NodeIdentity, type Slot, type SlotTarget } from './slot.ts'
import { counted } from '../schemas/wording.ts'

/** What ledger and slots of the same LIST allow the asking node. */
export type Admission = {
  readonly limit: Limit
  readonly epoch?: number | undefined
  /** Why the limit is 0 where the budget is not. */
  readonly stop?: string | undefined
}

export type Asking = {
  readonly scope: Scope
  readonly node: NodeIdentity
  readonly admissionFrom: (listing: ScopeListing) => Admission
  /** Index of a CREATE without an answer: it may still be carried out. */
  readonly unansweredIndex?: number | undefined
  /** Preferred among the free indices: one that the node has seen free. */
  readonly preferredIndex?: number | undefined
}

/** Why a slot whose work has ended admits no new work. */
export const unreleasedReason = 'the slot of the finished work is not released yet'

export type AdmissionVerdict =
  /** The node holds `slot` already; `duplicates` make it count more than once. */
  | { readonly verdict: 'held'; readonly slot: Slot; readonly duplicates: readonly Slot[] }
  | {
      readonly verdict: 'create'
      readonly target: SlotTarget
      readonly epoch: number | undefined
    }
  | { readonly verdict: 'wait'; readonly reason: string }

/**
 * Whether the node may create a slot now, and which. While a CREATE is unanswered only the same name is created again:
 * of two requests for one name at most one succeeds, even if the first arrives late.
 */
export function admit(
  listing: ScopeListing,
  { scope, node, admissionFrom, unansweredIndex, preferredIndex }: Asking,
): AdmissionVerdict {
  const { slots } = listing
  const [slot, ...duplicates] = ownSlotsIn(slots, scope, node)
  if (slot !== undefined && isPastWork(slot.phase)) return { verdict: 'wait', reason: unreleasedReason }
  if (slot !== undefined) return { verdict: 'held', slot, duplicates }

  const { limit, epoch } = admissionFrom(listing)
  if (typeof limit === 'object') return { verdict: 'wait', reason: `budget unknown: ${limit.unknown}` }
  if (limit === 'unlimited') return { verdict: 'create', target: { kind: 'unlimited' }, epoch }
  const held = heldIndices(slots, scope)
  const free = admissibleIndices(held, limit)
  if (unansweredIndex !== undefined && !held.includes(unansweredIndex))
    return free.includes(unansweredIndex)
      ? { verdict: 'create', target: { index: unansweredIndex }, epoch }
      : { verdict: 'wait', reason: 'the API server has not answered whether it created the slot' }
  const index = pickIndex(free, node.uid, preferredIndex)
  if (index !== undefined) return { verdict: 'create', target: { index }, epoch }
  return { verdict: 'wait', reason: fullReason(limit, scope) }
}

/**
 * Why no other node may start, without counters and names: each change of the text would be a write of each waiting
 * Node.
 */
export function fullReason(limit: number, scope?: Pick<Scope, 'kind'>): string {
  const joining = scope?.kind === 'bootstrap' ? 'joining ' : ''
  if (limit === 0) return joining === '' ? 'the budget is 0' : 'the budget for joining nodes is 0'
  return `the budget of ${counted(limit, `${joining}node`)} is used up`
}

/** Why a holder that has not started any work gives its slot back; undefined if it may keep it. */
export function refusalOf(
  listing: ScopeListing,
  { own, duplicates }: { readonly own: Slot; readonly duplicates: readonly Slot[] },
  { scope, admissionFrom }: Pick<Asking, 'scope' | 'admissionFrom'>,
): string | undefined {
  const { limit, epoch, stop } = admissionFrom(listing)
  if (typeof limit === 'object') return `budget unknown: ${limit.unknown}`
  if (epoch !== undefined && epoch !== own.epoch) return outsideOfBatch(own)
  if (limit === 'unlimited') return undefined
  if (own.index === Infinity) return outsideOfBudget(own)
  const others = listing.slots.filter((other) => other !== own && !duplicates.includes(other))
  const otherIndices = heldIndices(others, scope)
  if (isStillAdmissible(own.index, otherIndices, limit)) return undefined
  const heldCount = otherIndices.length + 1
  return stop ?? `the budget fell to ${limit} while ${counted(heldCount, 'slot was', 'slots were')} held`
}

const outsideOfBatch = (own: Slot): string => {
  if (own.epoch !== undefined) return `batch ${own.epoch} is over`
  return own.index === Infinity ? outsideOfBudget(own) : 'the slot was granted outside of the batches of a policy'
}

/** Why a slot without an index grants no start. */
const outsideOfBudget = ({ kind }: Slot): string =>
  kind === 'recovery'
    ? 'the slot was created for running work, which has finished'
    : 'the slot was granted without a budget'

/** The node's slots of the scope, the one to keep first. */
export function ownSlotsIn(slots: readonly Slot[], scope: Scope, node: NodeIdentity): Slot[] {
  return slots
    .filter((slot) => slot.scope === scope.hash && isHeldBy(slot, node))
    .toSorted((a, b) => a.index - b.index || 0)
}
