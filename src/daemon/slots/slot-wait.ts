/**
 * One wait of this node for a slot of one Skyhook. It does not request a slot: it only finds the time when a request is
 * useful. src/lease/wait-state.ts decides what it does.
 */
import { fullReason } from '../../lease/admission.ts'
import * as budget from '../../lease/budget/budget.ts'
import { agentsIn } from '../../lease/ledger.ts'
import { bootstrapScope, controlPlaneScope, ledgerName, type Scope, skyhookScope } from '../../lease/names.ts'
import { needsAllSlots, outlookOf, staleMs } from '../../lease/outlook.ts'
import { admissibleIndices, type Limit } from '../../lease/rule.ts'
import type { Leases, ScopeListing } from '../../lease/slot-reads.ts'
import { heldIndices, type Lease } from '../../lease/slot.ts'
import { initialWait, nextWait, type WaitEvent, type Watched } from '../../lease/wait-state.ts'
import type { Random } from '../../schemas/clock.ts'
import { isEqual } from '../../schemas/json.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'
import type { FleetSize } from '../state/fleet-size.ts'
import type { Denial } from './denials.ts'
import { type LeaseWatch, queryOf, readLease, watchLeases } from './lease-watch.ts'

export type SlotWait = {
  /** Starts the wait in place of a first request. */
  begin(): void
  /** Passes the latest view of the Skyhook. Its new budget may be a reason for a request. */
  update(view: SkyhookView): void
  /** Whether many other nodes are, or may be, ahead of this one. */
  isFar(): boolean
  /**
   * Why the next request is omitted, for people. Undefined if a request is useful, or if there was no news for a long
   * time.
   */
  takeReason(): Pick<Denial, 'message' | 'waitsFor'> | undefined
  /** A free index, if the node sees one. */
  preferredIndex(): number | undefined
  /** A request for a slot of this kind was denied. `listing` is the list that the denial is based on. */
  denied(kind: Scope['kind'], message: string, listing: Partial<ScopeListing> | undefined): void
  close(): void
}

export type SlotWaitOptions = {
  readonly leases: Leases
  readonly nodeUid: () => string | undefined
  readonly fleet: FleetSize
  readonly random: Random
  /** A request is useful now, or the reason against it has changed. */
  readonly onTurn: () => void
  /** The turn is near: the node should prepare its work. */
  readonly onNear: () => void
  /** The census has not counted, or not for a long time: the caller should check whether there is one. */
  readonly onCountMissing: () => void
  readonly signal: AbortSignal
}

/** Most clusters have this many nodes in the control plane, or fewer. */
const controlPlaneNodes = 3

export const requestingReason = 'requesting a slot'

/** The ledger's data about slots of this kind. */
function lineOf(view: SkyhookView, kind: Scope['kind'], ledgers: readonly Lease[]) {
  const [limitOf, scopeIn] =
    kind === 'bootstrap' ? [budget.bootstrapLimitOf, bootstrapScope] : [budget.limitOf, skyhookScope]
  const compartment = budget.compartmentOf(view, ledgers) ?? ''
  return {
    limit: kind === 'control-plane' ? 1 : limitOf(view, ledgers),
    dependsOnLedger: typeof budget.limitOf(view, []) === 'object',
    batches: budget.batchesOf(view, ledgers),
    queue: kind === 'slot' ? budget.queueOf(view, ledgers) : undefined,
    scope:
      kind === 'control-plane' ? controlPlaneScope : scopeIn(view.metadata, compartment, budget.compartmentNames(view)),
  }
}

