/**
 * One wait of this node for a slot of one Skyhook. It sends no request for a slot: it only finds the moment at which
 * one is worthwhile. What it does when is in src/lease/wait-state.ts.
 */
import { fullReason } from '../../lease/admission.ts'
import * as budget from '../../lease/budget/budget.ts'
import { agentsIn } from '../../lease/ledger.ts'
import { bootstrapScope, controlPlaneScope, ledgerName, type Scope, skyhookScope } from '../../lease/names.ts'
import { type KnownOfLine, outlookOf, type ShownSlots } from '../../lease/outlook.ts'
import { admissibleIndices, type Limit } from '../../lease/rule.ts'
import type { Leases } from '../../lease/slot-reads.ts'
import { heldIndices, type Lease } from '../../lease/slot.ts'
import { initialWait, nextWait, timerOf, type WaitEvent, type Watched } from '../../lease/wait-state.ts'
import { lineLength } from '../../lease/waiting.ts'
import type { Random } from '../../schemas/clock.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'
import type { FleetSize } from '../state/fleet-size.ts'
import type { Denial } from './denials.ts'
import { type LeaseWatch, readLease, watchLeases, type WatchedLeases } from './lease-watch.ts'

export type SlotWait = {
  /** Instead of a first request. */
  begin(): void
  /** The Skyhook as it was last seen. Its new budget may be a reason to ask. */
  update(view: SkyhookView): void
  /** Many other nodes come first, or may do so. */
  isFar(): boolean
  /** Why the next request is left out, for people. Undefined where one is worthwhile, or nothing has said so for long. */
  takeReason(): Pick<Denial, 'message' | 'waitsFor'> | undefined
  /** A request for a slot of this kind was not granted. `ledgers`: what its LIST has shown. */
  denied(kind: Scope['kind'], message: string, ledgers: readonly Lease[] | undefined): void
  close(): void
}

export type SlotWaitOptions = {
  readonly leases: Leases
  readonly nodeUid: () => string | undefined
  readonly fleet: FleetSize
  readonly random: Random
  /** A request for a slot is worthwhile now. */
  readonly onTurn: () => void
  /** There is another reason why none is. */
  readonly onReason: () => void
  /** The turn is near: what it needs should be ready by then. */
  readonly onNear: () => void
  /** The census has not counted, or not for long: somebody should look whether there is one. */
  readonly onCountMissing: () => void
  readonly signal: AbortSignal
}

/** Nobody came forward for so long: the census may be gone, or those who come first may not be able to. */
const staleMs = 300_000

export const requestingReason = 'requesting a slot'

/** Before anything else is known: so many nodes are there that the ledger has to say whose turn is near. */
export const isCrowded = (agents: number, limit: Limit): boolean =>
  limit !== 'unlimited' && agents > lineLength(typeof limit === 'number' ? limit : 1, agents)

