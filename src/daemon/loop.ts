import type { Journal } from '../schemas/journal.ts'
import { reasonKey } from '../schemas/annotations.ts'
import { decide } from '../stages/decide.ts'
import type { Action, Plan, TimedReason } from '../stages/model/plan.ts'
import type { StageSettings } from '../stages/model/snapshot.ts'
import { type State, snapshotOf } from './state/state.ts'
import { emptyPatch } from '../stages/model/node-patch.ts'

/**
 * The agent's one loop: snapshot, decide, make the journal durable, act. Nothing acts on what is not durable, and an
 * action that is under way is not begun again; its end wakes the loop.
 * /
 */
export type Loop = {
  wake(): void
  /** Resolves after an abort, when the decision under way and its journal are done; actions may still be running. */
  readonly ended: Promise<void>
}

export type LoopPorts = {
  readonly state: State
  readonly settings: StageSettings
  writeJournal(journal: Journal): Promise<void>
  /** Carries out one action. A rejection is told and leads to another decision after a pause. */
  execute(action: Action): Promise<void>
  /** After each decision whose journal is durable, before its actions. */
  onDecided(plan: Plan): void
  onActionFailed(action: Action, error: unknown): void
  onJournalFailed(error: unknown): void
  readonly signal: AbortSignal
}

/** An action that failed is asked for again at the earliest after this; a quick fault must not become a storm. */
const failureDelayMs = 1_000
/** However quiet it is: facts that no event announces (a clock, a file) are looked at this often. */
const maxSleepMs = 60_000

export function startLoop(ports: LoopPorts): Loop {
  const { state, signal } = ports
  const running = new Set<string>()
  const retryNotBeforeMs = new Map<string, number>()
  const actionsToRetry = new Map<string, Action>()
  let reasons: ReadonlyMap<string, TimedReason> = new Map()
  let nextWake = Promise.withResolvers<void>()
  const wake = (): void => nextWake.resolve()
  signal.addEventListener('abort', wake)

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
          retryNotBeforeMs.set(action.key, Date.now() + failureDelayMs)
          if (isPlannedOnce(action)) actionsToRetry.set(action.key, action)
          ports.onActionFailed(action, error)
        },
      )
      .finally(() => {
        running.delete(action.key)
        wake()
      })
      .catch(() => undefined) // the two handlers above do not throw
  }

  /** What cannot be remembered must not be done: false where it could not be written. */
  async function persist(journal: Journal): Promise<boolean> {
    try {
      await ports.writeJournal(journal)
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      if (why !== state.journalError) ports.onJournalFailed(error)
      state.journalError = why
      return false
    }
    state.journal = journal
    state.journalError = undefined
    return true
  }

  /** Why nothing happens is told all the same: nobody goes by it. */
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
    const nowMs = Date.now()
    const sleepLimitMs =
      state.journalError === undefined || (await persist(state.journal)) ? maxSleepMs : failureDelayMs
    const snapshot = snapshotOf(state, nowMs, ports.settings)
    if (!snapshot) return nowMs + maxSleepMs
    const plan = decide(snapshot, reasons)
    if (JSON.stringify(plan.journal) !== JSON.stringify(state.journal) && !(await persist(plan.journal))) {
      reportPlan(plan)
      return nowMs + failureDelayMs
    }
    reasons = plan.reasons
    ports.onDecided(plan)
    for (const results of [state.preparations, state.requestedStatuses, state.cleanUps])
      for (const key of results.keys()) if (!plan.needed.has(key)) results.delete(key)
    let requeueAtMs = plan.requeueAtMs
    for (const action of [...plan.actions, ...actionsToRetry.values()]) {
      const notBeforeMs = retryNotBeforeMs.get(action.key) ?? 0
      if (notBeforeMs > nowMs) requeueAtMs = Math.min(requeueAtMs, notBeforeMs)
      else start(action)
    }
    return Math.min(requeueAtMs, nowMs + sleepLimitMs)
  }

  async function run(): Promise<void> {
    while (!signal.aborted) {
      nextWake = Promise.withResolvers<void>() // what woke us until here is answered by this pass
      const requeueAtMs = await reconcile()
      await sleepUntil(requeueAtMs, nextWake.promise)
    }
  }

  return { wake, ended: run() }
}

/** What follows from an entry of the journal in the moment in which it is made: no later plan asks for it again. */
const isPlannedOnce = ({ do: what }: Action): boolean => what.startsWith('record') || what === 'forgetStep'

const reasonsIn = (annotations: Readonly<Record<string, string | null>>): Record<string, string | null> =>
  Object.fromEntries(Object.entries(annotations).filter(([key]) => key.startsWith(reasonKey(''))))

async function sleepUntil(atMs: number, woken: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const timeout = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, Math.max(0, atMs - Date.now()))
  })
  await Promise.race([timeout, woken])
  clearTimeout(timer)
}
