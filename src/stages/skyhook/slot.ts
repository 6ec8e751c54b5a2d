import { hasCordon } from '../drain/drain.ts'
import type { Action } from '../model/plan.ts'
import { type PlanBuilder, requeueAt } from '../model/plan-builder.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import type { Reason } from '../../schemas/catalogue/reasons.ts'
import { isEqual } from '../../schemas/equal.ts'
import type { OwnSlot, SkyhookView, SlotDenial, SlotOwnership, Snapshot, SpecVersions } from '../model/snapshot.ts'
import { isInServiceUnder } from './joining.ts'

/** A holder reports this often, so that people and the census see that it lives. */
const renewIntervalMs = 60_000
/** What was read for a confirmation may have changed since: pause, budget, spec. Watches may be too broken to tell. */
const confirmationLastsMs = 10_000
/** A phase that passes sooner is not worth a request. */
const phaseIntervalMs = 1_000

/** The slot of a Skyhook that counts: of several the one that is known best. The others are surplus. */
export const slotOfSkyhook = ({ slots }: Snapshot, skyhookUid: string): OwnSlot | undefined =>
  slots.known
    ? bestSlot(slots.value.filter((slot) => slot.scope === 'skyhook' && slot.skyhookUid === skyhookUid))
    : undefined

export const ownSlot = (snapshot: Snapshot, view: SkyhookView): OwnSlot | undefined =>
  slotOfSkyhook(snapshot, view.metadata.uid)

const ownerships: readonly SlotOwnership[] = ['confirmed', 'owned', 'seen', 'releasing']

/** Of several slots of one scope, or of a Skyhook, the one to keep: one that counts capacity before one that does not. */
export const bestSlot = (slots: readonly OwnSlot[]): OwnSlot | undefined =>
  slots
    .filter(({ isFormer }) => !isFormer)
    .toSorted(
      (a, b) =>
        Number(a.isBootstrap ?? false) - Number(b.isBootstrap ?? false) ||
        ownerships.indexOf(a.ownership) - ownerships.indexOf(b.ownership) ||
        (a.lease < b.lease ? -1 : Number(a.lease > b.lease)),
    )[0]

/**
 * Started work needs to own its slot. Work that has not started needs a confirmation of the spec at hand as well, of a
 * moment ago.
 */
export const mayWorkUnder = (
  { snapshot, view }: PlanBuilder,
  slot: OwnSlot | undefined,
  hasStarted: boolean,
): boolean => slot !== undefined && (hasStarted ? isOwned(slot) : mayStartUnder(slot, view, snapshot.nowMs))

/** Whether the first step may start now. `nowMs`: of the steady clock. */
export const mayStartUnder = (slot: OwnSlot, view: SkyhookView, nowMs: number): boolean =>
  isConfirmedFor(slot, view) && nowMs - slot.renewedAtMs < confirmationLastsMs

/** A confirmation is one of the spec and the policy that were read for it, and says nothing about later ones. */
export const isConfirmedFor = ({ ownership, admittedUnder }: OwnSlot, view: SkyhookView): boolean =>
  ownership === 'confirmed' && isEqual(admittedUnder, versionsOf(view))

/** What a request for a slot of the Skyhook, as this node knows it, is admitted under. */
export const versionsOf = ({ metadata: { generation = 0 }, policy }: SkyhookView): SpecVersions => ({
  generation,
  ...(policy?.state === 'found' && { policy: { uid: policy.uid, generation: policy.generation } }),
})

/** An answer said that it is ours, and no deletion is under way. */
export const isOwned = ({ ownership }: OwnSlot): boolean => ownership === 'owned' || ownership === 'confirmed'

/**
 * Before the first step: asks for a slot, or has the granted one confirmed; not again before the last answer allows it.
 * Nothing is asked while the node still carries the cordon of earlier work.
 */
