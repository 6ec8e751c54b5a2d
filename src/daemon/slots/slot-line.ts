/**
 * The place of this node in the lines for slots, one line per Skyhook. Determines when a request is useful. Grants
 * nothing.
 */
import { batchReason, compartmentOf, limitOf, stopReason } from '../../lease/budget/budget.ts'
import { ledgerName, type Scope } from '../../lease/names.ts'
import type { AcquireOutcome } from '../../lease/slot-creation.ts'
import type { Leases, ScopeListing } from '../../lease/slot-reads.ts'
import type { Lease } from '../../lease/slot.ts'
import { isCrowded } from '../../lease/waiting.ts'
import type { Known, SkyhookView } from '../../stages/model/snapshot.ts'
import type { Denial } from './denials.ts'
import { readLease } from './lease-watch.ts'
import { requestingReason, type SlotWait, type SlotWaitOptions, startSlotWait } from './slot-wait.ts'

export type Denied = Extract<AcquireOutcome, { outcome: 'waiting' | 'lost' }>

export type SlotLine = {
  /**
   * Called before each request. Returns why the node should not send it now, and the latest time of the next one.
   * Undefined: send it. An unprepared node whose turn is near prepares first.
   */
  beforeRequest(view: SkyhookView, isPrepared: boolean): Denial | undefined
  /** The index to request, if the node sees a free one. */
  preferredIndex(view: SkyhookView): number | undefined
  /** Names of the Skyhooks for whose slots many other nodes are, or may be, ahead of this one. */
  distant(): ReadonlySet<string>
  /**
   * Replaces a request for a slot of this kind if only a count determines the compartment of this node. `ledger` has
   * the counts so far.
   */
  awaitCompartment(view: SkyhookView, ledger: Lease | undefined, kind: Scope['kind']): Denial
  /** Called after a denied request for a slot of this kind. */
  afterDenial(view: SkyhookView, answer: Denied, kind: Scope['kind']): Denial
  /** Sets the names of the Skyhooks that wait for a slot. */
  update(waiting: ReadonlySet<string>): void
}

/** The wait reports when to send a request; this is the limit if it never does. */
const latestMs = 1_800_000

export function createSlotLine(
  options: Omit<SlotWaitOptions, 'onTurn'> & {
    readonly skyhooks: () => Known<readonly SkyhookView[]>
    /** A request for a slot of this Skyhook is useful now, or the reason against it has changed. */
    readonly onTurn: (skyhook: string) => void
  },
): SlotLine {
  const { fleet, signal } = options
  /** By uid of the Skyhook. */
  const waits = new Map<string, { readonly name: string; readonly wait: SlotWait }>()
  signal.addEventListener('abort', () => {
    for (const { wait } of waits.values()) wait.close()
  })

  function waitOf(view: SkyhookView): SlotWait {
    const { name, uid } = view.metadata
    const found = waits.get(uid)
    if (found !== undefined) return found.wait
    const wait = startSlotWait(view, { ...options, onTurn: () => options.onTurn(name) })
    waits.set(uid, { name, wait })
    return wait
  }

  /** Before anything else is known: whether there are so many nodes that the ledger must show whose turn is near. */
  function isCrowdedFor(view: SkyhookView): boolean {
    const limit = limitOf(view, [])
    return limit !== 'unlimited' && isCrowded(fleet.agents(), typeof limit === 'number' ? limit : 1)
  }

  return {
    beforeRequest(view, isPrepared) {
      const limit = limitOf(view, [])
      const [known, isOfMany] = [waits.get(view.metadata.uid), isCrowdedFor(view)]
      if (limit === 'unlimited' || limit === 0 || (known === undefined && !isOfMany)) return undefined
      const wait = waitOf(view)
      if (known === undefined) wait.begin()
      const why = wait.takeReason()
      if (why !== undefined) return { ...why, retryInMs: latestMs }
      return isPrepared || !isOfMany ? undefined : { message: requestingReason, retryInMs: 0 }
    },

    preferredIndex: ({ metadata }) => waits.get(metadata.uid)?.wait.preferredIndex(),

    distant() {
      const skyhooks = options.skyhooks()
      if (!skyhooks.known || !isCrowded(fleet.agents(), 0)) return new Set()
      const isFar = (view: SkyhookView): boolean => waits.get(view.metadata.uid)?.wait.isFar() ?? isCrowdedFor(view)
      return new Set(skyhooks.value.filter(isFar).map(({ metadata }) => metadata.name))
    },

    awaitCompartment(view, ledger, kind) {
      const message = 'budget unknown: the census has not counted the compartments yet'
      waitOf(view).denied(kind, message, ledger && { ledgers: [ledger] })
      return { message, retryInMs: latestMs }
    },

    afterDenial(view, answer, kind) {
      const why = whyDenied(view, answer, kind)
      waitOf(view).denied(kind, why.message, answer.listing)
      return { ...why, retryInMs: latestMs }
    },

    update(waiting) {
      const skyhooks = options.skyhooks()
      if (!skyhooks.known) return
      const views = new Map(skyhooks.value.map((view) => [view.metadata.uid, view]))
      for (const [uid, { name, wait }] of waits) {
        const view = views.get(uid)
        if (view !== undefined && waiting.has(name)) wait.update(view)
        else {
          wait.close()
          waits.delete(uid)
          if (waiting.has(name)) options.onTurn(name) // the wait is for another Skyhook with this name
        }
      }
    },
  }
}

const controlPlaneMessage = 'another node of the control plane is out of service'

/**
 * A node that lost to another one waits like the others. Its message must not name the other node, otherwise it would
 * change each time.
 */
function whyDenied(view: SkyhookView, answer: Denied, kind: Scope['kind']): Omit<Denial, 'retryInMs'> {
  if (kind === 'control-plane') return { message: controlPlaneMessage, waitsFor: kind }
  // the message stays until one of these slots is free
  const others = kind === 'bootstrap' ? 'other joining nodes' : 'other nodes'
  const message = answer.outcome === 'waiting' ? answer.reason : `${others} request slots at the same time`
  return { message, ...batchDenial(view, answer.listing, kind) }
}

/** What a node with a policy reads about its own compartment, and shows about its batch. */

/** `ledger` is set if the policy alone does not determine the compartment. */
type Found = { readonly compartment: string | undefined; readonly ledger?: Lease | undefined }

/** The compartment of this node; undefined while it depends on a missing count. Throws if the ledger cannot be read. */
export async function findCompartment(leases: Leases, view: SkyhookView, signal: AbortSignal): Promise<Found> {
  const compartment = compartmentOf(view, [])
  if (compartment !== undefined) return { compartment }
  const ledger = await readLease(leases, ledgerName(view.metadata), signal)
  return { compartment: ledger && compartmentOf(view, [ledger]), ledger }
}

/**
 * The changes to a denial if the node waits for the next batch, or for the end of a stop. Applies to joining nodes,
 * too.
 */
function batchDenial(view: SkyhookView, listing: ScopeListing | undefined, kind: Scope['kind']): Partial<Denial> {
  const message = listing && (kind === 'bootstrap' ? stopReason : batchReason)(view, listing)
  return message === undefined ? {} : { message, waitsFor: 'batch' }
}
