import { hasCordon } from '../drain/drain.ts'
import type { Action } from '../model/plan.ts'
import { type PlanBuilder, requeueAt } from '../model/plan-builder.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import type { Reason } from '../../schemas/catalogue/reasons.ts'
import { isEqual } from '../../schemas/equal.ts'
import type { OwnSlot, SkyhookView, SlotDenial, SlotOwnership, Snapshot, SpecVersions } from '../model/snapshot.ts'
import { writePaceMs } from '../model/write-pace.ts'
import { isInServiceUnder } from './joining.ts'

/** The interval of a holder's reports, which show people and the census that it is alive. */
const renewIntervalMs = 60_000
/** The data of a confirmation may have changed since: pause, budget, spec. Broken watches may not show it. */
const confirmationLastsMs = 10_000
/** A shorter phase is not reported. */
const phaseIntervalMs = 1_000

/** The slot of a Skyhook that counts: of several the best confirmed one. The others are surplus. */
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

/** Started work must own its slot. Unstarted work also needs a recent confirmation of the current spec. */
export const mayWorkUnder = (
  { snapshot, view }: PlanBuilder,
  slot: OwnSlot | undefined,
  hasStarted: boolean,
): boolean => slot !== undefined && (hasStarted ? isOwned(slot) : mayStartUnder(slot, view, snapshot.nowMs))

/** Whether the first step may start now. `nowMs`: of the steady clock. */
export const mayStartUnder = (slot: OwnSlot, view: SkyhookView, nowMs: number): boolean =>
  isConfirmedFor(slot, view) && nowMs - slot.renewedAtMs < confirmationLastsMs

/** A confirmation only counts for the spec and the policy that were read for it, not for later ones. */
export const isConfirmedFor = ({ ownership, admittedUnder }: OwnSlot, view: SkyhookView): boolean =>
  ownership === 'confirmed' && isEqual(admittedUnder, versionsOf(view))

/** The versions under which a request for a slot of the Skyhook, as known on this node, is admitted. */
export const versionsOf = ({ metadata: { generation = 0 }, policy }: SkyhookView): SpecVersions => ({
  generation,
  ...(policy?.state === 'found' && { policy: { uid: policy.uid, generation: policy.generation } }),
})

/** An answer proved that it is ours, and it is not being deleted. */
export const isOwned = ({ ownership }: OwnSlot): boolean => ownership === 'owned' || ownership === 'confirmed'

/**
 * Before the first step: requests a slot, or a confirmation of the granted one; not again before the last answer allows
 * it. Makes no request while the node still carries the cordon of earlier work.
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
  // the control plane's comes first: it must not be given back before the Skyhook's is answered
  if (asked.withControlPlane) builder.usesControlPlane = true
  actions.push({ do: 'acquireSlot', key, view, ...asked })
}

/** True if no answer asks the node to wait; otherwise requeues the plan for the end of the wait. */
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

/** Started work without a slot takes one, after a pause if the last one did not last. */
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

/** Why started work currently has no slot of its own. */
export function missingSlotReason(builder: PlanBuilder, slot: OwnSlot | undefined): Reason | undefined {
  const denial = slot ? undefined : recoveryDenial(builder)
  return denial && { reason: 'WaitingForSlot', message: denial.message }
}

/**
 * The slot of started work: created again without a request if it was lost, or if it counts no capacity although the
 * node now has some, and renewed with its phase. Only its loss matters: budget, pause and spec no longer do.
 */
export function keepSlot(builder: PlanBuilder, slot: OwnSlot | undefined, phase: SlotPhase): void {
  const { snapshot, view } = builder
  const key = `slot/${view.metadata.name}`
  if (slot && !isInServiceUnder(snapshot, slot)) renewWhenDue(builder, key, slot, phase)
  else if (snapshot.slots.known) createRecoverySlot(builder, { key, scope: 'skyhook', phase })
}

/** At once if the slot may no longer be ours. */
export function renewWhenDue(builder: PlanBuilder, key: string, slot: OwnSlot, phase: SlotPhase): void {
  if (slot.ownership === 'releasing') return // its end wakes the agent
  const dueAtMs = slot.ownership === 'seen' ? 0 : slot.renewedAtMs + renewalDelayMs(slot, phase, builder.snapshot)
  if (dueAtMs <= builder.snapshot.nowMs) builder.actions.push({ do: 'renewSlot', key, slot, phase })
  else requeueAt(builder, dueAtMs)
}

function renewalDelayMs(slot: OwnSlot, phase: SlotPhase, snapshot: Snapshot): number {
  if (phase === 'failed' && slot.phase !== 'failed') return 0
  const isWrittenByInterrupt = phase === 'interrupting' || phase === 'rebooting'
  return slot.phase === phase || isWrittenByInterrupt ? renewIntervalMs : writePaceMs(phaseIntervalMs, snapshot)
}
