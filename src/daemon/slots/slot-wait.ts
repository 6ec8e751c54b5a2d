/**
 * One wait of this node for a slot of one Skyhook. It sends no request for a slot: it only finds the moment at which
 * one is worthwhile. The rules are in src/lease/waiting.ts.
 */
import { indexedName, ledgerName, parseIndexedName } from '../../lease/names.ts'
import type { Limit } from '../../lease/rule.ts'
import type { AcquireOutcome } from '../../lease/slot-creation.ts'
import type { Leases, ScopeListing } from '../../lease/slot-reads.ts'
import type { Lease } from '../../lease/slot.ts'
import * as waiting from '../../lease/waiting.ts'
import type { Random } from '../../schemas/clock.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'
import type { FleetSize } from '../state/fleet-size.ts'
import { createFollowedLeases } from './followed-leases.ts'
import { readLease, unseen } from './lease-watch.ts'
import { createQueueKnowledge } from './queue-knowledge.ts'
import { countBesideLine, type SlotsBesideLine } from './slots-beside-line.ts'

export type SlotWait = {
  /** The Skyhook as it was last seen. Its new budget may be a reason to ask. */
  update(view: SkyhookView): void
  /** Many other nodes come first, or may do so. */
  isFar(): boolean
  /** The index whose release the node has seen. */
  preferredIndex(): number | undefined
  /** A request for a slot begins: its LIST shows everything that was seen until now. */
  requestBegins(): void
  /** No slot is free: follows one of the held ones. Returns when to ask again at the latest, in ms. */
  denied(listing: ScopeListing | undefined): number
  /** The same for one of the slots that have no line. */
  deniedBesideLine(listing: ScopeListing | undefined, slots: SlotsBesideLine): number
  /** Another node was faster. Returns when to ask again at the latest, in ms. */
  lost(answer: Extract<AcquireOutcome, { outcome: 'lost' }>, slots?: SlotsBesideLine): number
  /** Instead of a first request: follows the slot of the node's place. Returns when to go on, in ms. */
  awaitFirst(slots: number): number
  /** The slot of its place is held. Returns when to look at all of them, in ms, once; undefined where it is not. */
  takeHeld(): number | undefined
  /** Instead of a first request: follows the ledger until it counts for this spec. Returns when to go on, in ms. */
  awaitCount(): number
  /** Only a count says in which compartment the node is: follows the ledger. Returns when to look again, in ms. */
  awaitCompartment(ledger: Lease | undefined): number
  /** The ledger that was awaited, once; undefined where none was, or it says nothing about the budget. */
  takeCount(): Lease | undefined
  /** Begins with what the ledger says instead of a request, for nodes whose turn is far. */
  sleep(ledger: Lease): void
  close(): void
}

export type SlotWaitOptions = {
  readonly leases: Leases
  readonly nodeUid: () => string | undefined
  readonly fleet: FleetSize
  readonly random: Random
  /** A request for a slot is worthwhile now. */
  readonly onTurn: () => void
  /** The turn is near: what it needs should be ready by then. */
  readonly onNear: () => void
  /** The census has not counted, or not for long: somebody should look whether there is one. */
  readonly onCountMissing: () => void
  readonly signal: AbortSignal
}

/** Slots that came free: the followed one, or those of a raised budget (or none is needed any more). */
type Freed = 'released' | { readonly free: number | 'unlimited'; readonly isForSeveral: boolean }

/** A ledger that was not written for so long may be without a census, and does not say whose turn it is. */
const staleLedgerMs = 300_000
/** A sleeping node asks again when its ledger says so; this is for the case that it never does. */
export const sleepingRetryMs = 1_800_000
/** A census writes the first count of a Skyhook sooner. */
const firstCountMs = 2_000
/** A watch shows a slot that is held sooner. */
const shownWithinMs = 500
/** Nothing is asked while the budget is 0 or unknown, except in case its change was not seen. */
const closedRetryMs = 300_000

