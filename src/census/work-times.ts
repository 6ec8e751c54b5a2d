/**
 * How long nodes are at work, as the census sees it: from the turn in which a node is first at work to the one in which
 * it is complete. That is how long it holds its slot, except for the soak and the second until its Node is updated.
 * Pure.
 */
import { readSlotTimes, type RolloutTimes, withSlotTime } from '../lease/slot-times.ts'
import type { Ledger } from '../lease/ledger.ts'
import type { NodeStatus } from '../schemas/skyhook.ts'
import type { Counts } from './count.ts'
import type { NodeFact } from './node-facts.ts'

export type WorkTimes = {
  readonly slotTimes: readonly RolloutTimes[]
  /** Since when nodes are at work, monotonic ms; NaN: since before this census. */
  readonly sinceMs: ReadonlyMap<string, number>
}

/**
 * After a turn that counted these nodes. The first turn of a census continues what the ledger says. Nodes that it finds
 * at work started at an unknown time and do not count.
 */
export function nextWorkTimes(
  before: WorkTimes | undefined,
  { nodes, applied }: Pick<Counts, 'applied'> & { readonly nodes: readonly Pick<NodeFact, 'name' | 'status'>[] },
  ledger: Ledger | undefined,
  nowMs: number,
): WorkTimes {
  let slotTimes = before?.slotTimes ?? readSlotTimes(ledger?.slotTimes)
  const sinceMs = new Map<string, number>()
  for (const { name, status } of nodes) {
    const startedMs = before?.sinceMs.get(name)
    if (isAtWork(status)) sinceMs.set(name, startedMs ?? (before === undefined ? NaN : nowMs))
    else if (startedMs === undefined) continue
    else if (status === 'complete') {
      if (!Number.isNaN(startedMs)) slotTimes = withSlotTime(slotTimes, applied, nowMs - startedMs)
    } else if (mayHaveSlot(status)) sinceMs.set(name, startedMs)
  }
  return { slotTimes, sinceMs }
}

const isAtWork = (status: NodeStatus): boolean => status === 'in_progress' || status === 'erroring'

/** A node that waits has no slot, or started again. */
const mayHaveSlot = (status: NodeStatus): boolean => status !== 'waiting'
