/** Wrong rules, each of which looks right. The search has to find what it breaks. */
import { cordonedBeforeKey } from '../../../src/schemas/annotations.ts'
import { emptyJournal } from '../../../src/schemas/journal.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import { admit, type AdmissionVerdict } from '../../../src/lease/admission.ts'
import { heldIndices } from '../../../src/lease/slot.ts'
import { decide } from '../../../src/stages/decide.ts'
import { hasMark } from '../../../src/stages/drain/drain.ts'
import type { Action } from '../../../src/stages/model/plan.ts'
import type { OwnSlot, SlotOwnership, Snapshot } from '../../../src/stages/model/snapshot.ts'
import type { Decide } from '../../kit/node-simulator/node-simulator.ts'
import { masterLabel, poolLabel, skyhook } from './core.ts'
import { type FleetRules, productRules } from './rules.ts'

const withRules = (change: Partial<FleetRules>): FleetRules => ({ ...productRules, ...change })
const withDecide = (changed: Decide): FleetRules => withRules({ decide: changed })

/** The decision on another snapshot. */
const seeing = (change: (snapshot: Snapshot) => Snapshot): FleetRules =>
  withDecide((snapshot, reasons) => decide(change(snapshot), reasons))

/** The decision with other actions. */
const acting = (change: (actions: readonly Action[], snapshot: Snapshot) => readonly Action[]): FleetRules =>
  withDecide((snapshot, reasons) => {
    const plan = decide(snapshot, reasons)
    return { ...plan, actions: change(plan.actions, snapshot) }
  })

/** An admission that takes any free index for which this holds. */
const admitting = (isAdmitted: (index: number, held: readonly number[], limit: number) => boolean): FleetRules =>
  withRules({
    admit(listing, asking): AdmissionVerdict {
      const verdict = admit(listing, asking)
      const { limit } = asking.admissionFrom(listing)
      if (verdict.verdict === 'held' || typeof limit !== 'number') return verdict
      const held = heldIndices(listing.slots, asking.scope)
      const free = [0, 1, 2].filter((one) => !held.includes(one) && isAdmitted(one, held, limit))
      const index = free[asking.node.uid.charCodeAt(0) % free.length]
      if (index === undefined) return { verdict: 'wait', reason: '' }
      return { verdict: 'create', target: { index }, epoch: undefined }
    },
  })

const withSlots = (snapshot: Snapshot, change: (slot: OwnSlot) => OwnSlot): Snapshot =>
  snapshot.slots.known ? { ...snapshot, slots: { known: true, value: snapshot.slots.value.map(change) } } : snapshot

const withOwnership = (snapshot: Snapshot, change: (slot: OwnSlot) => SlotOwnership): Snapshot =>
  withSlots(snapshot, (slot) => ({ ...slot, ownership: change(slot) }))

/** Each plan is made for the first generation. */
const asOfNow = (slot: OwnSlot): OwnSlot => ({ ...slot, admittedUnder: { generation: 1 } })

const withAnnotation = (node: KubernetesNode, key: string, value: string): KubernetesNode =>
  key in (node.metadata.annotations ?? {})
    ? { ...node, metadata: { ...node.metadata, annotations: { ...node.metadata.annotations, [key]: value } } }
    : node

const withoutKeys = (values: Readonly<Record<string, string>> | undefined, key: string): Record<string, string> =>
  Object.fromEntries(Object.entries(values ?? {}).filter(([other]) => other !== key))

const hasBegun = ({ journal }: Snapshot): boolean => journal.skyhooks[skyhook]?.lifecycle !== undefined

export const variants = {
  'admits any free index below the budget': admitting((index, _, limit) => index < limit),
  'counts the holders instead of those above the index': admitting((_, held, limit) => held.length < limit),
  'leaves recovery slots out': withRules({
    admit: (listing, asking) =>
      admit({ ...listing, slots: listing.slots.filter(({ kind }) => kind !== 'recovery') }, asking),
  }),
  'starts without a confirmation': seeing((snapshot) =>
    withSlots(snapshot, (slot) => ({
      ...asOfNow(slot),
      ownership: slot.ownership === 'owned' ? 'confirmed' : slot.ownership,
    })),
  ),
  'starts under the confirmation of an earlier spec': seeing((snapshot) => withSlots(snapshot, asOfNow)),
  'never lists again before it starts': withRules({ isAdmissionCurrent: () => true }),
  'confirms started work by the budget': acting((actions, { skyhooks }) =>
    actions.map((action) => {
      const view = skyhooks.known ? skyhooks.value[0] : undefined
      const isLooking = action.do === 'renewSlot' && action.slot.ownership === 'seen' && view !== undefined
      return isLooking ? { do: 'confirmSlot', key: action.key, slot: action.slot, view } : action
    }),
  ),
  'releases before the uncordon': acting((actions, { slots, node, journal }) => {
    const isOver = journal.skyhooks[skyhook]?.applied !== undefined && hasMark(node, skyhook)
    const slot = slots.known ? slots.value[0] : undefined
    return isOver && slot ? [...actions, { do: 'releaseSlot', key: 'early', slot }] : actions
  }),
  'forgets that the node was cordoned before': seeing((snapshot) => ({
    ...snapshot,
    node: withAnnotation(snapshot.node, cordonedBeforeKey, 'false'),
  })),
  'forgets an unanswered creation': withRules({ remembersUnanswered: false }),
  'trusts a slot after an unanswered release': withRules({ doubtsReleases: false }),
  'looks for its slots only when it starts': withRules({ followsOwnSlots: false }),
  "asks for the control plane's slot only before it starts": seeing((snapshot) => {
    if (!hasBegun(snapshot)) return snapshot
    const { metadata } = snapshot.node
    const labels = withoutKeys(metadata.labels, masterLabel)
    return { ...snapshot, node: { ...snapshot.node, metadata: { ...metadata, labels } } }
  }),
  'lets a node that gave its slot back continue without asking': withDecide((snapshot, reasons) => {
    const plan = decide(snapshot, reasons)
    const before = snapshot.journal.skyhooks[skyhook]
    const after = plan.journal.skyhooks[skyhook]
    const isSelected = poolLabel in (snapshot.node.metadata.labels ?? {})
    if (isSelected || before?.lifecycle === undefined || after === undefined) return plan
    const skyhooks = { ...plan.journal.skyhooks, [skyhook]: { ...after, lifecycle: before.lifecycle } }
    return { ...plan, journal: { ...plan.journal, skyhooks } }
  }),
  'ignores the journal after a new registration': seeing((snapshot) => {
    const { uid } = snapshot.node.metadata
    return snapshot.journal.nodeUid === uid ? snapshot : { ...snapshot, journal: emptyJournal(uid) }
  }),
  'works under a slot that is in doubt': seeing((snapshot) =>
    withOwnership(snapshot, ({ ownership }) => (ownership === 'seen' ? 'owned' : ownership)),
  ),
  'lets time free a slot': withRules({ isListed: (_, isSilent) => !isSilent }),
  'keeps a slot that nothing needs': acting((actions) =>
    actions.filter((action) => action.do !== 'releaseSlot' || action.key === `slot/${skyhook}`),
  ),
} satisfies Record<string, FleetRules>
