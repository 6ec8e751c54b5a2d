import { skyhookScope } from '../../lease/names.ts'
import type { NodeIdentity, Slot, SlotProgress } from '../../lease/slot.ts'
import { type Leases, listOwnSlots } from '../../lease/slot-reads.ts'
import {
  acquire,
  type AcquireOutcome,
  confirm,
  createRecoverySlot,
  release,
  renew,
  type SlotRequest,
} from '../../lease/slots.ts'
import { disableKey, pauseKey } from '../../schemas/annotations.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import type { Clock } from '../../schemas/clock.ts'
import type { Journal } from '../../schemas/journal.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Skyhook, SlotPhase } from '../../schemas/skyhook.ts'
import {
  type Known,
  known,
  type OwnSlot,
  type SkyhookView,
  type SlotDenial,
  unknown,
} from '../../stages/model/snapshot.ts'
import type { Log } from '../telemetry/log.ts'
import { limitOf } from './budget.ts'
import { acquireControlPlaneSlot, needsControlPlaneSlot, releaseControlPlaneSlot } from './control-plane-slot.ts'
import { denied, noDenials, requestNow, waitedMs, withoutDenial } from './denials.ts'
import * as slotBook from './slot-book.ts'

/** Sends the requests for slots and keeps the book of their results. */
export type SlotManager = {
  /** Reads the slots of a starting agent; must succeed once before anything is requested. */
  load(signal: AbortSignal): Promise<void>
  acquire(view: SkyhookView, phase: SlotPhase): Promise<void>
  createRecovery(view: SkyhookView, phase: SlotPhase): Promise<void>
  confirm(slot: OwnSlot, view: SkyhookView): Promise<void>
  renew(slot: OwnSlot, phase: SlotPhase): Promise<void>
  /** Writes the Skyhook's slot now; false = it is no longer ours. */
  readonly report: (skyhookUid: string, phase: SlotPhase) => Promise<boolean>
  release(slot: OwnSlot): Promise<void>
  /** A slot of the Skyhook may be free: its next request is due immediately. False if it does not wait for one. */
  requestNow(skyhook: string): boolean
  /** Unknown until `load` succeeded. */
  held(): Known<readonly OwnSlot[]>
  /** By name of the Skyhook. */
  denials(): ReadonlyMap<string, SlotDenial>
  kinds(): readonly { readonly phase: string; readonly kind: string }[]
}

/** The request is repeated at the latest after this, in case the change that frees a slot is not observed. */
const maxRetryDelayMs = 30_000
const lostRetryDelayMs = 200
/** A denial names at most this many of the nodes that hold the slots. */
const maxHoldersInMessage = 5

export type SlotManagerOptions = {
  readonly leases: Leases
  readonly node: () => KubernetesNode | undefined
  readonly bootId: () => string
  readonly skyhooks: () => Known<readonly SkyhookView[]>
  readonly journal: () => Journal
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
  readonly onReleased: (phase: string, seconds: number) => void
  readonly onAcquired: (seconds: number) => void
}

