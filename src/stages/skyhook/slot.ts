import type { Reason } from '../../schemas/catalogue/reason.ts'
import type { Journal, SkyhookRecord } from '../../schemas/journal.ts'
import { isEqual, ownValue } from '../../schemas/json.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import { cordonState, hasCordon } from '../drain/drain.ts'
import { hasRequiredTaint } from '../drain/node-spec.ts'
import { groupPods, podsInTheWay } from '../drain/pods.ts'
import { type PlanBuilder, requeueAt } from '../model/plan-builder.ts'
import { type Action, writePaceMs } from '../model/plan.ts'
import type { OwnSlot, SkyhookView, SlotDenial, SlotOwnership, Snapshot, SpecVersions } from '../model/snapshot.ts'

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

/**
 * Nodes that join the cluster: they carry the runtime-required taint and have no pods that must leave. Their capacity
 * is not in use yet, so they have a budget of their own (bootstrap).
 */

type Membership =
  | 'joining'
  | 'in-service'
  /** It has the taint, and its pods are not known yet. */
  | 'unknown'

export function membershipOf({ node, pods, settings, hasJoined }: Snapshot, { spec }: SkyhookView): Membership {
  if (hasJoined === true || !hasRequiredTaint(node, settings.runtimeRequiredTaint)) return 'in-service'
  if (!pods.known) return 'unknown'
  const inTheWay = podsInTheWay(groupPods(pods.value.pods, spec, settings))
  return inTheWay.length === 0 ? 'joining' : 'in-service'
}

/** Nothing starts under a slot of the budget for joining nodes on a node that is in service, or is about to be. */
export const isOfNoUse = (snapshot: Snapshot, view: SkyhookView, slot: OwnSlot | undefined): boolean =>
  slot?.isBootstrap === true && membershipOf(snapshot, view) === 'in-service'

/**
 * Running work on a node that was joining when it started, and is in service now: someone removed the taint. The slot
 * counts no capacity, but the node takes some.
 */
const isInServiceUnder = ({ node, settings }: Snapshot, slot: OwnSlot): boolean =>
  slot.isBootstrap === true && !hasRequiredTaint(node, settings.runtimeRequiredTaint)

/**
 * Unneeded slots, apart from those that the plans of Skyhooks keep or release themselves. Such a slot comes from a
 * CREATE that was answered late, a restored etcd or an earlier registration of the node. It shows up among the own
 * slots and goes by one of these rules:
 *
 * | slot                                              | goes when                                                  |
 * |---------------------------------------------------|------------------------------------------------------------|
 * | of an earlier registration of the node            | it is seen                                                 |
 * | a second one of its scope                         | the first is known to be ours                              |
 * | of a Skyhook that neither cluster nor journal has | no step, interrupt or cordon of it is left                 |
 * | the control plane's                               | no plan uses it or cordons, no cordon or interrupt is left |
 */
export function surplusSlots(
  snapshot: Snapshot,
  { journal, needsControlPlane }: { readonly journal: Journal; readonly needsControlPlane: boolean },
): readonly Action[] {
  if (!snapshot.slots.known) return []
  const former = snapshot.slots.value.filter(({ isFormer }) => isFormer)
  const current = snapshot.slots.value.filter(({ isFormer }) => !isFormer)
  const surplus = snapshot.skyhooks.known
    ? [
        ...former,
        ...secondSlots(current),
        ...foreignSlots(snapshot, journal, current),
        ...(isControlPlaneUnused(snapshot, journal, needsControlPlane) ? firstOf(current, 'control-plane') : []),
      ]
    : former
  return [...new Set(surplus)].map((slot) => ({ do: 'releaseSlot', key: `slot/${slot.lease}/${slot.uid}`, slot }))
}

function secondSlots(slots: readonly OwnSlot[]): readonly OwnSlot[] {
  const scopes = Map.groupBy(
    slots.filter(({ scope, skyhookUid }) => scope === 'control-plane' || skyhookUid !== undefined),
    ({ scope, skyhookUid }) => `${scope}/${skyhookUid ?? ''}`,
  )
  return [...scopes.values()].flatMap((sameScope) => {
    const best = bestSlot(sameScope)
    return best === undefined || !isOwned(best) ? [] : sameScope.filter((slot) => slot !== best)
  })
}

function firstOf(slots: readonly OwnSlot[], scope: OwnSlot['scope']): readonly OwnSlot[] {
  const first = bestSlot(slots.filter((slot) => slot.scope === scope))
  return first ? [first] : []
}

function foreignSlots(
  snapshot: Snapshot,
  { skyhooks: records }: Journal,
  slots: readonly OwnSlot[],
): readonly OwnSlot[] {
  const views = snapshot.skyhooks.known ? snapshot.skyhooks.value : []
  const names = new Set(views.map(({ metadata }) => metadata.name))
  const uids = new Set(views.map(({ metadata }) => metadata.uid))
  const isOwned = ({ skyhook, skyhookUid }: OwnSlot): boolean =>
    skyhookUid !== undefined &&
    (names.has(skyhook) ? uids.has(skyhookUid) : ownValue(records, skyhook)?.uid === skyhookUid)
  return slots.filter(
    (slot) => slot.scope === 'skyhook' && !isOwned(slot) && isFreeOf(snapshot, slot, ownValue(records, slot.skyhook)),
  )
}

/** No step, no interrupt and no cordon of the Skyhook is left. */
const isFreeOf = (snapshot: Snapshot, { skyhook }: OwnSlot, record: SkyhookRecord | undefined): boolean =>
  record?.canceling === undefined && !record?.interrupt?.abandoned && !hasCordon(snapshot, skyhook)

const isControlPlaneUnused = (snapshot: Snapshot, { skyhooks }: Journal, needsControlPlane: boolean): boolean =>
  !needsControlPlane &&
  cordonState(snapshot.node).marks.size === 0 &&
  (snapshot.journal.cordon === undefined || snapshot.node.spec?.unschedulable !== true) &&
  Object.values(skyhooks).every(({ interrupt }) => interrupt === undefined)
