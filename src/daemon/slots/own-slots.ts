import { startReflector } from '../../kube/reflector.ts'
import { readLedger } from '../../lease/ledger.ts'
import {
  controlPlaneScope,
  isScopeOf,
  labelKeys,
  ledgerName,
  ownSlotsSelector,
  type SkyhookIdentity,
} from '../../lease/names.ts'
import { type Leases, leasesPathOf } from '../../lease/slot-reads.ts'
import { hasSlotLabels, type Lease, readSlot, type Slot, slotLabelsOf } from '../../lease/slot.ts'
import type { Random } from '../../schemas/clock.ts'
import type { Journal } from '../../schemas/journal.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { SlotPhase } from '../../schemas/skyhook.ts'
import { type Known, known, type OwnSlot, type SkyhookView, unknown } from '../../stages/model/snapshot.ts'
import * as slotBook from './slot-book.ts'
import type { WatchPorts } from '../state/watch-facts.ts'

/**
 * The slots of this node: the book of answers to its own requests, and a watch of the Leases that name the node. The
 * watch shows a slot of any origin: a CREATE that was executed late, a restored etcd, a second agent, an earlier
 * registration of the node. It needs no periodic requests.
 */
export type OwnSlots = {
  /** Resolves when all slots of the node are known; rejects with the next LIST that fails. Safe to repeat. */
  readonly untilKnown: () => Promise<void>
  /** Unknown until `untilKnown` resolved once. */
  readonly held: () => Known<readonly OwnSlot[]>
  readonly book: () => slotBook.SlotBook
  /** Follows when the batches of finished work end. Called after every decision. */
  followBatches(): void
  /** Records an answer of the API server. */
  record(change: (book: slotBook.SlotBook, nowMs: number) => slotBook.SlotBook): void
}

export type OwnSlotsOptions = WatchPorts & {
  readonly leases: Leases
  readonly nodeName: string
  readonly node: () => KubernetesNode | undefined
  readonly skyhooks: () => Known<readonly SkyhookView[]>
  readonly journal: () => Journal
}

export function followOwnSlots(options: OwnSlotsOptions): OwnSlots {
  const { leases, nodeName, clock, random, wake, signal } = options
  const batches = followFinishedBatches(leases, { random, wake, signal })
  let book = slotBook.emptySlotBook
  let isSynced = false
  /** Rejects the promise of callers that wait for the first LIST. */
  let fail: (error: unknown) => void = () => undefined

  const reflector = startReflector<Lease>(leases.transport, {
    clock,
    random,
    path: leasesPathOf(leases),
    query: { labelSelector: ownSlotsSelector(nodeName) },
    onChange({ changes }) {
      for (const { type, object } of changes) {
        const slot = ownSlotIn(object)
        if (type === 'deleted') book = slotBook.deletionSeen(book, object.metadata.uid)
        else if (hasLostLabels(object)) book = slotBook.doubted(book, object.metadata.uid)
        else if (slot) book = slotBook.seen(book, slot, clock.steadyMs())
      }
      if (changes.length > 0) wake()
    },
    onListed(objects) {
      const before = book
      book = slotBook.listed(book, slotsIn(objects), clock.steadyMs())
      if (book !== before) wake()
    },
    onFact(fact) {
      options.onFact(fact)
      if (fact.fact === 'failed') fail(fact.error)
    },
    signal,
  })
  reflector.ended.catch(() => undefined) // only the callbacks could make it reject, and they never throw

  /** A slot without its labels is not counted until it is written again. */
  const hasLostLabels = (lease: Lease): boolean => {
    const entry = book.held.get(lease.metadata.uid)
    return (
      entry !== undefined && entry.ownership !== 'releasing' && !hasSlotLabels(lease, slotLabelsOf(entry.slot.lease))
    )
  }

  /** The label is only used to find it; the holder decides. */
  const ownSlotIn = (lease: Lease): Slot | undefined => {
    const slot = readSlot(lease)
    return slot?.holder === nodeName ? slot : undefined
  }
  const slotsIn = (objects: Iterable<Lease>): Slot[] => [...objects].flatMap((lease) => ownSlotIn(lease) ?? [])

  function knownSkyhooks(): SkyhookIdentity[] {
    const views = options.skyhooks()
    return [
      ...(views.known ? views.value : []).map(({ metadata: { name, uid } }) => ({ name, uid })),
      ...Object.entries(options.journal().skyhooks).map(([name, { uid }]) => ({ name, uid })),
    ]
  }

  function describe(
    { slot, ownership, admittedUnder, renewedAtMs }: slotBook.HeldSlot,
    skyhooks: readonly SkyhookIdentity[],
  ): OwnSlot {
    const isControlPlane = slot.scope === controlPlaneScope.hash
    const owner = skyhooks.find((skyhook) => isScopeOf(skyhook, slot.scope, slot.compartmentName))
    return {
      scope: isControlPlane ? 'control-plane' : 'skyhook',
      skyhook: isControlPlane ? '' : (owner?.name ?? slot.lease.metadata.labels?.[labelKeys.name] ?? slot.name),
      skyhookUid: isControlPlane ? undefined : owner?.uid,
      lease: slot.name,
      uid: slot.uid,
      phase: slot.phase as SlotPhase,
      ownership,
      admittedUnder,
      ...(slot.kind === 'bootstrap' && { isBootstrap: true }),
      ...(slot.epoch !== undefined && { batch: batches.isOver(slot, owner?.uid) ? 'over' : 'open' }),
      isFormer: slot.nodeUid !== options.node()?.metadata.uid,
      renewedAtMs,
    }
  }

  let former: { readonly of: readonly unknown[]; readonly held: readonly OwnSlot[] } | undefined
  /** Returns the same list until its input changes, because each decision requests it. */
  function describeAll(): readonly OwnSlot[] {
    const nodeUid = options.node()?.metadata.uid
    const of = [book, options.skyhooks(), options.journal().skyhooks, nodeUid, batches.version()]
    if (former === undefined || of.some((one, at) => one !== former?.of[at])) {
      const skyhooks = knownSkyhooks()
      former = { of, held: [...book.held.values()].map((entry) => describe(entry, skyhooks)) }
    }
    return former.held
  }

  return {
    async untilKnown() {
      const failure = new Promise<never>((_, reject) => (fail = reject))
      await Promise.race([reflector.synced, failure])
      isSynced = true
    },
    held() {
      if (!isSynced) return unknown('the Leases are not listed yet')
      if (book.held.size === 0) return known([])
      return known(describeAll())
    },
    book: () => book,
    followBatches: () => batches.update(isSynced && book.held.size > 0 ? describeAll() : []),
    record(change) {
      book = change(book, clock.steadyMs())
    },
  }
}

