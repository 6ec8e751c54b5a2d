/** This node in the lines for slots, one per Skyhook: when a request is worthwhile. It grants nothing. */
import type { Scope } from '../../lease/names.ts'
import { fullReason } from '../../lease/admission.ts'
import type { AcquireOutcome } from '../../lease/slot-creation.ts'
import type { Limit } from '../../lease/rule.ts'
import type { Lease } from '../../lease/slot.ts'
import { handOverDelayMs, isAmongFirst, isNextInLine, lineLength, type Queue } from '../../lease/waiting.ts'
import { sleep } from '../../schemas/clock.ts'
import type { Known, SkyhookView } from '../../stages/model/snapshot.ts'
import { batchReason, bootstrapLimitOf, limitOf, queueOf } from '../../lease/budget/budget.ts'
import type { Denial } from './denials.ts'
import { sleepingRetryMs, type SlotWait, type SlotWaitOptions, startSlotWait } from './slot-wait.ts'
import { controlPlaneSlots, joiningSlots, type SlotsBesideLine } from './slots-beside-line.ts'

/** Why not now, for people, and when to ask again at the latest. */
export type Pause = Denial

export type Denied = Extract<AcquireOutcome, { outcome: 'waiting' | 'lost' }>

export type SlotLine = {
  /**
   * Asked before each request. Undefined: go on. In a large fleet, most nodes know that others come first. A node that
   * is not prepared for its turn makes ready first if it is near.
   */
  beforeRequest(view: SkyhookView, isPrepared: boolean): Promise<Pause | undefined>
  /** Names of the Skyhooks for whose slots many other nodes come first, or may do so. */
  distant(): ReadonlySet<string>
  /** Right before each request. */
  requestBegins(view: SkyhookView): void
  /** The index to ask for, where the release of one was seen. */
  preferredIndex(view: SkyhookView): number | undefined
  /** Instead of a request, where only a count says which slots are this node's. `ledger`: what was counted so far. */
  awaitCompartment(view: SkyhookView, ledger: Lease | undefined): Pause
  /** After a request that was not granted. */
  afterDenial(view: SkyhookView, answer: Denied): Pause
  /** The same for the budget of nodes that join: few wait for it, and the line is not theirs. */
  afterBootstrapDenial(view: SkyhookView, answer: Denied): Pause
  /** After a request for the control plane's slot that was not granted: when to ask again at the latest, in ms. */
  afterControlPlaneDenial(view: SkyhookView, answer: Denied): number
  /** Only these Skyhooks wait for a slot, by name. */
  update(waiting: ReadonlySet<string>): void
}