export function startSlotWait(first: SkyhookView, options: SlotWaitOptions): SlotWait {
  const { leases, fleet, random } = options
  const { clock } = leases
  const closing = new AbortController()
  const signal = AbortSignal.any([options.signal, closing.signal])
  let state = initialWait
  let view = first
  let kind: Scope['kind'] = 'slot'
  let ledgers: readonly Lease[] = []
  let line = lineOf(view, kind, ledgers)
  let lineSinceMs = clock.monotonicMs()
  let watch: LeaseWatch | undefined
  /** Undefined if all slots are watched, or none. */
  let watchedIndices: readonly number[] | undefined
  let cancelTimer: (() => void) | undefined
  /** The watched slots did not show why the request was denied. */
  let areSomeTooFew = false
  let isCountAwaited = true
  let answerMs = 0
  let lot = random.number()
  let asleepSince: { readonly ms: number; readonly waiters: number } | undefined
  /** The reason that is shown. */
  let shown: string | undefined
  let isReasonNew = true

  /** Updates the state from the current line: view, kind and ledgers. */
  function learn(found: readonly Lease[] = ledgers): void {
    const before = line
    ledgers = found
    line = lineOf(view, kind, ledgers)
    fleet.observe(agentsIn(ledgers) ?? 0)
    if (!isEqual([line.queue, line.batches], [before.queue, before.batches])) lineSinceMs = clock.monotonicMs()
  }

  /** A newer count replaces the number of Nodes that a request has asked for. */
  function learnCount(ledger: Lease | undefined): void {
    const isNewer = ledger !== undefined && ledger.metadata.resourceVersion !== ledgers[0]?.metadata.resourceVersion
    if (isNewer) view = { ...view, nodes: Infinity }
    learn(ledger === undefined ? [] : [ledger])
  }

  function limitNow(): Limit {
    const slots = view.spec.deploymentPolicy && kind === 'slot' && watch?.slots()
    return slots ? budget.limitOf(view, ledgers, slots) : line.limit
  }

  /**
   * Free indices among the watched slots, by the admission rule. Undefined until the slots arrive, and if they do not
   * decide it.
   */
  function freeIndices(limit: Limit): readonly number[] | undefined {
    const slots = watch?.slots()
    if (slots === undefined || typeof limit !== 'number' || (watchedIndices && areSomeTooFew)) return undefined
    const free = admissibleIndices(heldIndices(slots, line.scope), limit)
    return free.filter((index) => watchedIndices?.includes(index) ?? true)
  }

  const unchangedMs = (): number => clock.monotonicMs() - lineSinceMs

  function outlook() {
    const ledger = watch?.ledger(ledgerName(view.metadata))
    if (ledger !== undefined && ledger !== ledgers[0]) learnCount(ledger)
    const limit = limitNow()
    const { ms = clock.monotonicMs(), waiters = 0 } = asleepSince ?? {}
    return outlookOf(
      {
        ...line,
        nodeUid: options.nodeUid() ?? '',
        limit,
        unchangedMs: unchangedMs(),
        hasLine: kind === 'slot',
        needsAllSlots: areSomeTooFew || kind !== 'slot',
        others: kind === 'control-plane' ? controlPlaneNodes : fleet.agents(),
        isCountAwaited,
        free: freeIndices(limit)?.length,
        asleep: { ms: clock.monotonicMs() - ms, done: waiters - (line.queue?.waiters ?? 0) },
        answerMs,
        lot,
      },
      random.number(),
    )
  }

  function dispatch(event: WaitEvent): void {
    if (signal.aborted) return
    const wasFar = isFar()
    const { state: next, effects } = nextWait(state, event, clock.monotonicMs(), random.number())
    state = next
    asleepSince =
      state.at === 'far' ? (asleepSince ?? { ms: clock.monotonicMs(), waiters: line.queue?.waiters ?? 0 }) : undefined
    follow(state.watched)
    cancelTimer?.()
    const inMs = state.timerAtMs - clock.monotonicMs()
    cancelTimer = inMs === Infinity ? undefined : clock.startTimer(inMs, () => dispatch({ event: 'timer' }))
    if (effects.includes('count-missing')) options.onCountMissing()
    if (effects.includes('read-ledger')) void read()
    if (wasFar && !isFar()) soon(options.onNear)
    const reason = whyNot()?.message
    const isReason = shown !== undefined && reason !== undefined && reason !== requestingReason && reason !== shown
    if (effects.includes('ask') || (isReason && !isReasonNew)) soon(options.onTurn)
    isReasonNew ||= isReason
  }

  function follow(watched: Watched): void {
    const query = queryOf(watched, view.metadata, line.scope)
    if (isEqual(query, watch?.query)) return
    watch?.close()
    watch = query && watchLeases(leases, query, { random, onChange: look, signal })
    watchedIndices = typeof watched === 'object' ? watched : undefined
  }

  /** Runs later, because the caller may not have recorded the wait yet. */
  const soon = (report: () => void): void => void clock.startTimer(0, () => void (!signal.aborted && report()))

  const look = (): void => dispatch({ event: 'seen', outlook: outlook() })

  async function read(): Promise<void> {
    const startedMs = clock.monotonicMs()
    try {
      if (watch?.ledger(ledgerName(view.metadata)) === undefined) {
        const ledger = await readLease(leases, ledgerName(view.metadata), signal)
        answerMs = clock.monotonicMs() - startedMs
        learnCount(ledger)
      }
      if (unchangedMs() > staleMs) options.onCountMissing()
    } catch {
      // a failed read is repeated like a read without news
    }
    if (state.at === 'uncounted' && state.watched === 'ledger') isCountAwaited = false // it was long enough
    lot = random.number()
    look()
  }

  const isFar = (): boolean => state.at === 'far' || state.at === 'uncounted' || state.at === 'closed'

  function whyNot(): Pick<Denial, 'message' | 'waitsFor'> | undefined {
    if (state.at === 'asked' || kind !== 'slot') return undefined
    const limit = limitNow()
    if (typeof limit === 'object') return { message: `budget unknown: ${limit.unknown}` }
    const slots = watch?.slots()
    const { watched } = state
    const isSeen = watched === 'nothing' || watched === 'ledger' ? ledgers.length > 0 : slots !== undefined
    const isUncounted = state.at === 'uncounted' && limit !== 0
    if (isUncounted || state.at === 'turn' || limit === 'unlimited' || !isSeen) return { message: requestingReason }
    const batch = budget.batchReason(view, { ledgers, ...(slots && { slots }) })
    return batch === undefined ? { message: fullReason(limit) } : { message: batch, waitsFor: 'batch' }
  }

  return {
    begin: () => void read(),
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
      isCountAwaited = true
      asleepSince = undefined
      learn()
      look()
    },

    preferredIndex() {
      const free = watchedIndices && freeIndices(limitNow())
      return free?.[Math.floor(random.number() * free.length)]
    },

    denied(asked, message, { ledgers: found, slots } = {}) {
      kind = asked
      shown = message
      isReasonNew = false
      learn(found)
      areSomeTooFew = slots !== undefined && needsAllSlots(slots, line.scope, limitNow())
      dispatch({ event: 'denied' })
      look()
    },

    close() {
      closing.abort()
      cancelTimer?.()
    },
  }
}
