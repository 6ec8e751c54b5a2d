import { cordonState } from '../drain/drain.ts'
import type { Draft } from '../model/plan-builder.ts'
import { wakeAt } from '../model/plan-builder.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import type { OwnSlot, SkyhookView, World } from '../model/snapshot.ts'

/** A holder reports this often, so that people and the census see that it lives. */
const renewEveryMs = 60_000
/** A phase that passes sooner is not worth a request. */
const phasesEveryMs = 1_000

export const ownSlot = (world: World, view: SkyhookView): OwnSlot | undefined =>
  world.slots.known ? world.slots.value.find(({ skyhookUid }) => skyhookUid === view.metadata.uid) : undefined

/** Asks for a slot, or has the granted one confirmed; not again before the last answer allows it. */
export function askForSlot(draft: Draft, slot: OwnSlot | undefined, phase: SlotPhase): void {
  const { world, view } = draft
  const { name } = view.metadata
  if (slot) {
    if (!slot.confirmed) draft.actions.push({ do: 'confirmSlot', key: `slot/${name}`, slot, view })
    return
  }
  if (!world.slots.known) return
  const asked = world.waiting.get(name)
  if (asked && asked.askAgainAtMs > world.nowMs) wakeAt(draft, asked.askAgainAtMs)
  else draft.actions.push({ do: 'acquireSlot', key: `slot/${name}`, view, phase })
}

/** Uncordon always precedes release: whoever takes the slot next must not find this node cordoned under it. */
export function releaseSlot(draft: Draft, slot: OwnSlot): void {
  if (cordonState(draft.world.node).marks.has(draft.view.metadata.name)) return
  draft.actions.push({ do: 'releaseSlot', key: `slot/${draft.view.metadata.name}`, slot })
}

/** The slot of begun work: taken again without asking if a person deleted it, and kept fresh with its phase. */
export function keepSlot(draft: Draft, slot: OwnSlot | undefined, phase: SlotPhase): void {
  const { world, view } = draft
  const name = view.metadata.name
  if (!slot) {
    if (world.slots.known) draft.actions.push({ do: 'adoptSlot', key: `slot/${name}`, view, phase })
    return
  }
  if (!slot.confirmed) {
    draft.actions.push({ do: 'confirmSlot', key: `slot/${name}`, slot, view })
    return
  }
  const due = slot.renewedAtMs + renewalPause(slot, phase)
  if (due <= world.nowMs) draft.actions.push({ do: 'renewSlot', key: `slot/${name}`, slot, phase })
  else wakeAt(draft, due)
}

function renewalPause(slot: OwnSlot, phase: SlotPhase): number {
  if (phase === 'failed' && slot.phase !== 'failed') return 0
  const writtenByTheInterrupt = phase === 'interrupting' || phase === 'rebooting'
  return slot.phase === phase || writtenByTheInterrupt ? renewEveryMs : phasesEveryMs
}
