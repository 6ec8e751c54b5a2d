import { acquireWithControlPlane, controlPlaneAsking } from '../../lease/control-plane.ts'
import type { Slot } from '../../lease/slot.ts'
import type { Leases } from '../../lease/slot-reads.ts'
import { acquire, confirm, type SlotRequest } from '../../lease/slot-acquisition.ts'
import { type AcquireOutcome, createRecoverySlot } from '../../lease/slot-creation.ts'
import { type Backoff, backoffMs } from '../../schemas/backoff.ts'
import { type Budget, budgetOf } from '../../schemas/budget.ts'
import type { Clock, Random } from '../../schemas/clock.ts'
import type { Taint } from '../../schemas/kubernetes.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import type { OwnSlot, SkyhookView, SlotDenial, SpecVersions } from '../../stages/model/snapshot.ts'
import { versionsOf } from '../../stages/skyhook/slot.ts'
import type { Log } from '../telemetry/log.ts'
import { hasBootstrapBudget } from '../../lease/budget/budget.ts'
import { findCompartment } from './compartment.ts'
import {
  changeSince,
  isAdmissionCurrent,
  missingFinalizer,
  policyChangeSince,
  readSkyhook,
  whyInService,
} from './confirmation.ts'
import { type Denial, denied, isBudgetUnknown, noDenials, requestNow, waitedMs, withoutDenial } from './denials.ts'
import { createHeldSlots } from './held-slots.ts'
import { withNodeCount } from './node-count.ts'
import type { OwnSlots } from './own-slots.ts'
import { createRecoveryPace } from './recovery-pace.ts'
import * as slotBook from './slot-book.ts'
import type { SlotLine } from './slot-line.ts'
import { createSlotRequests, type SlotRequestSources } from './slot-requests.ts'
import { createUnansweredCreations } from './unanswered-creations.ts'

/** Sends the requests for slots, and enters what was answered; held-slots.ts sends those about slots that are held. */
export type SlotManager = {
  /** `isJoining`: the node joins the cluster, see src/stages/skyhook/joining.ts. */
  acquire(view: SkyhookView, phase: SlotPhase, withControlPlane: boolean, isJoining?: boolean): Promise<void>
  /** For work under way that is about to take its node out of service. */
  acquireControlPlane(view: SkyhookView, phase: SlotPhase): Promise<void>
  createRecovery(view: SkyhookView, phase: SlotPhase, scope: OwnSlot['scope']): Promise<void>
  /** Before the first step: afterwards the slot is confirmed, or given back and denied with the reason. */
  confirm(slot: OwnSlot, view: SkyhookView): Promise<void>
  /** Proves that the slot is ours, and writes its phase. */
  renew(slot: OwnSlot, phase: SlotPhase): Promise<void>
  /** Writes all slots that an interrupt for this Skyhook needs; false = one of them is no longer ours. */
  readonly report: (skyhookUid: string, phase: SlotPhase) => Promise<boolean>
  release(slot: OwnSlot): Promise<void>
  /** A slot of the Skyhook may be free: its next request is due immediately. False if it does not wait for one. */
  requestNow(skyhook: string): boolean
  /** These Skyhooks ask for a slot, by name; others do not wait for one any more. Called after every decision. */
  keepWaiting(skyhooks: ReadonlySet<string>): void
  /** By name of the Skyhook. */
  denials(): ReadonlyMap<string, SlotDenial>
  kinds(): readonly { readonly phase: string; readonly kind: string }[]
  /** When each slot was granted, by the wall clock. */
  grantedAtMs(): readonly number[]
}

/** Between two looks at what the watch shows, which cost no request. */
const finalizerLookMs = 1_000
const lostRetryDelayMs = 200
/** Why a recovery slot that was created is created again after a pause. */
const deletedSoonReason = 'the slot was deleted soon after the node took it'
/** The API server refuses to create the slot: no release of another node says when that is over. */
const rejectedBackoff: Backoff = { initialMs: 1_000, maxMs: 300_000, jitter: 0.2 }
/** A slot that is given back before the first step: the spec that this node knows is not that of the API server. */
const yieldBackoff: Backoff = { initialMs: 1_000, maxMs: 60_000, jitter: 0.2 }

export type SlotManagerOptions = SlotRequestSources & {
  readonly leases: Leases
  readonly ownSlots: OwnSlots
  /** When a request is worthwhile. */
  readonly line: SlotLine
  /** Of nodes that join the cluster. */
  readonly runtimeRequiredTaint: Taint
  /** Of Skyhooks that name no budget. */
  readonly defaultBudget: Budget
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Since when nobody has counted, if that is so. */
  readonly uncountedSince: () => string | undefined
  readonly signal: AbortSignal
  readonly onReleased: (phase: string, seconds: number) => void
  readonly onAcquired: (seconds: number) => void
}

