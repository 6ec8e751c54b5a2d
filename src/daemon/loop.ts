import type { Clock } from '../schemas/clock.ts'
import { isEqual } from '../schemas/json.ts'
import { decide } from '../stages/decide.ts'
import { type Action, failureKey, isPlannedOnce, type Plan, type TimedReason } from '../stages/model/plan.ts'
import type { Snapshot } from '../stages/model/snapshot.ts'
import { publishFailureKeys, reasonsOf } from '../stages/publish/essential-patch.ts'
import { undecidedPlan } from '../stages/skyhook/undecided.ts'
import { createRepetitions, type FailureBook, operationOf } from './failures/book.ts'
import type { ActionOutcome } from './failures/reason-of.ts'
import type { JournalStore } from './state/journal.ts'

export type LoopPorts = {
  readonly clock: Clock
  readonly wakeup: Wakeup
  readonly journal: Pick<JournalStore, 'current' | 'error' | 'write'>
  /** Undefined while the own Node is unknown. */
  takeSnapshot(nowMs: number): Snapshot | undefined
  /** Current failures; a failed action is retried with its backoff. */
  readonly failures: FailureBook
  execute(action: Action): Promise<ActionOutcome>
  /** After each decision whose journal is durable, before its actions. */
  onDecided(plan: Plan): void
  readonly onActionFailed: (action: Action, error: unknown) => void
  /** The action rejected, which is a bug. It is retried, too. */
  readonly onActionRejected: (action: Action, error: unknown) => void
  /** The decision itself threw. Without a snapshot, `reasons` is empty. */
  onDecisionFailed(error: unknown, snapshot: Snapshot | undefined, reasons: Plan['reasons']): void
  /** Owners forget answers that no action of the plan needs. */
  retain(needed: ReadonlySet<string>): void
  readonly signal: AbortSignal
}

/** Time between attempts to write the journal. */
const journalRetryMs = 1_000
/** Without changes, the loop decides at this interval, for facts without events (a clock, a file). */
const maxSleepMs = 60_000

/** The key of the decision among the failures. */
const decisionKey = 'decide'

/**
 * The agent's only loop: snapshot, decide, make the journal durable, act. Actions start only after the journal is
 * durable. A running action is not started again; its end wakes the loop. After an abort, resolves when the current
 * decision and its journal are done; actions may still be running.
 */
