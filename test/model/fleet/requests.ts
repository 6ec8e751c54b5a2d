/** The requests of an agent about its slots, in the order and with the answers of src/lease. */
import type { Skyhook } from '../../../src/schemas/skyhook.ts'
import { changeSince, isAdmissionCurrent } from '../../../src/daemon/slots/confirmation.ts'
import * as slotBook from '../../../src/daemon/slots/slot-book.ts'
import { changeBook, entryAt, heldAt, slotAt, withEntry } from './book.ts'
import { exemptMask, nodeOf, readLimit, releaseViolation, withNode } from './judge.ts'
import { isRefused, verdictsFor } from './listing.ts'
import {
  type Creating,
  type Creation,
  type Fleet,
  type FleetNode,
  type LateCreation,
  newEntry,
  type ScopeName,
  type SlotEntry,
} from './state.ts'
import { afterFault, budgetOf, isPossible, type Step, viewOf, type World } from './world.ts'

/** One LIST of the scopes that the request needs; nothing is created unless all of them admit. */
export function* list(world: World, fleet: Fleet, who: number, needed: readonly ScopeName[]): Generator<Step> {
  const node = nodeOf(fleet, who)
  const [scope, ...others] = needed
  if (scope === undefined) return
  // the control plane's slot is created first, and asked about last
  for (const verdict of verdictsFor(world, fleet, who, scope))
    for (const second of others.length === 0 ? [undefined] : verdictsFor(world, fleet, who, 'control-plane')) {
      const denied = verdict.verdict === 'wait' ? scope : second?.verdict === 'wait' ? 'control-plane' : undefined
      if (denied) {
        const to = withNode(fleet, who, { ...node, isDenied: denied === 'control-plane' })
        yield { action: `n${who} lists: no room (${denied})`, to }
        continue
      }
      let next: FleetNode = node
      const slots: Creation[] = []
      for (const one of [second, verdict]) {
        if (one?.verdict === 'create') {
          slots.push(one.creation)
          next = withoutTakenName(next, one.creation)
        }
        if (one?.verdict !== 'held') continue
        next = released(next, one.duplicates)
        next = { ...withAnswer(adopt(next, one.place), entryAt(next, one.place)), isDenied: false }
      }
      const [first, ...rest] = slots
      const unseen = needed.reduce((mask, one) => mask | exemptMask(fleet, one), 0)
      const creating = first && { slots: [first, ...rest] as const, generation: node.generation, unseen }
      const action = `n${who} lists: ${slots.map(nameOf).join(' and ') || 'holds one already'}`
      yield { action, to: withNode(fleet, who, { ...next, creating }) }
    }
}

/** The first CREATE of those that a LIST admitted. */
export function* create(world: World, fleet: Fleet, who: number, creating: Creating): Generator<Step> {
  const node = nodeOf(fleet, who)
  const [creation, second] = creating.slots
  const { scope, at } = creation
  const isRepeated = world.rules.remembersUnanswered && at === node.unanswered[scope]
  const answered = { ...withAnswer(node, creation), creating: undefined }
  const rest = second && { ...creating, slots: [second] as const }
  const action = `n${who} creates ${nameOf(creation)}`
  const generation = scope === 'skyhook' ? creating.generation : 0
  if (isTaken(fleet, creation)) {
    const place = node.slots.findIndex((entry) => isCurrent(entry, creation))
    const next =
      isRepeated && place >= 0
        ? { ...adopt(answered, place), isDenied: false, creating: rest }
        : { ...answered, isDenied: scope === 'control-plane' }
    return yield { action: `${action}: 409`, to: withNode(fleet, who, next) }
  }
  const entry = newEntry(creation, { unseen: creating.unseen })
  yield { action, to: withNode(fleet, who, { ...grant(answered, entry, generation), creating: rest }) }
  const forgotten = { ...node, unanswered: remembered(world, node, creation), creating: undefined }
  yield* unanswered(world, fleet, who, forgotten, entry, action)
}

