/** Wrong rules, each of which looks right, what each breaks, and a search that finds it. */
import { cordonedBeforeKey } from '../../../src/schemas/annotations.ts'
import { emptyJournal } from '../../../src/schemas/journal.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import { admit, type AdmissionVerdict } from '../../../src/lease/admission.ts'
import { heldIndices } from '../../../src/lease/slot.ts'
import { decide } from '../../../src/stages/decide.ts'
import { hasMark } from '../../../src/stages/drain/drain.ts'
import type { Action } from '../../../src/stages/model/plan.ts'
import type { OwnSlot, Snapshot } from '../../../src/stages/model/snapshot.ts'
import { masterLabel, poolLabel, skyhook } from './core.ts'
import { interruptingLater, type Search } from './explore.ts'
import type { FleetRules } from './rules.ts'
import type { Fault } from './world.ts'

type Wrong = {
  readonly rules: Partial<FleetRules>
  readonly search: Search
  readonly violation: string
}

/** The decision on another snapshot. */
const seeing = (change: (snapshot: Snapshot) => Snapshot): Partial<FleetRules> => ({
  decide: (snapshot, reasons) => decide(change(snapshot), reasons),
})

/** The decision with other actions. */
const acting = (
  change: (actions: readonly Action[], snapshot: Snapshot) => readonly Action[],
): Partial<FleetRules> => ({
  decide(snapshot, reasons) {
    const plan = decide(snapshot, reasons)
    return { ...plan, actions: change(plan.actions, snapshot) }
  },
})

/** An admission that takes any free index for which this holds. */
const admitting = (
  isAdmitted: (index: number, held: readonly number[], limit: number) => boolean,
): Partial<FleetRules> => ({
  admit(listing, asking): AdmissionVerdict {
    const verdict = admit(listing, asking)
    const { limit } = asking.admissionFrom(listing)
    if (verdict.verdict === 'held' || typeof limit !== 'number') return verdict
    const held = heldIndices(listing.slots, asking.scope)
    const free = [0, 1, 2].filter((one) => !held.includes(one) && isAdmitted(one, held, limit))
    const index = free[asking.node.uid.charCodeAt(0) % free.length]
    if (index === undefined) return { verdict: 'wait', reason: '' }
    return { verdict: 'create', target: { index }, epoch: undefined, othersFree: free.length - 1 }
  },
})

const withSlots = (snapshot: Snapshot, change: (slot: OwnSlot) => OwnSlot): Snapshot =>
  snapshot.slots.known ? { ...snapshot, slots: { known: true, value: snapshot.slots.value.map(change) } } : snapshot

/** Each plan is made for the first generation. */
const asOfNow = (slot: OwnSlot): OwnSlot => ({ ...slot, admittedUnder: { generation: 1 } })

const withAnnotation = (node: KubernetesNode, key: string, value: string): KubernetesNode =>
  key in (node.metadata.annotations ?? {})
    ? { ...node, metadata: { ...node.metadata, annotations: { ...node.metadata.annotations, [key]: value } } }
    : node

const withoutKeys = (values: Readonly<Record<string, string>> | undefined, key: string): Record<string, string> =>
  Object.fromEntries(Object.entries(values ?? {}).filter(([other]) => other !== key))

const hasBegun = ({ journal }: Snapshot): boolean => journal.skyhooks[skyhook]?.lifecycle !== undefined

const calm = (nodes: number, ...budgets: readonly number[]): Search => ({ nodes, budgets })
const disturbed = (nodes: number, fault: Fault, ...budgets: readonly number[]): Search => ({
  ...calm(nodes, ...budgets),
  faults: [fault],
})

const tooManyOut = '2 nodes are out, the budget was 1'
const unconfirmed = 'work begins under a slot that was not confirmed for its spec'
const earlyRelease = 'released the slot (skyhook) before the uncordon'