/** Whether the batches have ended for which this node keeps slots of finished work. */
type FinishedBatches = {
  /**
   * Whether the batch of this slot of the Skyhook has ended. True only after an answer confirms it, because a deleted
   * slot is not counted.
   */
  isOver(slot: Slot, skyhookUid: string | undefined): boolean
  /** Follows only the ledgers of slots that are kept for their batch. */
  update(slots: readonly OwnSlot[]): void
  /** Changes with each change of an answer. */
  version(): number
}

type Followed = { readonly lease: () => Lease | undefined; readonly close: () => void }

function followFinishedBatches(
  leases: Leases,
  { random, wake, signal }: { readonly random: Random; readonly wake: () => void; readonly signal: AbortSignal },
): FinishedBatches {
  /** By uid of the Skyhook. */
  const followed = new Map<string, Followed>()
  let version = 0

  function follow(name: string, uid: string): Followed {
    const ledger = ledgerName({ name, uid })
    const closing = new AbortController()
    const reflector = startReflector<Lease>(leases.transport, {
      clock: leases.clock,
      random,
      path: leasesPathOf(leases),
      query: { fieldSelector: `metadata.name=${ledger}` },
      onChange({ changes }) {
        if (changes.length === 0 || closing.signal.aborted) return
        version++
        wake()
      },
      signal: AbortSignal.any([signal, closing.signal]),
    })
    reflector.ended.catch(() => undefined) // only the callback could make it reject, and it never throws
    return { lease: () => reflector.store.get(ledger), close: () => closing.abort() }
  }

  return {
    isOver({ epoch, compartmentName }, skyhookUid) {
      const lease = followed.get(skyhookUid ?? '')?.lease()
      const read = lease && readLedger(lease)
      if (epoch === undefined || read?.outcome !== 'read') return false
      const batch = read.ledger.compartments[compartmentName]?.batch
      return batch === undefined || batch.epoch > epoch
    },

    update(slots) {
      const kept = new Map(
        slots
          .filter(({ phase, batch }) => phase === 'finished' && batch !== undefined)
          .flatMap(({ skyhook, skyhookUid }) => (skyhookUid === undefined ? [] : [[skyhookUid, skyhook] as const])),
      )
      for (const [uid, { close }] of followed) {
        if (kept.has(uid)) continue
        close()
        followed.delete(uid)
      }
      for (const [uid, name] of kept) if (!followed.has(uid)) followed.set(uid, follow(name, uid))
    },

    version: () => version,
  }
}