/** A slot beside the indices, for a node that is out already. */
export function* createRecovery(world: World, fleet: Fleet, who: number, scope: ScopeName): Generator<Step> {
  const node = nodeOf(fleet, who)
  const creation: Creation = { scope, at: 'recovery' }
  const action = `n${who} creates ${nameOf(creation)}`
  const place = node.slots.findIndex((entry) => isCurrent(entry, creation))
  if (place >= 0) return yield { action: `${action}: it has it`, to: withNode(fleet, who, adopt(node, place)) }
  yield { action, to: withNode(fleet, who, grant(node, newEntry(creation, {}), 0)) }
  yield* unanswered(world, fleet, who, node, newEntry(creation, {}), action)
}

/** Before the first step: reads the Skyhook, and the slots if the admission may be out of date. */
export function* confirm(world: World, fleet: Fleet, who: number, place: number): Generator<Step> {
  const before = nodeOf(fleet, who)
  const isInDoubt = before.slots[place]?.book === 'seen'
  const { node, isOurs } = isInDoubt ? renewed(before, place) : { node: before, isOurs: true }
  if (!isOurs) return yield { action: `n${who} finds its slot gone`, to: withNode(fleet, who, node) }
  const held = heldAt(node, place)
  if (!held) return
  const view = viewOf(world, fleet.generation)
  const now = { ...view, metadata: { ...view.metadata, annotations: {} } } as Skyhook
  const action = `n${who} reads the Skyhook`
  if (changeSince(viewOf(world, node.generation), now) !== undefined)
    return yield* release(world, withNode(fleet, who, node), who, place, `${action}: changed`)
  if (!isAdmissionCurrent(held, now, view.budget))
    return yield { action, to: withNode(fleet, who, withEntry(node, place, { confirming: fleet.generation })) }
  const to = withNode(fleet, who, accept(node, place, node.generation))
  const read = readLimit(world.cores, to, who, budgetOf(world, fleet.generation), node.slots[place]?.unseen ?? 0)
  yield { action: `${action}: confirmed`, to: read }
}

/** The LIST of a confirmation. */
export function* confirmByList(world: World, fleet: Fleet, who: number, place: number): Generator<Step> {
  const node = nodeOf(fleet, who)
  const entry = node.slots[place]
  if (!entry) return
  const action = `n${who} lists to confirm`
  const read = withEntry(node, place, { confirming: 0 })
  if (!entry.isInApi) return yield { action: `${action}: lost`, to: withNode(fleet, who, end(read, place)) }
  if (isRefused(world, fleet, who, place, entry.confirming)) {
    const denied = withNode(fleet, who, read)
    return yield* release(world, denied, who, place, `${action}: refused`)
  }
  const unseen = entry.unseen | exemptMask(fleet, 'skyhook')
  const accepted = withNode(fleet, who, accept(withEntry(read, place, { unseen }), place, entry.confirming))
  const to = readLimit(world.cores, accepted, who, budgetOf(world, entry.confirming), unseen)
  yield { action: `${action}: confirmed`, to }
}

/** Proves that the slot is ours: false = it is not. */
export function renewed(node: FleetNode, place: number): { readonly node: FleetNode; readonly isOurs: boolean } {
  const isOurs = node.slots[place]?.isInApi === true
  if (!isOurs) return { node: end(node, place), isOurs }
  const written = changeBook(node, (book) => slotBook.renewed(book, slotAt(node, place), 1))
  // another resourceVersion: a DELETE that is still under way no longer fits
  return { node: withEntry(written, place, { isDeletionLate: false }), isOurs }
}

export function* release(world: World, fleet: Fleet, who: number, place: number, why = ''): Generator<Step> {
  const node = nodeOf(fleet, who)
  const entry = node.slots[place]
  if (!entry) return
  const action = `${why || `n${who}`} releases ${nameOf(entry)}`
  const violation = releaseViolation(world.cores, node, entry)
  yield { action, to: withNode(fleet, who, end(gone(node, place), place)), violation }
  if (!entry.isInApi) return
  if (isPossible(world, fleet, 'answer lost')) {
    const to = withNode(fleet, who, inDoubt(world, gone(node, place), place))
    yield { action: `${action}, no answer`, to: afterFault(to), violation, isFault: true }
  }
  if (isPossible(world, fleet, 'commit late')) {
    const to = withNode(fleet, who, inDoubt(world, withEntry(node, place, { isDeletionLate: true }), place))
    yield { action: `${action}, later`, to: afterFault(to), isFault: true }
  }
}

