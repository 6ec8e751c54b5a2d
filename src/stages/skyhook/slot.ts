import { cordonState } from '../drain/drain.ts'
import { type PlanBuilder, requeueAt } from '../model/plan-builder.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import type { OwnSlot, SkyhookView, Snapshot } from '../model/snapshot.ts'

/** A holder reports this often, so that people and the census see that it lives. */
const renewIntervalMs = 60_000
/** A phase that passes sooner is not worth a request. */
const phaseIntervalMs = 1_000

export const ownSlot = (snapshot: Snapshot, view: SkyhookView): OwnSlot | undefined =>
  snapshot.slots.known ? snapshot.slots.value.find(({ skyhookUid }) => skyhookUid === view.metadata.uid) : undefined

/** Asks for a slot, or has the granted one confirmed; not again before the last answer allows it. */
export function requestSlot(builder: PlanBuilder, slot: OwnSlot | undefined, phase: SlotPhase): void {
  const { snapshot, view } = builder
  const { name } = view.metadata
  if (slot) {
    if (!slot.confirmed) builder.actions.push({ do: 'confirmSlot', key: `slot/${name}`, slot, view })
    return
  }
  if (!snapshot.slots.known) return
  const denial = snapshot.slotDenials.get(name)
  if (denial && denial.nextRequestAtMs > snapshot.nowMs) requeueAt(builder, denial.nextRequestAtMs)
  else builder.actions.push({ do: 'acquireSlot', key: `slot/${name}`, view, phase })
}

/** Uncordon always precedes release: the next holder must not find this node cordoned under the slot. */
export function releaseSlot(builder: PlanBuilder, slot: OwnSlot): void {
  if (cordonState(builder.snapshot.node).marks.has(builder.view.metadata.name)) return
  builder.actions.push({ do: 'releaseSlot', key: `slot/${builder.view.metadata.name}`, slot })
}

/** The slot of started work: created again without a request if a person deleted it, and renewed with its phase. */
export function keepSlot(builder: PlanBuilder, slot: OwnSlot | undefined, phase: SlotPhase): void {
  const { snapshot, view } = builder
  const name = view.metadata.name
  if (!slot) {
    if (snapshot.slots.known) builder.actions.push({ do: 'createRecoverySlot', key: `slot/${name}`, view, phase })
    return
  }
  if (!slot.confirmed) {
    builder.actions.push({ do: 'confirmSlot', key: `slot/${name}`, slot, view })
    return
  }
  const due = slot.renewedAtMs + renewalDelayMs(slot, phase)
  if (due <= snapshot.nowMs) builder.actions.push({ do: 'renewSlot', key: `slot/${name}`, slot, phase })
  else requeueAt(builder, due)
}

function renewalDelayMs(slot: OwnSlot, phase: SlotPhase): number {
  if (phase === 'failed' && slot.phase !== 'failed') return 0
  const isWrittenByInterrupt = phase === 'interrupting' || phase === 'rebooting'
  return slot.phase === phase || isWrittenByInterrupt ? renewIntervalMs : phaseIntervalMs
}