export function createSlotLine(
  options: Omit<SlotWaitOptions, 'onTurn' | 'onNear'> & {
    readonly skyhooks: () => Known<readonly SkyhookView[]>
    /** A request for a slot of this Skyhook is worthwhile now. */
    readonly onTurn: (skyhook: string) => void
    /** One of the distant Skyhooks is near now. */
    readonly onNear: () => void
  },
): SlotLine {
  const { leases, fleet, random, signal } = options
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

  const everyone = (): Queue => ({ matched: fleet.agents(), waiters: fleet.agents() })

  /** Before anything else is known: so many nodes are there that the ledger has to say whose turn is near. */
  const isCrowded = (limit: Limit): boolean =>
    limit !== 'unlimited' && fleet.agents() > lineLength(typeof limit === 'number' ? limit : 1, everyone())

  const isFar = (view: SkyhookView): boolean =>
    waits.get(view.metadata.uid)?.wait.isFar() ?? isCrowded(limitOf(view, []))

  function deniedBesideLine(view: SkyhookView, answer: Denied, slots: SlotsBesideLine): number {
    const wait = waitOf(view)
    return answer.outcome === 'waiting' ? wait.deniedBesideLine(answer.listing, slots) : wait.lost(answer, slots)
  }

  /** What a node does before its first request: it looks whether others come first. */
  function insteadOfFirst(view: SkyhookView): Pause | undefined {
    const limit = limitOf(view, [])
    if (limit === 'unlimited' || limit === 0) return undefined
    const message = requestingReason(limit)
    if (isCrowded(limit)) return { message, retryInMs: waitOf(view).awaitCount() }
    const hasPlace = fleet.isCounted() && typeof limit === 'number'
    if (!hasPlace || isAmongFirst(options.nodeUid() ?? '', limit, everyone())) return undefined
    return { message, retryInMs: waitOf(view).awaitFirst(limit) }
  }

  /** The ledger is there: those in line ask, the others sleep. */
  async function byCount(
    view: SkyhookView,
    { wait, ledger, isPrepared }: { readonly wait: SlotWait; readonly ledger: Lease; readonly isPrepared: boolean },
  ): Promise<Pause | undefined> {
    const nodeUid = options.nodeUid() ?? ''
    const limit = limitOf(view, [ledger])
    if (typeof limit !== 'number') return undefined
    const queue = queueOf(view, [ledger]) ?? everyone()
    if (!isNextInLine(nodeUid, limit, queue)) {
      wait.sleep(ledger)
      const message = batchReason(view, { ledgers: [ledger] })
      if (message !== undefined) return { message, retryInMs: sleepingRetryMs, waitsFor: 'batch' }
      return { message: fullReason(limit), retryInMs: sleepingRetryMs }
    }
    if (!isPrepared) return { message: requestingReason(limit), retryInMs: 0 }
    // all in line have seen the ledger at once
    await sleep(leases.clock, handOverDelayMs(nodeUid, limit, queue, random.number()), signal)
    return undefined
  }

  return {
    distant() {
      const skyhooks = options.skyhooks()
      if (!skyhooks.known || !isCrowded(0)) return new Set()
      return new Set(skyhooks.value.filter(isFar).map(({ metadata }) => metadata.name))
    },

    async beforeRequest(view, isPrepared) {
      const wait = waits.get(view.metadata.uid)?.wait
      if (wait === undefined) return insteadOfFirst(view)
      const lookInMs = wait.takeHeld()
      const limit = limitOf(view, [])
      if (lookInMs !== undefined && typeof limit === 'number')
        return { message: fullReason(limit), retryInMs: lookInMs }
      const ledger = wait.takeCount()
      return ledger && (await byCount(view, { wait, ledger, isPrepared }))
    },

    requestBegins: ({ metadata }) => waits.get(metadata.uid)?.wait.requestBegins(),

    preferredIndex: ({ metadata }) => waits.get(metadata.uid)?.wait.preferredIndex(),

    awaitCompartment: (view, ledger) => ({
      message: 'budget unknown: the census has not counted the compartments yet',
      retryInMs: waitOf(view).awaitCompartment(ledger),
    }),

    afterDenial(view, answer) {
      const wait = waitOf(view)
      const retryInMs = answer.outcome === 'waiting' ? wait.denied(answer.listing) : wait.lost(answer)
      return { message: messageOf(answer, limitOf(view, answer.listing?.ledgers ?? [])), retryInMs }
    },

    afterControlPlaneDenial: (view, answer) => deniedBesideLine(view, answer, controlPlaneSlots),

    afterBootstrapDenial(view, answer) {
      const limit = bootstrapLimitOf(view, answer.listing?.ledgers ?? [])
      return {
        message: messageOf(answer, limit, 'bootstrap'),
        retryInMs: deniedBesideLine(view, answer, joiningSlots(everyone())),
      }
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
          if (waiting.has(name)) options.onTurn(name) // of another Skyhook of this name
        }
      }
    },
  }
}

const requestingReason = (limit: Exclude<Limit, 'unlimited'>): string =>
  typeof limit === 'object' ? `budget unknown: ${limit.unknown}` : 'requesting a slot'

/** A node that was beaten waits like the others: its text must not tell by whom, or it would change each time. */
function messageOf(answer: Denied, limit: Limit, kind: Scope['kind'] = 'slot'): string {
  if (answer.outcome === 'waiting') return answer.reason
  const isFull = typeof limit === 'number' && answer.othersFree === 0
  return isFull ? fullReason(limit, { kind }) : 'other nodes ask at the same time'
}