export async function runLoop(ports: LoopPorts): Promise<void> {
  const { clock, wakeup, journal, failures, signal } = ports
  const running = new Set<string>()
  /** Running actions, by their keys among the failures. */
  const underWay = new Set<string>()
  const actionsToRetry = new Map<string, Action>()
  const repetitions = createRepetitions(clock)
  let reasons: ReadonlyMap<string, TimedReason> = new Map()
  signal.addEventListener('abort', wakeup.wake)

  function start(action: Action): void {
    if (running.has(action.key)) return
    running.add(action.key)
    underWay.add(failureKey(action))
    ports
      .execute(action)
      .then(
        (result) => {
          if (result.outcome === 'failed') return failed(action, result.error, ports.onActionFailed)
          failures.clear(failureKey(action))
          actionsToRetry.delete(action.key)
          repetitions.succeeded(action)
        },
        (error: unknown) => failed(action, error, ports.onActionRejected),
      )
      .finally(() => {
        running.delete(action.key)
        underWay.delete(failureKey(action))
        wakeup.wake()
      })
      .catch(() => undefined) // the two handlers above do not throw
  }

  function failed(action: Action, error: unknown, report: LoopPorts['onActionFailed']): void {
    if (signal.aborted) return
    const skyhook = 'skyhook' in action ? action.skyhook : undefined
    failures.record(failureKey(action), { operation: operationOf(action), skyhook, action: action.do }, error)
    if (isPlannedOnce(action.do)) actionsToRetry.set(action.key, action)
    report(action, error)
  }

  /**
   * Shows on the Node why nothing happens, even while the journal cannot be written: no decision depends on reasons.
   */
  function reportPlan(plan: Plan, nowMs: number): void {
    reasons = plan.reasons
    ports.onDecided({ ...plan, events: [] })
    const reports = plan.actions.flatMap((action) => (action.do === 'publish' ? (reasonsOf(action) ?? []) : []))
    startAll(reports, nowMs)
  }

  /** Starts the actions that may start now. Returns when the first of the others may start. */
  function startAll(actions: readonly Action[], nowMs: number): number {
    let retryAtMs = Infinity
    for (const action of actions) {
      const notBeforeMs = Math.max(failures.notBeforeMs(failureKey(action)), repetitions.notBeforeMs(action))
      if (notBeforeMs > nowMs) retryAtMs = Math.min(retryAtMs, notBeforeMs)
      else start(action)
    }
    return retryAtMs
  }

  /** Forgets failures of actions that are no longer planned, after their backoff. */
  function dropFailures(actions: readonly Action[], nowMs: number): void {
    const requested = new Set(
      actions.flatMap((action) => (action.do === 'publish' ? [...publishFailureKeys] : [failureKey(action)])),
    )
    const isRequested = (key: string): boolean => requested.has(key) || underWay.has(key) // running: its end decides
    for (const [key, { action }] of failures.current())
      if (action !== undefined && !isRequested(key) && failures.notBeforeMs(key) <= nowMs) failures.clear(key)
  }

  /** One decision. A bug must not cause a crash loop: running work continues, and the Node shows why. */
  async function pass(): Promise<number> {
    const nowMs = clock.steadyMs()
    const notBeforeMs = failures.notBeforeMs(decisionKey)
    if (notBeforeMs > nowMs) return notBeforeMs
    let snapshot: Snapshot | undefined
    try {
      const requeueAtMs = await reconcile(nowMs, (taken) => (snapshot = taken))
      failures.clear(decisionKey)
      return requeueAtMs
    } catch (error) {
      const failure = failures.record(decisionKey, { operation: 'decide what to do' }, error)
      const plan = snapshot && undecidedPlan(snapshot, failure)
      if (plan) {
        reasons = plan.reasons
        startAll(plan.actions, nowMs)
      }
      ports.onDecisionFailed(error, snapshot, plan?.reasons ?? new Map())
      return failures.notBeforeMs(decisionKey)
    }
  }

  /** Returns the latest time of the next decision. */
  async function reconcile(nowMs: number, onSnapshot: (snapshot: Snapshot) => void): Promise<number> {
    const isWritable = journal.error() === undefined || (await journal.write(journal.current()))
    const snapshot = ports.takeSnapshot(nowMs)
    if (!snapshot) return nowMs + maxSleepMs
    onSnapshot(snapshot)
    const plan = decide(snapshot, reasons)
    if (!isEqual(plan.journal, journal.current()) && !(await journal.write(plan.journal))) {
      reportPlan(plan, nowMs)
      return nowMs + journalRetryMs
    }
    reasons = plan.reasons
    ports.onDecided(plan)
    ports.retain(plan.needed)
    const actions = [...plan.actions, ...actionsToRetry.values()]
    dropFailures(actions, nowMs)
    repetitions.planned(actions)
    const retryAtMs = startAll(actions, nowMs)
    return Math.min(plan.requeueAtMs, retryAtMs, nowMs + (isWritable ? maxSleepMs : journalRetryMs))
  }

  while (!signal.aborted) {
    const woken = wakeup.next() // this pass handles all earlier wake-ups
    const requeueAtMs = await pass()
    await sleepUntil(clock, requeueAtMs, woken)
  }
}

async function sleepUntil(clock: Clock, atMs: number, woken: Promise<void>): Promise<void> {
  const slept = Promise.withResolvers<void>()
  const cancel = clock.startTimer(Math.max(0, atMs - clock.steadyMs()), slept.resolve)
  await Promise.race([slept.promise, woken])
  cancel()
}

/** Notifies the loop that something changed. Created first and passed to all parts. */
export type Wakeup = {
  /** Something changed: decide again. */
  readonly wake: () => void
  /** Resolves at the first `wake` from now on. */
  next(): Promise<void>
}

export function createWakeup(): Wakeup {
  let pending = Promise.withResolvers<void>()
  return {
    wake: () => pending.resolve(),
    next() {
      pending = Promise.withResolvers<void>()
      return pending.promise
    },
  }
}
