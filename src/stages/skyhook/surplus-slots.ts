import type { Journal, SkyhookRecord } from '../../schemas/journal.ts'
import { ownValue } from '../../schemas/own-value.ts'
import { cordonState, hasCordon } from '../drain/drain.ts'
import type { Action } from '../model/plan.ts'
import type { OwnSlot, Snapshot } from '../model/snapshot.ts'
import { bestSlot, isOwned } from './slot.ts'

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