export function createSlotManager(options: SlotManagerOptions): SlotManager {
  const { leases, ownSlots, line, clock, random, log, signal } = options
  const unanswered = createUnansweredCreations(clock)
  /** By uid of the Skyhook: slots given back in a row. */
  const yields = new Map<string, number>()
  /** By uid of the Skyhook: requests that the API server rejected in a row. */
  const rejections = new Map<string, number>()
  const recoveryPace = createRecoveryPace(clock)
  let denials = noDenials

  const slotRequests = createSlotRequests(options, unanswered)
  const { request } = slotRequests
  const held = createHeldSlots(options, slotRequests)

  function grant(slot: Slot, { metadata }: SkyhookView, admittedUnder?: SpecVersions): void {
    const nowMs = clock.steadyMs()
    options.onAcquired(waitedMs(denials, metadata.name, nowMs) / 1000)
    denials = withoutDenial(denials, metadata.name)
    line.update(new Set(denials.keys())) // at once: each event of a watch costs the API server and the node
    ownSlots.record((book) => slotBook.granted(book, slot, admittedUnder, nowMs))
  }

  function deny({ metadata }: SkyhookView, denial: Denial): void {
    const since = isBudgetUnknown(denial) ? options.uncountedSince() : undefined
    const message = since === undefined ? denial.message : `${denial.message}; nobody has counted since ${since}`
    denials = denied(denials, metadata.name, { ...denial, message }, clock.steadyMs())
  }

  /** An index that is in doubt keeps the node from others: they are asked for when that is over. */
  const untilAnswered = ({ scope }: SlotRequest, denial: Denial): Denial => ({
    ...denial,
    retryInMs: Math.min(denial.retryInMs, unanswered.endsInMs(scope)),
  })

  /** What follows from the answer to a request for the Skyhook's slot, or for the control plane's in its name. */
  function enter(answer: AcquireOutcome, view: SkyhookView, slotRequest: SlotRequest, scope?: 'control-plane'): void {
    unanswered.enter(slotRequest.scope, answer)
    const { uid } = view.metadata
    const rejected = answer.outcome === 'rejected' ? (rejections.get(uid) ?? 0) + 1 : 0
    rejections.set(uid, rejected)
    switch (answer.outcome) {
      case 'held':
        return grant(answer.slot, view, answer.isNew ? versionsOf(view) : undefined)
      case 'waiting':
      case 'lost':
        return deny(view, untilAnswered(slotRequest, line.afterDenial(view, answer, slotRequest.scope.kind)))
      case 'rejected':
        return deny(view, {
          message: answer.reason,
          retryInMs: backoffMs(rejected, rejectedBackoff, random.number()),
          ...(scope && { waitsFor: scope }),
        })
      case 'unknown':
        throw new Error('it is unknown whether a slot was granted', { cause: answer.error })
    }
  }

  /** The node does not start: its slot goes to another one, and the next request waits longer each time. */
  async function giveBack(
    entry: slotBook.HeldSlot,
    view: SkyhookView,
    why: Pick<Denial, 'message' | 'waitsFor'>,
  ): Promise<void> {
    const { name: skyhook, uid } = view.metadata
    log.info({ skyhook, lease: entry.slot.name, detail: why.message }, 'slot released before work started')
    const count = (yields.get(uid) ?? 0) + 1
    yields.set(uid, count)
    deny(view, { ...why, retryInMs: backoffMs(count, yieldBackoff, random.number()) })
    await held.release(entry)
  }

  async function requireReadyApiServer(): Promise<void> {
    const answer = await leases.transport.stream('/readyz', { signal })
    answer.destroy()
  }

  return {
    async acquire(seen, phase, withControlPlane, isJoining = false) {
      const isBootstrap = isJoining && hasBootstrapBudget(seen)
      // the confirmation would refuse: the watch shows soon when that is over
      const message = missingFinalizer(seen)
      if (message !== undefined) return deny(seen, { message, retryInMs: finalizerLookMs, waitsFor: 'spec' })
      const pause = isBootstrap ? undefined : line.beforeRequest(seen, phase !== 'preparing')
      if (pause !== undefined) return deny(seen, pause)
      const view = await withNodeCount(leases.transport, seen, { isJoining: isBootstrap, signal })
      const { compartment, ledger } = await findCompartment(leases, view, signal)
      if (compartment === undefined) return deny(view, line.awaitCompartment(view, ledger))
      const preferredIndex = isBootstrap ? undefined : line.preferredIndex(view)
      const slotRequest = { ...request(view, phase, { compartment, isBootstrap }), preferredIndex }
      if (!withControlPlane) return enter(await acquire(leases, slotRequest, signal), view, slotRequest)
      const { controlPlane, answer, missing } = await acquireWithControlPlane(leases, slotRequest, signal)
      if (controlPlane) ownSlots.record((book, nowMs) => slotBook.granted(book, controlPlane, undefined, nowMs))
      const asked = missing === 'control-plane' ? { ...slotRequest, ...controlPlaneAsking } : slotRequest
      enter(answer, view, asked, missing === 'control-plane' ? missing : undefined)
    },

    async acquireControlPlane(view, phase) {
      const guard = { ...request(view, phase, { compartment: '' }), ...controlPlaneAsking }
      const slotRequest = { ...guard, unansweredIndex: unanswered.indexIn(guard.scope) }
      enter(await acquire(leases, slotRequest, signal), view, slotRequest, 'control-plane')
    },

    async createRecovery(view, phase, scope) {
      // one that is in no compartment counts in all of them
      const { compartment = '' } = await findCompartment(leases, view, signal)
      const slotRequest = request(view, phase, { compartment })
      const creation = scope === 'control-plane' ? { ...slotRequest, ...controlPlaneAsking } : slotRequest
      const putOff = (message: string): void =>
        deny(view, { message, retryInMs: recoveryPace.pauseMs(creation.scope.hash), waitsFor: 'recovery' })
      if (recoveryPace.pauseMs(creation.scope.hash) > 0) return putOff(recoveryPace.reason(creation.scope.hash))
      const result = await createRecoverySlot(leases, creation, signal)
      if (result.outcome === 'unknown') throw new Error('no recovery slot', { cause: result.error })
      recoveryPace.answered(creation.scope.hash, result.outcome === 'held' ? deletedSoonReason : result.reason)
      if (result.outcome !== 'held') return putOff(result.reason)
      const { name: lease } = result.slot
      log.warn({ skyhook: view.metadata.name, lease }, 'node is mid-change without a slot, created a recovery slot')
      grant(result.slot, view)
    },

    async confirm(slot, view) {
      const { name, uid } = view.metadata
      const found = held.entryOf(slot)
      if (!found) return
      // in doubt, it is written first: a DELETE that is still under way then no longer fits its resourceVersion
      if (found.ownership === 'seen' && !(await held.renew(found, name, slot.phase)))
        return deny(view, { message: `Lease ${slot.lease} is gone`, retryInMs: lostRetryDelayMs })
      const entry = held.entryOf(slot)
      if (!entry) return
      const skyhook = await readSkyhook(leases.transport, name, signal)
      const change = changeSince(view, skyhook) ?? (await policyChangeSince(leases.transport, view, signal))
      if (change !== undefined || skyhook === undefined)
        return await giveBack(entry, view, { message: change ?? 'it is gone', waitsFor: 'spec' })
      // after the Skyhook: a node that joins now was joining when the Skyhook was read
      const { runtimeRequiredTaint } = options
      const refusal = slot.isBootstrap
        ? await whyInService(leases.transport, slotRequests.identity(), runtimeRequiredTaint, signal)
        : undefined
      if (refusal !== undefined) return await giveBack(entry, view, { message: refusal })
      const accept = (accepted: Slot): void => {
        yields.delete(uid)
        ownSlots.record((book, nowMs) => slotBook.confirmed(book, accepted, versionsOf(view), nowMs))
      }
      if (isAdmissionCurrent(entry, skyhook, budgetOf(skyhook.spec, options.defaultBudget))) return accept(entry.slot)
      const target = { compartment: entry.slot.compartmentName, isBootstrap: slot.isBootstrap }
      const isJoining = slot.isBootstrap === true
      const counted = await withNodeCount(leases.transport, view, { isJoining, signal })
      const result = await confirm(leases, entry.slot, request(counted, slot.phase, target), signal)
      switch (result.outcome) {
        case 'held':
          return accept(result.slot)
        case 'yield':
          return await giveBack({ ...entry, slot: result.slot }, view, { message: result.reason })
        case 'lost':
          held.end(entry)
          return deny(view, { message: result.reason, retryInMs: lostRetryDelayMs })
        case 'unknown':
          throw new Error(`slot ${slot.lease} was not confirmed`, { cause: result.error })
      }
    },

    async renew(slot, phase) {
      const entry = held.entryOf(slot)
      if (entry) await held.renew(entry, slot.skyhook, phase)
    },

    report: held.report,

    async release(slot) {
      const entry = held.entryOf(slot)
      if (!entry) return
      // the next node of the control plane must not take down the last API server that answers
      await held.release(entry, slot.scope === 'control-plane' ? requireReadyApiServer : undefined)
    },

    requestNow(skyhook) {
      const before = denials
      denials = requestNow(before, skyhook)
      return denials !== before
    },

    keepWaiting(skyhooks) {
      ownSlots.followBatches()
      for (const skyhook of denials.keys()) if (!skyhooks.has(skyhook)) denials = withoutDenial(denials, skyhook)
      line.update(new Set(denials.keys()))
    },

    denials: () => denials,
    kinds: () => [...ownSlots.book().held.values()].map(({ slot: { phase, kind } }) => ({ phase, kind })),
    grantedAtMs: () =>
      [...ownSlots.book().held.values()]
        .map(({ slot }) => Date.parse(slot.lease.spec?.acquireTime ?? ''))
        .filter((atMs) => !Number.isNaN(atMs)),
  }
}