export function requestSlot(
  builder: PlanBuilder,
  slot: OwnSlot | undefined,
  request: Pick<Extract<Action, { do: 'acquireSlot' }>, 'phase' | 'withControlPlane' | 'isJoining'> & {
    /** Something else keeps the work from starting: a confirmation would be too old when that ends. */
    readonly isHeldUp: boolean
  },
): void {
  const { isHeldUp, ...asked } = request
  const { snapshot, view, actions } = builder
  const { name } = view.metadata
  builder.asksForSlot = true
  if (hasCordon(snapshot, name) || !snapshot.slots.known) return
  const key = `slot/${name}`
  if (slot?.ownership === 'releasing') return // its end wakes the agent
  if (slot) {
    const dueAtMs = slot.renewedAtMs + renewIntervalMs
    const isCurrent = isHeldUp ? isConfirmedFor(slot, view) : mayStartUnder(slot, view, snapshot.nowMs)
    if (isCurrent && dueAtMs > snapshot.nowMs) requeueAt(builder, dueAtMs)
    else actions.push({ do: 'confirmSlot', key, slot, view })
    return
  }
  if (!isRequestDue(builder)) return
  // the control plane's comes first: it is not to be given back before the Skyhook's is answered
  if (asked.withControlPlane) builder.usesControlPlane = true
  actions.push({ do: 'acquireSlot', key, view, ...asked })
}

/** No answer asks for patience; else the plan is made again when it is over. */
export function isRequestDue(builder: PlanBuilder): boolean {
  builder.asksForSlot = true
  const { snapshot, view } = builder
  const denial = snapshot.slotDenials.get(view.metadata.name)
  if (!denial || denial.nextRequestAtMs <= snapshot.nowMs) return true
  requeueAt(builder, denial.nextRequestAtMs)
  return false
}

/** Uncordon always precedes release: the next holder must not find this node cordoned under the slot. */
export function releaseSlot(builder: PlanBuilder, slot: OwnSlot): void {
  if (hasCordon(builder.snapshot, builder.view.metadata.name)) return
  builder.actions.push({ do: 'releaseSlot', key: `slot/${builder.view.metadata.name}`, slot })
}

/** Started work that has no slot takes one, but for a pause after one that did not last. */
export function createRecoverySlot(
  builder: PlanBuilder,
  { key, scope, phase }: Pick<Extract<Action, { do: 'createRecoverySlot' }>, 'key' | 'scope' | 'phase'>,
): void {
  const { view, actions } = builder
  if (recoveryDenial(builder) === undefined || isRequestDue(builder))
    actions.push({ do: 'createRecoverySlot', key, scope, view, phase })
}

const recoveryDenial = ({ snapshot, view }: PlanBuilder): SlotDenial | undefined => {
  const denial = snapshot.slotDenials.get(view.metadata.name)
  return denial?.waitsFor === 'recovery' ? denial : undefined
}

/** Why started work has no slot of its own at the moment. */
export function missingSlotReason(builder: PlanBuilder, slot: OwnSlot | undefined): Reason | undefined {
  const denial = slot ? undefined : recoveryDenial(builder)
  return denial && { reason: 'WaitingForSlot', message: denial.message }
}

/**
 * The slot of started work: created again without a request if it was lost, or if it counts no capacity that the node
 * has by now, and renewed with its phase. Nothing but its loss is asked about: budget, pause and spec do not matter any
 * more.
 */
export function keepSlot(builder: PlanBuilder, slot: OwnSlot | undefined, phase: SlotPhase): void {
  const { snapshot, view } = builder
  const key = `slot/${view.metadata.name}`
  if (slot && !isInServiceUnder(snapshot, slot)) renewWhenDue(builder, key, slot, phase)
  else if (snapshot.slots.known) createRecoverySlot(builder, { key, scope: 'skyhook', phase })
}

/** At once where it is in doubt whether the slot is still ours. */
export function renewWhenDue(builder: PlanBuilder, key: string, slot: OwnSlot, phase: SlotPhase): void {
  if (slot.ownership === 'releasing') return // its end wakes the agent
  const dueAtMs = slot.ownership === 'seen' ? 0 : slot.renewedAtMs + renewalDelayMs(slot, phase)
  if (dueAtMs <= builder.snapshot.nowMs) builder.actions.push({ do: 'renewSlot', key, slot, phase })
  else requeueAt(builder, dueAtMs)
}

function renewalDelayMs(slot: OwnSlot, phase: SlotPhase): number {
  if (phase === 'failed' && slot.phase !== 'failed') return 0
  const isWrittenByInterrupt = phase === 'interrupting' || phase === 'rebooting'
  return slot.phase === phase || isWrittenByInterrupt ? renewIntervalMs : phaseIntervalMs
}