export function createSlotManager(options: SlotManagerOptions): SlotManager {
  const { leases, clock, log, signal } = options
  let book = slotBook.emptySlotBook
  let denials = noDenials
  let isLoaded = false

  /** Throws while the own Node is unknown: no slot may be held for it. */
  function identity(): NodeIdentity {
    const node = options.node()
    if (!node) throw new Error('no request about slots is possible: the API server has no Node of this name')
    return { name: node.metadata.name, uid: node.metadata.uid, bootId: options.bootId() }
  }

  const skyhookViews = (): readonly SkyhookView[] => {
    const skyhooks = options.skyhooks()
    return skyhooks.known ? skyhooks.value : []
  }

  const progress = (phase: SlotPhase, generation: number, skyhook: string): SlotProgress => ({
    phase,
    generation,
    packages: incompletePackages(skyhookViews(), options.journal(), skyhook),
  })

  const request = (view: SkyhookView, phase: SlotPhase): SlotRequest => {
    const { name, uid, generation = 0 } = view.metadata
    return {
      scope: skyhookScope({ name, uid }),
      node: identity(),
      progress: progress(phase, generation, name),
      admissionFrom: (ledgers) => ({ limit: limitOf(view, ledgers) }),
    }
  }

  function recordGranted(slot: Slot, { metadata }: SkyhookView, isConfirmed: boolean): void {
    const nowMs = clock.wallMs()
    options.onAcquired(waitedMs(denials, metadata.name, nowMs) / 1000)
    denials = withoutDenial(denials, metadata.name)
    book = slotBook.grantSlot(book, slot, metadata, isConfirmed, nowMs)
  }

  function recordReleased(lease: string): void {
    const entry = book.held.get(lease)
    book = slotBook.removeSlot(book, lease)
    if (entry) options.onReleased(entry.slot.phase, (clock.steadyMs() - entry.grantedAtMs) / 1000)
  }

  function deny({ metadata }: SkyhookView, message: string, retryInMs: number): void {
    denials = denied(denials, metadata.name, { message, retryInMs }, clock.wallMs())
  }

  async function releaseUnusedControlPlane(leaving?: string): Promise<void> {
    const unused = slotBook.unusedControlPlaneSlot(book, leaving)
    if (!unused) return
    await releaseControlPlaneSlot(leases, unused, identity(), signal)
    book = slotBook.setControlPlaneSlot(book, undefined)
  }

  /** The control plane's slot is held, or not needed; else the view is denied and the answer is false. */
  async function ensureControlPlane(view: SkyhookView, { scope, node, progress }: SlotRequest): Promise<boolean> {
    if (book.controlPlane !== undefined || !needsControlPlaneSlot(options.node(), view)) return true
    const admission = { scope, limitFrom: (ledgers: Parameters<typeof limitOf>[1]) => limitOf(view, ledgers) }
    const granted = await acquireControlPlaneSlot(leases, admission, node, progress, signal)
    if (granted.outcome === 'held') {
      book = slotBook.setControlPlaneSlot(book, granted.slot)
      return true
    }
    if (granted.outcome === 'unknown') throw new Error('no control-plane slot', { cause: granted.error })
    deny(view, granted.reason, maxRetryDelayMs)
    return false
  }

  async function renewSlot({ lease, skyhook }: OwnSlot, phase: SlotPhase): Promise<void> {
    const entry = book.held.get(lease)
    if (!entry) return
    const { slot } = entry
    const result = await renew(leases, slot, identity(), progress(phase, slot.generation, skyhook), signal)
    switch (result.outcome) {
      case 'held':
        book = slotBook.renewSlot(book, result.slot, clock.steadyMs())
        return
      case 'lost':
        log.warn({ skyhook, lease, detail: result.reason }, 'slot lost')
        return recordReleased(lease)
      case 'unknown':
        throw new Error(`slot ${lease} was not renewed`, { cause: result.error })
    }
  }

  return {
    async load(loadSignal) {
      const { own } = await listOwnSlots(leases, identity(), loadSignal)
      const knownSkyhooks = [
        ...skyhookViews().map(({ metadata: { name, uid } }) => ({ name, uid })),
        ...Object.entries(options.journal().skyhooks).map(([name, { uid }]) => ({ name, uid })),
      ]
      book = slotBook.loadSlots(book, own, knownSkyhooks, clock.steadyMs())
      await releaseUnusedControlPlane() // left by an agent that was killed between its two slots
      isLoaded = true
    },

    async acquire(view, phase) {
      const slotRequest = request(view, phase)
      if (!(await ensureControlPlane(view, slotRequest))) return
      const result = await acquire(leases, slotRequest, signal)
      switch (result.outcome) {
        case 'held':
          return recordGranted(result.slot, view, false)
        case 'waiting':
          await releaseUnusedControlPlane()
          return deny(view, waitingMessage(result), maxRetryDelayMs)
        case 'lost':
          await releaseUnusedControlPlane()
          return deny(view, result.reason, lostRetryDelayMs)
        case 'unknown':
          throw new Error('it is unknown whether a slot was granted', { cause: result.error })
      }
    },

    async createRecovery(view, phase) {
      const result = await createRecoverySlot(leases, request(view, phase), signal)
      if (result.outcome === 'unknown') throw new Error('no recovery slot', { cause: result.error })
      if (result.outcome !== 'held') throw new Error(`no recovery slot: ${result.reason}`)
      const { name: lease } = result.slot
      log.warn({ skyhook: view.metadata.name, lease }, 'node is mid-change without a slot, created a recovery slot')
      recordGranted(result.slot, view, true)
    },

    async confirm({ lease, skyhook, phase }, view) {
      const entry = book.held.get(lease)
      if (!entry) return
      // the current budget and pause count, not those of the watch
      const path = `${skyhooksPath}/${view.metadata.name}`
      const { metadata, spec } = await leases.transport.json<Skyhook>('GET', path, { signal })
      const { uid, generation = 0 } = view.metadata
      if (metadata.uid !== uid || (metadata.generation ?? 0) !== generation) return // the watch will show the change
      if (metadata.annotations?.[pauseKey] === 'true' || metadata.annotations?.[disableKey] === 'true') return
      const result = await confirm(leases, entry.slot, request({ ...view, spec: spec ?? {} }, phase), signal)
      switch (result.outcome) {
        case 'held':
          book = slotBook.confirmSlot(book, result.slot, clock.steadyMs())
          return
        case 'yield':
          log.info({ skyhook, lease, detail: result.reason }, 'slot released before work started')
          await release(leases, result.slot, identity(), signal)
          await releaseUnusedControlPlane(lease)
          recordReleased(lease)
          return deny(view, result.reason, lostRetryDelayMs)
        case 'lost':
          recordReleased(lease)
          return deny(view, result.reason, lostRetryDelayMs)
        case 'unknown':
          throw new Error(`slot ${lease} was not confirmed`, { cause: result.error })
      }
    },

    renew: renewSlot,

    async report(skyhookUid, phase) {
      const entry = slotBook.slotOf(book, skyhookUid)
      if (!entry) return false
      await renewSlot(slotBook.ownSlot(entry), phase)
      return book.held.has(entry.slot.name)
    },

    async release({ lease }) {
      const entry = book.held.get(lease)
      if (!entry) return
      const result = await release(leases, entry.slot, identity(), signal)
      if (result.outcome === 'unknown') throw new Error(`slot ${lease} was not released`, { cause: result.error })
      await releaseUnusedControlPlane(lease) // before this one is forgotten, because a failure is retried with it
      recordReleased(lease)
    },

    requestNow(skyhook) {
      const before = denials
      denials = requestNow(before, skyhook)
      return denials !== before
    },

    held: () =>
      isLoaded ? known([...book.held.values()].map(slotBook.ownSlot)) : unknown('the Leases are not listed yet'),
    denials: () => denials,
    kinds: () => [...book.held.values()].map(({ slot: { phase, kind } }) => ({ phase, kind })),
  }
}

function waitingMessage({ reason, holders }: Extract<AcquireOutcome, { outcome: 'waiting' }>): string {
  if (holders.length === 0) return reason
  const named = holders.slice(0, maxHoldersInMessage).join(', ')
  return `${reason}: ${named}${holders.length > maxHoldersInMessage ? ', …' : ''}`
}

/** `name:version` of the incomplete packages, for people who read the Lease. */
function incompletePackages(skyhooks: readonly SkyhookView[], journal: Journal, skyhook: string): string[] {
  const { packages = {} } = skyhooks.find(({ metadata }) => metadata.name === skyhook)?.spec ?? {}
  const record = journal.skyhooks[skyhook]
  return Object.entries(packages)
    .filter(([name, { version }]) => record?.packages[`${name}|${version}`]?.config?.finished === undefined)
    .map(([name, { version }]) => `${name}:${version}`)
    .sort()
}
