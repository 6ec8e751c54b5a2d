import {
  acquire,
  acquireWithControlPlane,
  confirm,
  controlPlaneAsking,
  type SlotRequest,
} from '../../lease/slot-acquisition.ts'
import type { Slot } from '../../lease/slot.ts'
import { type AcquireOutcome, createRecoverySlot } from '../../lease/slot-creation.ts'
import { type Backoff, backoffMs } from '../../schemas/backoff.ts'
import { type Budget, budgetOf } from '../../schemas/budget.ts'
import type { Random } from '../../schemas/clock.ts'
import type { Taint } from '../../schemas/kubernetes.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import type { OwnSlot, SkyhookView, SlotDenial, SpecVersions } from '../../stages/model/snapshot.ts'
import { versionsOf } from '../../stages/skyhook/slot.ts'
import { hasBootstrapBudget } from '../../lease/budget/budget.ts'
import {
  changeSince,
  isAdmissionCurrent,
  missingFinalizer,
  policyChangeSince,
  readSkyhook,
  whyInService,
} from './confirmation.ts'
import { type Denial, denied, isBudgetUnknown, noDenials, requestNow, waitedMs, withoutDenial } from './denials.ts'
import { createHeldSlots, type HeldSlotsOptions } from './held-slots.ts'
import * as slotBook from './slot-book.ts'
import { findCompartment, type SlotLine } from './slot-line.ts'
import {
  createRecoveryPace,
  createSlotRequests,
  createUnansweredCreations,
  type SlotRequestSources,
  withNodeCount,
} from './slot-requests.ts'

/** Sends requests for slots, and records the answers. held-slots.ts sends the requests about held slots. */
export type SlotManager = {
  /** `isJoining`: the node joins the cluster, see src/stages/skyhook/slot.ts. */
  acquire(view: SkyhookView, phase: SlotPhase, withControlPlane: boolean, isJoining?: boolean): Promise<void>
  /** For current work that is about to take its node out of service. */
  acquireControlPlane(view: SkyhookView, phase: SlotPhase): Promise<void>
  createRecovery(view: SkyhookView, phase: SlotPhase, scope: OwnSlot['scope']): Promise<void>
  /** Called before the first step. Afterwards the slot is confirmed, or it is released and denied with the reason. */
  confirm(slot: OwnSlot, view: SkyhookView): Promise<void>
  /** Proves that this node holds the slot, and writes its phase. */
  renew(slot: OwnSlot, phase: SlotPhase): Promise<void>
  /** Writes all slots that an interrupt for this Skyhook needs. False: this node no longer holds one of them. */
  readonly report: (skyhookUid: string, phase: SlotPhase) => Promise<boolean>
  release(slot: OwnSlot): Promise<void>
  /** A slot of the Skyhook may be free: its next request is due immediately. False if it does not wait for one. */
  requestNow(skyhook: string): boolean
  /** Sets the names of the Skyhooks that request a slot; others no longer wait for one. Called after every decision. */
  keepWaiting(skyhooks: ReadonlySet<string>): void
  /** By name of the Skyhook. */
  denials(): ReadonlyMap<string, SlotDenial>
  kinds(): readonly { readonly phase: string; readonly kind: string }[]
  /** When each slot was granted, by the wall clock. */
  grantedAtMs(): readonly number[]
}

/** Interval between two checks of the watched Skyhook, which need no request. */
const finalizerLookMs = 1_000
const lostRetryDelayMs = 200
/** Why a recovery slot is created again only after a pause. */
const deletedSoonReason = 'the slot was deleted soon after the node took it'
/** The API server refuses to create the slot: the release of another node's slot does not end that. */
const rejectedBackoff: Backoff = { initialMs: 1_000, maxMs: 300_000, jitter: 0.2 }
/** A slot is released before the first step, because this node does not know the current spec. */
const yieldBackoff: Backoff = { initialMs: 1_000, maxMs: 60_000, jitter: 0.2 }

export type SlotManagerOptions = SlotRequestSources &
  HeldSlotsOptions & {
    /** When a request is useful. */
    readonly line: SlotLine
    /** The taint of nodes that join the cluster. */
    readonly runtimeRequiredTaint: Taint
    /** For Skyhooks without a budget. */
    readonly defaultBudget: Budget
    readonly random: Random
    /** The time since which no census has counted, if that is so. */
    readonly uncountedSince: () => string | undefined
    readonly onAcquired: (seconds: number) => void
  }

export function createSlotManager(options: SlotManagerOptions): SlotManager {
  const { leases, ownSlots, line, clock, random, log, signal } = options
  const unanswered = createUnansweredCreations(clock)
  /** By uid of the Skyhook: consecutive slots released before work started. */
  const yields = new Map<string, number>()
  /** By uid of the Skyhook: consecutive requests that the API server rejected. */
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
    line.update(new Set(denials.keys())) // at once, because each event of a watch costs the API server and the node
    ownSlots.record((book) => slotBook.granted(book, slot, admittedUnder, nowMs))
  }

  function deny({ metadata }: SkyhookView, denial: Denial): void {
    const since = isBudgetUnknown(denial) ? options.uncountedSince() : undefined
    const message = since === undefined ? denial.message : `${denial.message}; nobody has counted since ${since}`
    denials = denied(denials, metadata.name, { ...denial, message }, clock.steadyMs())
  }

  /** While one index is in doubt, the node does not request others: it requests them afterwards. */
  const untilAnswered = ({ scope }: SlotRequest, denial: Denial): Denial => ({
    ...denial,
    retryInMs: Math.min(denial.retryInMs, unanswered.endsInMs(scope)),
  })

  /** Handles the answer to a request for the Skyhook's slot, or for the control plane's slot in its name. */
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

  /** Work does not start: the slot goes to another node, and the next request waits longer each time. */
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
      // the confirmation would refuse; the watch shows the finalizer soon
      const message = missingFinalizer(seen)
      if (message !== undefined) return deny(seen, { message, retryInMs: finalizerLookMs, waitsFor: 'spec' })
      const pause = isBootstrap ? undefined : line.beforeRequest(seen, phase !== 'preparing')
      if (pause !== undefined) return deny(seen, pause)
      const view = await withNodeCount(leases.transport, seen, { isJoining: isBootstrap, signal })
      const { compartment, ledger } = await findCompartment(leases, view, signal)
      const kind = isBootstrap ? 'bootstrap' : 'slot'
      if (compartment === undefined) return deny(view, line.awaitCompartment(view, ledger, kind))
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
      // a slot without a compartment counts in all of them
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
      // a slot in doubt is written first: a pending DELETE then no longer matches its resourceVersion
      if (found.ownership === 'seen' && !(await held.renew(found, name, slot.phase)))
        return deny(view, { message: `Lease ${slot.lease} is gone`, retryInMs: lostRetryDelayMs })
      const entry = held.entryOf(slot)
      if (!entry) return
      const skyhook = await readSkyhook(leases.transport, name, signal)
      const change = changeSince(view, skyhook) ?? (await policyChangeSince(leases.transport, view, signal))
      if (change !== undefined || skyhook === undefined)
        return await giveBack(entry, view, { message: change ?? 'the slot is gone', waitsFor: 'spec' })
      // read after the Skyhook: a node that is joining now was joining then
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
      // the next node of the control plane must not take down the last available API server
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