const gone = (node: FleetNode, place: number): FleetNode =>
  withEntry(node, place, { isInApi: false, isDeletionLate: false })

const released = (node: FleetNode, places: readonly number[]): FleetNode =>
  places.reduce((next, place) => withEntry(next, place, { isInApi: false, book: 'ended' }), node)

/** The name was answered for: an earlier CREATE of it is not waited for any more. */
const withAnswer = (node: FleetNode, { scope, at }: Creation): FleetNode => ({
  ...node,
  unanswered: { ...node.unanswered, [scope]: undefined },
  late: node.late.map((late) => (late.scope === scope && late.at === at ? { ...late, isOfThisAgent: false } : late)),
})

/** Another name is created only where the LIST shows that another node has the unanswered one. */
const withoutTakenName = (node: FleetNode, { scope, at }: Creation): FleetNode => {
  const before = node.unanswered[scope]
  return before === undefined || before === at
    ? node
    : { ...withAnswer(node, { scope, at: before }), unanswered: node.unanswered }
}

/** The API server has the slot, and says so. */
const adopt = (node: FleetNode, place: number): FleetNode =>
  withSlot(
    changeBook(node, (book) => slotBook.granted(book, slotAt(node, place), undefined, 1)),
    entryAt(node, place).scope,
  )

/** The API server created it for the node. */
function grant(node: FleetNode, entry: SlotEntry, generation: number): FleetNode {
  const place = node.slots.length
  const created = { ...node, isDenied: false, slots: [...node.slots, entry] }
  const admitted = generation === 0 ? undefined : { generation }
  return withSlot(
    changeBook(created, (book) => slotBook.granted(book, slotAt(created, place), admitted, 1)),
    entry.scope,
  )
}

const accept = (node: FleetNode, place: number, generation: number): FleetNode =>
  changeBook(node, (book) => slotBook.confirmed(book, slotAt(node, place), { generation }, 1))

const inDoubt = (world: World, node: FleetNode, place: number): FleetNode =>
  world.rules.doubtsReleases ? changeBook(node, (book) => slotBook.doubted(book, String(place))) : node

export const end = (node: FleetNode, place: number): FleetNode =>
  changeBook(node, (book) => slotBook.ended(book, String(place)))

/** The node counts again. */
const withSlot = (node: FleetNode, scope: ScopeName): FleetNode =>
  node.isExempt[scope] ? { ...node, isExempt: { ...node.isExempt, [scope]: false } } : node

export const isTaken = ({ nodes }: Fleet, { scope, at }: Creation): boolean =>
  at !== 'recovery' &&
  nodes.some(({ slots }) => slots.some((entry) => entry.isInApi && entry.scope === scope && entry.at === at))

export const isCurrent = (entry: SlotEntry, { scope, at }: Creation): boolean =>
  entry.isInApi && !entry.isFormer && entry.scope === scope && entry.at === at

export const nameOf = ({ scope, at }: Creation): string => `${scope} ${at === 'recovery' ? 'recovery' : `slot ${at}`}`

const remembered = (
  { rules }: World,
  { unanswered: before }: FleetNode,
  { scope, at }: Creation,
): FleetNode['unanswered'] => (rules.remembersUnanswered && at !== 'recovery' ? { ...before, [scope]: at } : before)

/** The CREATE is carried out and nobody hears of it, or it is carried out later. */
function* unanswered(
  world: World,
  fleet: Fleet,
  who: number,
  forgotten: FleetNode,
  entry: SlotEntry,
  action: string,
): Generator<Step> {
  if (isPossible(world, fleet, 'answer lost')) {
    const to = withNode(fleet, who, withSlot({ ...forgotten, slots: [...forgotten.slots, entry] }, entry.scope))
    yield { action: `${action}, no answer`, to: afterFault(to), isFault: true }
  }
  if (isPossible(world, fleet, 'commit late')) {
    const { scope, at } = entry
    const late: LateCreation = { scope, at, isFormer: false, isOfThisAgent: true }
    const to = withNode(fleet, who, { ...forgotten, late: [...forgotten.late, late] })
    yield { action: `${action}, later`, to: afterFault(to), isFault: true }
  }
}