export function startSlotWait(first: SkyhookView, options: SlotWaitOptions): SlotWait {
  const { leases, fleet, random } = options
  const { clock } = leases
  const closing = new AbortController()
  const signal = AbortSignal.any([options.signal, closing.signal])
  let state = initialWait
  let view = first
  let kind: Scope['kind'] = 'slot'
  let ledgers: readonly Lease[] = []
  let watch: LeaseWatch | undefined
  let cancelTimer: (() => void) | undefined
  let isCountAwaited = true
  let answerMs = 0
  let lot = random.number()
  let lastSleep: KnownOfLine['lastSleep']
  /** What the ledger says of the line, and since when. */
  let line = { text: '', sinceMs: clock.monotonicMs() }
  /** The reason that is shown. */
  let shown: string | undefined
  let isReasonNew = true
  /** Derived from view and ledgers, which seldom change. */
  let counted: ReturnType<typeof countedNow> | undefined

  function countedNow() {
    const batches = budget.batchesOf(view, ledgers)
    const compartment = budget.compartmentOf(view, ledgers) ?? ''
    const scopeIn = kind === 'bootstrap' ? bootstrapScope : skyhookScope
    const queue = kind === 'slot' ? budget.queueOf(view, ledgers) : undefined
    return {
      limit: kind === 'bootstrap' ? budget.bootstrapLimitOf(view, ledgers) : budget.limitOf(view, ledgers),
      dependsOnLedger: typeof budget.limitOf(view, []) === 'object',
      batches: { next: batches?.next ?? 0, most: batches?.most ?? 0 },
      queue,
      scope:
        kind === 'control-plane'
          ? controlPlaneScope
          : scopeIn(view.metadata, compartment, budget.compartmentNames(view)),
    }
  }

  function limitNow(): Limit {
    counted ??= countedNow()
    if (kind === 'control-plane') return 1
    const slots = view.spec.deploymentPolicy && kind === 'slot' && watch?.slots()
    return slots ? budget.limitOf(view, ledgers, slots) : counted.limit
  }

  function shownSlots(limit: Limit): ShownSlots | undefined {
    const slots = watch?.slots()
    if (slots === undefined || counted === undefined || typeof limit !== 'number') return undefined
    const free = admissibleIndices(heldIndices(slots, counted.scope), limit).length
    return { free, holders: watch?.holders() ?? new Set() }
  }

  function learn(found: readonly Lease[]): void {
    if (found[0] === ledgers[0]) return
    ledgers = found
    counted = undefined
    const agents = agentsIn(found)
    if (agents !== undefined) fleet.observe(agents)
    const text = JSON.stringify([budget.queueOf(view, found), budget.epochOf(view, found)])
    if (text !== line.text) line = { text, sinceMs: clock.monotonicMs() }
  }

  function outlook() {
    const watched = watch?.of === 'control-plane' ? undefined : watch?.ledgers()
    if (watched !== undefined) learn(watched)
    const limit = limitNow()
    counted ??= countedNow()
    const isOfLine = kind === 'slot'
    return outlookOf(
      {
        ...counted,
        nodeUid: options.nodeUid() ?? '',
        limit,
        others: isOfLine ? fleet.agents() : 1,
        isCountAwaited,
        slots: shownSlots(limit),
        isStale: isStale(),
        lastSleep,
        answerMs,
        lot,
      },
      random.number(),
    )
  }

  const watchedLeases = (watched: Watched): WatchedLeases | undefined =>
    watched === 'nothing' ? undefined : kind === 'control-plane' ? kind : watched

  function dispatch(event: WaitEvent): void {
    if (signal.aborted) return
    const wasFar = isFar()
    const step = nextWait(state, event, clock.monotonicMs(), random.number())
    state = step.state
    const desired = watchedLeases(state.watched)
    if (desired !== watch?.of) {
      watch?.close()
      watch = desired && watchLeases(leases, desired, { skyhook: view.metadata, random, onChange: look, signal })
    }
    cancelTimer?.()
    const inMs = timerOf(state) - clock.monotonicMs()
    cancelTimer = inMs === Infinity ? undefined : clock.startTimer(inMs, () => dispatch({ event: 'timer' }))
    if (wasFar && !isFar()) options.onNear()
    for (const effect of step.effects)
      if (effect === 'ask') options.onTurn()
      else if (effect === 'count-missing') options.onCountMissing()
      else void read()
    const reason = whyNot()?.message
    if (shown === undefined || reason === undefined || reason === requestingReason || reason === shown) return
    shown = reason
    isReasonNew = true
    options.onReason()
  }

  const isStale = (): boolean => clock.monotonicMs() - line.sinceMs > staleMs

  const look = (): void => dispatch({ event: 'seen', outlook: outlook() })

  async function read(): Promise<void> {
    const startedMs = clock.monotonicMs()
    try {
      const ledger = await readLease(leases, ledgerName(view.metadata), signal)
      answerMs = clock.monotonicMs() - startedMs
      learn(ledger === undefined ? [] : [ledger])
      if (isStale()) options.onCountMissing()
    } catch {
      // one that failed is repeated like one that shows nothing new
    }
    if (state.at === 'uncounted' && state.watched === 'ledger') isCountAwaited = false // it was awaited for long enough
    counted = undefined
    lot = random.number()
    const seen = outlook()
    dispatch({ event: 'seen', outlook: seen })
    lastSleep = seen.is === 'far' ? { rank: seen.rank, ms: seen.lookMs } : undefined
  }

  const isFar = (): boolean => state.at === 'far' || state.at === 'uncounted' || state.at === 'closed'

  function whyNot(): Pick<Denial, 'message' | 'waitsFor'> | undefined {
    if (state.at === 'asked' || kind !== 'slot') return undefined
    const limit = limitNow()
    if (typeof limit === 'object') return { message: `budget unknown: ${limit.unknown}` }
    const slots = watch?.slots()
    const isSeen = state.watched === 'slots' ? slots !== undefined : ledgers.length > 0
    if (state.at === 'uncounted' || limit === 'unlimited' || !isSeen) return { message: requestingReason }
    const batch = budget.batchReason(view, { ledgers, ...(slots && { slots }) })
    return batch === undefined ? { message: fullReason(limit) } : { message: batch, waitsFor: 'batch' }
  }

  return {
    begin() {
      if (isCrowded(fleet.agents(), budget.limitOf(view, []))) void read()
      else cancelTimer = clock.startTimer(0, look) // later: who calls has not entered yet that it waits
    },
    isFar,

    takeReason() {
      const why = isReasonNew ? whyNot() : undefined
      isReasonNew = false
      shown = why?.message ?? shown
      return why
    },

    update(latest) {
      if (latest.stale || (latest.spec === view.spec && latest.policy === view.policy)) return
      view = latest
      counted = undefined
      isCountAwaited = true
      look()
    },

    denied(asked, message, found) {
      if (found !== undefined) learn(found)
      if (kind !== asked) counted = undefined
      kind = asked
      shown = message
      isReasonNew = false
      dispatch({ event: 'denied', outlook: outlook() })
    },

    close() {
      closing.abort()
      cancelTimer?.()
    },
  }
}
