import { isDeepStrictEqual } from 'node:util'
import { reasonKey } from '../schemas/annotations.ts'
import { type Clock, sleep } from '../schemas/clock.ts'
import { decide } from '../stages/decide.ts'
import { emptyPatch } from '../stages/model/node-patch.ts'
import type { Action, Plan, TimedReason } from '../stages/model/plan.ts'
import type { Snapshot } from '../stages/model/snapshot.ts'
import type { JournalStore } from './state/journal.ts'
import type { Wakeup } from './state/wakeup.ts'

export type LoopPorts = {
  readonly clock: Clock
  readonly wakeup: Wakeup
  readonly journal: Pick<JournalStore, 'current' | 'error' | 'write'>
  /** Undefined while the own Node is not known. */
  takeSnapshot(nowMs: number): Snapshot | undefined
  /** Carries out one action. A rejection leads to another decision after a pause. */
  execute(action: Action): Promise<void>
  /** After each decision whose journal is durable, before its actions. */
  onDecided(plan: Plan): void
  onActionFailed(action: Action, error: unknown): void
  /** Owners forget the answers that no action of the plan needs. */
  retain(needed: ReadonlySet<string>): void
  readonly signal: AbortSignal
}

/** A failed action is retried at the earliest after this, so that a quick failure does not become a storm. */
const failureDelayMs = 1_000
/** Even without changes the loop decides this often, for facts that no event announces (a clock, a file). */
const maxSleepMs = 60_000

/**
 * The agent's one loop: snapshot, decide, make the journal durable, act. Nothing acts on what is not durable, and an
 * action that is under way is not started again; its end wakes the loop. Resolves after an abort, when the decision
 * under way and its journal are done; actions may still be running.
 */
export async function runLoop(ports: LoopPorts): Promise<void> {
  const { clock, wakeup, journal, signal } = ports
  const running = new Set<string>()
  const retryNotBeforeMs = new Map<string, number>()
  const actionsToRetry = new Map<string, Action>()
  let reasons: ReadonlyMap<string, TimedReason> = new Map()
  signal.addEventListener('abort', wakeup.wake)

  function start(action: Action): void {
    if (running.has(action.key)) return
    running.add(action.key)
    ports
      .execute(action)
      .then(
        () => {
          retryNotBeforeMs.delete(action.key)
          actionsToRetry.delete(action.key)
        },
        (error: unknown) => {
          if (signal.aborted) return
          retryNotBeforeMs.set(action.key, clock.wallMs() + failureDelayMs)
          if (isPlannedOnce(action)) actionsToRetry.set(action.key, action)
          ports.onActionFailed(action, error)
        },
      )
      .finally(() => {
        running.delete(action.key)
        wakeup.wake()
      })
      .catch(() => undefined) // the two handlers above do not throw
  }

  /** The node says why nothing happens, also while the journal cannot be written: nothing is decided from reasons. */
  function reportPlan(plan: Plan): void {
    reasons = plan.reasons
    ports.onDecided({ ...plan, events: [] })
    for (const action of plan.actions) {
      const reasonAnnotations = action.do === 'publish' ? reasonsIn(action.patch.annotations) : {}
      if (action.do === 'publish' && Object.keys(reasonAnnotations).length > 0)
        start({ ...action, patch: { ...emptyPatch(), annotations: reasonAnnotations } })
    }
  }

  /** One decision; returns when to look again at the latest. */
  async function reconcile(): Promise<number> {
    const nowMs = clock.wallMs()
    const isWritable = journal.error() === undefined || (await journal.write(journal.current()))
    const snapshot = ports.takeSnapshot(nowMs)
    if (!snapshot) return nowMs + maxSleepMs
    const plan = decide(snapshot, reasons)
    if (!isDeepStrictEqual(plan.journal, journal.current()) && !(await journal.write(plan.journal))) {
      reportPlan(plan)
      return nowMs + failureDelayMs
    }
    reasons = plan.reasons
    ports.onDecided(plan)
    ports.retain(plan.needed)
    let requeueAtMs = plan.requeueAtMs
    for (const action of [...plan.actions, ...actionsToRetry.values()]) {
      const notBeforeMs = retryNotBeforeMs.get(action.key) ?? 0
      if (notBeforeMs > nowMs) requeueAtMs = Math.min(requeueAtMs, notBeforeMs)
      else start(action)
    }
    return Math.min(requeueAtMs, nowMs + (isWritable ? maxSleepMs : failureDelayMs))
  }

  while (!signal.aborted) {
    const woken = wakeup.next() // what woke us until here is answered by this pass
    const requeueAtMs = await reconcile()
    await sleepUntil(clock, requeueAtMs, woken)
  }
}

/** Actions that belong to one journal entry: no later plan contains them again. */
const isPlannedOnce = ({ do: what }: Action): boolean => what.startsWith('record') || what === 'forgetStep'

const reasonsIn = (annotations: Readonly<Record<string, string | null>>): Record<string, string | null> =>
  Object.fromEntries(Object.entries(annotations).filter(([key]) => key.startsWith(reasonKey(''))))

async function sleepUntil(clock: Clock, atMs: number, woken: Promise<void>): Promise<void> {
  const awake = new AbortController()
  const slept = sleep(clock, Math.max(0, atMs - clock.wallMs()), awake.signal).catch(() => undefined)
  await Promise.race([slept, woken])
  awake.abort()
}