export const variants: Readonly<Record<string, Wrong>> = {
  'admits any free index below the budget': {
    rules: admitting((index, _, limit) => index < limit),
    search: calm(2, 2, 1),
    violation: tooManyOut,
  },
  'counts the holders instead of those above the index': {
    rules: admitting((_, held, limit) => held.length < limit),
    search: calm(2, 1),
    violation: tooManyOut,
  },
  'leaves recovery slots out': {
    rules: {
      admit: (listing, asking) =>
        admit({ ...listing, slots: listing.slots.filter(({ kind }) => kind !== 'recovery') }, asking),
    },
    search: disturbed(2, 'slot deleted', 1),
    violation: tooManyOut,
  },
  'starts without a confirmation': {
    rules: seeing((snapshot) =>
      withSlots(snapshot, (slot) => ({
        ...asOfNow(slot),
        ownership: slot.ownership === 'owned' ? 'confirmed' : slot.ownership,
      })),
    ),
    search: calm(2, 2, 1),
    violation: unconfirmed,
  },
  'starts under the confirmation of an earlier spec': {
    rules: seeing((snapshot) => withSlots(snapshot, asOfNow)),
    search: calm(1, 2, 1),
    violation: unconfirmed,
  },
  'never lists again before it starts': {
    rules: { isAdmissionCurrent: () => true },
    search: calm(2, 2, 1),
    violation: tooManyOut,
  },
  'confirms started work by the budget': {
    rules: acting((actions, { skyhooks }) =>
      actions.map((action) => {
        const view = skyhooks.known ? skyhooks.value[0] : undefined
        const isLooking = action.do === 'renewSlot' && action.slot.ownership === 'seen' && view !== undefined
        return isLooking ? { do: 'confirmSlot', key: action.key, slot: action.slot, view } : action
      }),
    ),
    search: disturbed(1, 'agent killed', 1, 0, 1),
    violation: earlyRelease,
  },
  'releases before the uncordon': {
    rules: acting((actions, { slots, node, journal }) => {
      const isOver = journal.skyhooks[skyhook]?.applied !== undefined && hasMark(node, skyhook)
      const slot = slots.known ? slots.value[0] : undefined
      return isOver && slot ? [...actions, { do: 'releaseSlot', key: 'early', slot }] : actions
    }),
    search: calm(1, 1),
    violation: earlyRelease,
  },
  'forgets that the node was cordoned before': {
    rules: seeing((snapshot) => ({
      ...snapshot,
      node: withAnnotation(snapshot.node, cordonedBeforeKey, 'false'),
    })),
    search: disturbed(1, 'cordon by the administrator', 1),
    violation: "lost the administrator's cordon",
  },
  'forgets an unanswered creation': {
    rules: { remembersUnanswered: false },
    search: disturbed(1, 'commit late', 2),
    violation: 'the agent created two slots of one scope',
  },
  'trusts a slot after an unanswered release': {
    rules: { doubtsReleases: false },
    search: disturbed(1, 'commit late', 2, 1),
    violation: earlyRelease,
  },
  'looks for its slots only when it starts': {
    rules: { followsOwnSlots: false },
    search: disturbed(2, 'commit late', 1),
    violation: 'never complete',
  },
  "asks for the control plane's slot only before it starts": {
    rules: seeing((snapshot) => {
      if (!hasBegun(snapshot)) return snapshot
      const { metadata } = snapshot.node
      const labels = withoutKeys(metadata.labels, masterLabel)
      return { ...snapshot, node: { ...snapshot.node, metadata: { ...metadata, labels } } }
    }),
    search: { ...calm(2, 2), isControlPlane: true, spec: interruptingLater },
    violation: 'two nodes of the control plane are out of service',
  },
  'lets a node that gave its slot back continue without asking': {
    rules: {
      decide(snapshot, reasons) {
        const plan = decide(snapshot, reasons)
        const before = snapshot.journal.skyhooks[skyhook]
        const after = plan.journal.skyhooks[skyhook]
        const isSelected = poolLabel in (snapshot.node.metadata.labels ?? {})
        if (isSelected || before?.lifecycle === undefined || after === undefined) return plan
        const skyhooks = { ...plan.journal.skyhooks, [skyhook]: { ...after, lifecycle: before.lifecycle } }
        return { ...plan, journal: { ...plan.journal, skyhooks } }
      },
    },
    search: { ...disturbed(2, 'selector left', 1), spec: interruptingLater },
    violation: tooManyOut,
  },
  'ignores the journal after a new registration': {
    rules: seeing((snapshot) => {
      const { uid } = snapshot.node.metadata
      return snapshot.journal.nodeUid === uid ? snapshot : { ...snapshot, journal: emptyJournal(uid) }
    }),
    search: disturbed(1, 'Node deleted', 1),
    violation: 'a half changed node asks for room',
  },
  'works under a slot that is in doubt': {
    rules: seeing((snapshot) =>
      withSlots(snapshot, (slot) => (slot.ownership === 'seen' ? { ...slot, ownership: 'owned' } : slot)),
    ),
    search: disturbed(1, 'agent killed', 1),
    violation: 'a step starts without a slot',
  },
  'lets time free a slot': {
    rules: { isListed: (_, isSilent) => !isSilent },
    search: disturbed(2, 'agent killed', 2, 1),
    violation: tooManyOut,
  },
  'keeps a slot that nothing needs': {
    rules: acting((actions) =>
      actions.filter((action) => action.do !== 'releaseSlot' || action.key === `slot/${skyhook}`),
    ),
    search: disturbed(1, 'Node deleted', 1),
    violation: 'never complete',
  },
}