export function startSlotWait(view: SkyhookView, options: SlotWaitOptions): SlotWait {
  const { leases, random, signal } = options
  const { clock } = leases
  const { name, uid } = view.metadata
  const closing = new AbortController()
  const endSignal = AbortSignal.any([signal, closing.signal])
  const knowledge = createQueueKnowledge(view, options.fleet, clock)
  const { queue, limit } = knowledge
  let cancelTurn: (() => void) | undefined
  let cancelLook: (() => void) | undefined
  /** The turn is for slots that came free together: that another node takes the followed one does not end it. */
  let isTurnForSeveral = false
  let looks = 0
  /** The request that is under way follows a release that the node has seen; else it is a look at all slots. */
  let hasSeenRelease = false
  /** Slots came free after the last request began, whose LIST may be from before: its answer does not end this. */
  let freed: Freed | undefined
  /** The ledger was seen after the last request began: that of its LIST is older. */
  let isLedgerNewer = false
  /** No request was sent yet: those who come first take their slots. */
  let place: 'none' | 'awaited' | 'held' = 'none'
  /** No request was sent yet: the ledger has to say first whose turn it is. */
  let count: 'none' | 'awaited' | 'there' = 'none'
  let losses = 0
  /** How long the API server took for the last read of the ledger. */
  let answerMs = 0
  let lastSleepMs = 0
  /** How many slots there are of those that were asked for last: `limit` for those of the line. */
  let slotsNow: () => Limit = limit

  const followed = createFollowedLeases({
    leases,
    ledger: ledgerName({ name, uid }),
    random,
    onHeld(wasHeld, othersFree) {
      if (!wasHeld) knowledge.passedOn()
      if (freed === 'released' || freed?.isForSeveral === false) freed = undefined
      if (!isTurnForSeveral) cancel()
      if (!wasHeld && place === 'none' && othersFree > 0) return askForOthers(othersFree)
      if (place !== 'awaited') return
      place = 'held'
      options.onTurn()
    },
    onReleased(slots) {
      freed ??= 'released'
      place = 'none'
      if (typeof slots === 'number' && slots > 0) askSoon(slots)
    },
    // for budgets that depend on it, by the next few nodes; and by all while nobody has counted
    onLedger(ledger) {
      isLedgerNewer = true
      const learn = (): void => knowledge.learn(ledger === undefined ? [] : [ledger])
      if (count === 'none') return whenRaised(learn)
      learn()
      if (count === 'there' || !knowledge.isCounted()) return
      count = 'there'
      cancel()
      options.onTurn()
    },
    signal: endSignal,
  })

  const nodeUid = (): string => options.nodeUid() ?? ''
  /** Those of the next batch have to be awake when it begins. */
  const isNext = (slots: number): boolean =>
    waiting.isNextInLine(nodeUid(), Math.max(slots, knowledge.batches()?.next ?? 0), queue())
  function nextLookMs(others = queue()): number {
    const slots = slotsNow()
    return waiting.lookDelayMs(looks++, typeof slots === 'number' ? slots : 1, others, random.number())
  }

  function schedule(delayMs: number, act: () => void): void {
    cancel()
    cancelTurn = clock.startTimer(delayMs, () => {
      cancel()
      act()
    })
  }

  function cancel(): void {
    cancelTurn?.()
    cancelTurn = undefined
    isTurnForSeveral = false
  }

  /** A slot is free: asks soon, unless another node takes it meanwhile. `isForSeveral`: so are others. */
  function askSoon(slots: number, isForSeveral = false): void {
    if (cancelTurn !== undefined) return
    schedule(waiting.handOverDelayMs(nodeUid(), slots, queue(), random.number(), answerMs), () => {
      hasSeenRelease = true
      options.onTurn()
    })
    isTurnForSeveral = isForSeveral
  }

  /** Slots that came free unseen: those who followed them have slots by now. One of them may be for this node. */
  function askForOthers(free: number): void {
    const slots = limit()
    if (slotsNow !== limit || typeof slots !== 'number') return
    if (random.number() >= waiting.otherSlotsShare(free, slots, queue())) return
    freed = { free, isForSeveral: true }
    askSoon(free, true)
  }

  /** After the change: a raised budget has free slots that nobody has released. */
  function whenRaised(change: () => void): void {
    const [before, epochBefore] = [slotsNow(), knowledge.epoch()]
    change()
    const now = slotsNow()
    if (now === 'unlimited') {
      freed = { free: now, isForSeveral: true }
      return schedule(0, options.onTurn)
    }
    if (typeof now !== 'number') return before === 0 ? sleepOn(1) : undefined // the ledger says how many
    const raisedBy = now - (typeof before === 'number' ? before : 0)
    const isNextBatch = epochBefore !== undefined && knowledge.epoch() !== epochBefore && now > 0
    const isOfLine = slotsNow === limit
    const free = isNextBatch ? now : Math.max(raisedBy, isOfLine ? knowledge.freeInBatch() : 0)
    const isAmongNext = !isOfLine || waiting.isAmongNext(nodeUid(), free, queue())
    if (free <= 0 || !(raisedBy > 0 || isNextBatch || isAmongNext)) return
    if (isOfLine && !isNext(now)) {
      followed.unfollow()
      return sleepOn(Math.max(1, now))
    }
    options.onNear()
    cancel()
    const isForSeveral = isAmongNext && now > 1 // whoever takes the only slot shows that none is left
    freed = { free, isForSeveral }
    askSoon(free, isForSeveral)
  }

  function sleepOn(slots: number): void {
    const most = Math.max(slots, knowledge.batches()?.most ?? 0) // batches may grow meanwhile
    const progress = { nodesPerMs: knowledge.nodesPerMs(), lastSleepMs }
    lastSleepMs = waiting.sleepMs(nodeUid(), most, queue(), progress, random.number())
    schedule(lastSleepMs, () => void awake(slots))
  }

  async function awake(slotsBefore: number): Promise<void> {
    const startedMs = clock.monotonicMs()
    try {
      const ledger = await readLease(leases, ledgerName({ name, uid }), endSignal)
      answerMs = clock.monotonicMs() - startedMs
      knowledge.learn(ledger === undefined ? [] : [ledger])
      const slots = limit()
      const isStale = knowledge.ledgerAgeMs() > staleLedgerMs
      if (isStale) options.onCountMissing()
      if (ledger === undefined || typeof slots !== 'number' || isStale) return options.onTurn()
      if (isNext(slots)) stepUp(slots)
      else sleepOn(Math.max(1, slots))
    } catch {
      if (!endSignal.aborted) sleepOn(slotsBefore) // a read that failed is repeated like one that shows nothing new
    }
  }

  function followPlace(slots: number): void {
    const index = waiting.placeOf(nodeUid(), queue()) % Math.max(1, slots)
    followed.followSlot(indexedName(knowledge.scope(), index), unseen, limit)
  }

  /** The turn is near: follows the slot of the node's place. */
  function stepUp(slots: number): void {
    options.onNear()
    followPlace(slots)
    if (knowledge.epoch() !== undefined) followed.followLedger(unseen)
    const free = knowledge.freeInBatch()
    if (free > 0 && waiting.isAmongNext(nodeUid(), free, queue())) askSoon(free, slots > 1)
    else schedule(shownWithinMs, () => askSoon(slots)) // unless the watch shows that it is held
    cancelLook?.()
    cancelLook = clock.startTimer(nextLookMs(), options.onTurn)
  }

  function followOneOf(listing: ScopeListing): void {
    followed.followOneOf(listing, waiting.placeOf(nodeUid(), queue()), !hasSeenRelease, slotsNow)
    hasSeenRelease = false
  }

  /** More slots come with the ledger: for the first in line, and with the next batch for all of them. */
  function followLedgerWhereConcerned({ resourceVersion }: ScopeListing): void {
    const slots = limit()
    const isFirst = typeof slots !== 'number' || waiting.rankOf(nodeUid(), queue()) < slots
    if (knowledge.needsLedger() && (isFirst || knowledge.epoch() !== undefined))
      followed.followLedger({ lease: knowledge.ledger(), resourceVersion })
    else followed.unfollowLedger()
  }

  /** What the LIST of an answer shows; not its ledger where a later one was seen. */
  function learnFrom({ ledgers, slots }: ScopeListing): void {
    const ledger = knowledge.ledger()
    knowledge.learn(isLedgerNewer ? (ledger === undefined ? [] : [ledger]) : ledgers, slots)
  }

  /** After an answer: asks soon if slots came free while the request was under way. False if none did. */
  function askForFreed(): boolean {
    const [slots, seen] = [slotsNow(), freed]
    freed = undefined
    if (seen === undefined || typeof slots === 'object' || slots === 0) return false
    if (slots === 'unlimited') schedule(0, options.onTurn)
    else if (seen === 'released' || seen.free === 'unlimited') askSoon(slots)
    else askSoon(Math.min(seen.free, slots), seen.isForSeveral)
    return true
  }

  return {
    update(latest) {
      const { spec, policy } = knowledge.view()
      if (latest.stale || (latest.spec === spec && latest.policy === policy)) return
      whenRaised(() => knowledge.update(latest))
    },

    isFar() {
      const slots = limit()
      return slots !== 'unlimited' && !isNext(typeof slots === 'number' ? slots : 1)
    },

    requestBegins() {
      freed = undefined
      isLedgerNewer = false
    },

    preferredIndex: () => parseIndexedName(followed.slotName() ?? '')?.index,

    denied(listing) {
      slotsNow = limit
      cancel()
      cancelLook?.()
      losses = 0
      if (listing === undefined) {
        askForFreed()
        return limit() === 0 ? closedRetryMs : nextLookMs()
      }
      learnFrom(listing)
      const slots = limit()
      if (typeof slots !== 'number') {
        followed.followLedger({ lease: knowledge.ledger(), resourceVersion: listing.resourceVersion })
        if (!askForFreed()) schedule(firstCountMs * (1 + random.number()), options.onCountMissing)
        return nextLookMs()
      }
      if (!isNext(slots)) {
        freed = undefined
        followed.unfollow()
        sleepOn(Math.max(1, slots))
        return sleepingRetryMs
      }
      followOneOf(listing)
      askForFreed()
      followLedgerWhereConcerned(listing)
      return nextLookMs()
    },

    lost({ lease, listing, othersFree = 0 }, slots) {
      cancel()
      hasSeenRelease = false
      losses++
      slotsNow = slots === undefined ? limit : () => countBesideLine(slots, knowledge.view(), listing)
      if (listing !== undefined && slots === undefined) learnFrom(listing)
      const wasReleased = freed === 'released'
      const isFollowedFree = askForFreed() && wasReleased
      if (listing === undefined || othersFree > 0) return waiting.lostDelayMs(losses, random.number())
      if (!isFollowedFree)
        followed.followSlot(lease, { lease: undefined, resourceVersion: listing.resourceVersion }, slotsNow)
      if (slots === undefined) followLedgerWhereConcerned(listing)
      return nextLookMs(slots?.others)
    },

    deniedBesideLine(listing, slots) {
      cancel()
      losses = 0
      slotsNow = () => countBesideLine(slots, knowledge.view(), listing)
      if (listing !== undefined) followOneOf(listing)
      askForFreed()
      return nextLookMs(slots.others)
    },

    awaitFirst(slots) {
      place = 'awaited'
      followPlace(slots)
      return waiting.firstDelayMs(random.number())
    },

    takeHeld() {
      const isHeld = place === 'held'
      place = 'none'
      return isHeld ? nextLookMs() : undefined
    },

    awaitCount() {
      count = 'awaited'
      followed.followLedger(unseen)
      schedule(firstCountMs * (1 + random.number()), options.onCountMissing)
      return knowledge.needsLedger() ? nextLookMs() : firstCountMs * (0.5 + random.number() / 2)
    },

    awaitCompartment(ledger) {
      knowledge.learn(ledger === undefined ? [] : [ledger])
      followed.followLedger(unseen)
      schedule(firstCountMs * (1 + random.number()), options.onCountMissing)
      return nextLookMs()
    },

    takeCount() {
      if (count === 'none') return undefined
      count = 'none'
      return typeof limit() === 'object' ? undefined : knowledge.ledger()
    },

    sleep(ledger) {
      knowledge.learn([ledger])
      followed.unfollowLedger()
      const slots = limit()
      if (typeof slots === 'number') sleepOn(Math.max(1, slots))
    },

    close() {
      closing.abort()
      cancel()
      cancelLook?.()
    },
  }
}
