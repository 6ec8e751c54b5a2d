import { isOutcomeUnknown, NotConnectedError } from '../../../host/dbus/errors.ts'
import type { BusConnection } from '../../../host/dbus/reconnecting.ts'
import { readStepNote, type StepHost } from '../../../host/step/files.ts'
import { observeStepUnit } from '../../../host/step/observe.ts'
import type { LogFiles } from '../../../packages/step/log-files.ts'
import { failureTail } from '../../../packages/step/output-reader.ts'
import { type Clock, startInterval } from '../../../schemas/clock.ts'
import { type Journal, openSteps } from '../../../schemas/journal.ts'
import type { StepAttempt } from '../../../schemas/package-record.ts'
import type { StepEnd } from '../../../schemas/step-end.ts'
import type { AttemptObservation } from '../../../stages/model/snapshot.ts'
import type { FailureBook } from '../../failures/book.ts'
import type { HostSource } from '../../state/host.ts'

const failureName = 'observe steps'

/** Signals can be lost with a D-Bus connection, so running steps are also polled at this interval. */
const observeIntervalMs = 10_000
/** systemd restarts within a second or two; a longer silence becomes a reason. */
const maxSilenceMs = 20_000
/** A host that has not shut down within this time will not. */
const maxShutdownMs = 300_000

/**
 * The log files of an attempt, and its secrets, which must not be quoted. Stored on the host for the agent that sees
 * its end.
 */
export type StepLogNote = { readonly files: LogFiles; readonly secrets: readonly string[] }

/** Watches the open step attempts of the journal until it is closed. */
export type StepObserver = {
  observe(step: StepAttempt): Promise<void>
  /** Observes every open attempt: before the first decision, and after signals may have been lost. */
  observeOpen(): Promise<void>
  close(): void
}

export type ObserverPorts = {
  readonly host: StepHost
  readonly connection: BusConnection
  readonly hostSource: Pick<HostSource, 'bootId' | 'refreshBootId'>
  readonly journal: () => Journal
  readonly attempts: Attempts
  readonly clock: Clock
  readonly failures: Pick<FailureBook, 'record' | 'clear'>
  readonly wake: () => void
}

export function startStepObserver(ports: ObserverPorts): StepObserver {
  const { host, connection, hostSource, attempts, clock } = ports
  const shutdownSinceMs = new Map<string, number>()

  async function observe(step: StepAttempt): Promise<void> {
    const wasRunning = attempts.stateOf(step.id) === 'running'
    const observed = await observeStepUnit(host, { id: step.id, unit: step.unit, bootId: step.bootId })
    const previous = attempts.stateOf(step.id)
    if (previous === 'ended') return
    if (observed.state === 'absent') {
      if (previous === 'absent') return // keeps its blocker until it is started
      if (previous === undefined) attempts.absent(step.id)
      else if (wasRunning)
        attempts.ended(step.id, { outcome: 'unknown', detail: `${step.unit} is gone and left no result` })
      else return // it started during the request
    } else if (observed.state === 'running' || (observed.isHostStopping && isGoingDown(step))) attempts.running(step.id)
    else {
      const failed = observed.result.outcome !== 'exited' || observed.result.code !== 0
      const logTail = failed ? await tailOfAttempt(step) : undefined
      if (attempts.stateOf(step.id) === 'ended') return // two observers saw the end
      const end = observed.isHostStopping
        ? ({ outcome: 'unknown', detail: 'the host was shutting down when it ended' } as const)
        : observed.result
      attempts.ended(step.id, end, logTail)
    }
    ports.wake()
  }

  /** The tail of its log without secrets, even if a previous agent started the attempt. */
  async function tailOfAttempt({ id }: StepAttempt): Promise<string | undefined> {
    const text = await readStepNote(host, id)
    if (text === undefined) return undefined
    const { files, secrets } = JSON.parse(text) as StepLogNote
    return await failureTail(host.root, files, secrets)
  }

  /**
   * The result of a step that ended during the shutdown of the host counts after the next boot, or after a while if the
   * shutdown was canceled.
   */
  function isGoingDown(step: StepAttempt): boolean {
    if (step.bootId !== hostSource.bootId()) return false
    const sinceMs = shutdownSinceMs.get(step.id) ?? clock.steadyMs()
    shutdownSinceMs.set(step.id, sinceMs)
    return clock.steadyMs() - sinceMs < maxShutdownMs
  }

  async function observeOpen(): Promise<void> {
    await hostSource.refreshBootId()
    await Promise.all(openSteps(ports.journal()).map(observe))
  }

  let silentSinceMs: number | undefined

  /**
   * Observes a step after a poll or a signal. Without D-Bus, the observation after the reconnect finds the steps that
   * ended.
   */
  async function observeInBackground(task: () => Promise<void>): Promise<void> {
    try {
      await task()
      silentSinceMs = undefined
      ports.failures.clear(failureName)
    } catch (error) {
      if (error instanceof NotConnectedError || isOutcomeUnknown(error)) {
        silentSinceMs ??= clock.steadyMs()
        if (clock.steadyMs() - silentSinceMs < maxSilenceMs) return
      }
      ports.failures.record(failureName, { operation: 'observe the running steps' }, error)
      ports.wake()
    }
  }

  const unsubscribeJobs = host.units.onJobEnd(({ unit }) => {
    const step = openSteps(ports.journal()).find((open) => open.unit === unit)
    if (step) void observeInBackground(() => observe(step))
  })
  const unsubscribeState = connection.onState((bus) => {
    if (bus.state === 'connected') void observeInBackground(observeOpen)
  })
  const stopLooking = startInterval(clock, observeIntervalMs, () => void observeInBackground(observeOpen), {
    isBackground: true,
  })

  return {
    observe,
    observeOpen,
    close() {
      unsubscribeJobs()
      unsubscribeState()
      stopLooking()
    },
  }
}

/** The observed states of the open step attempts of the journal, by attempt id. */
export type Attempts = {
  current(): ReadonlyMap<string, AttemptObservation>
  /** Undefined if the attempt was not observed yet. */
  stateOf(id: string): AttemptObservation['state'] | undefined
  /** The attempt has no unit and no result. */
  absent(id: string): void
  running(id: string): void
  ended(id: string, end: StepEnd, logTail?: string): void
  /** The attempt must be stopped and must not start. */
  cancel(id: string): void
  isCanceled(id: string): boolean
  /** The time since which systemd has the request to stop it (steady ms). */
  stopRequested(id: string, atMs: number): void
  stopRequestedAtMs(id: string): number | undefined
  /** Its end is recorded: forgets it. */
  forget(id: string): void
}

/** `onRunning` is called with each observation of a running attempt. */
export function createAttempts(onRunning: (id: string) => void = () => undefined): Attempts {
  const attempts = new Map<string, AttemptObservation>()
  const canceled = new Set<string>()
  const stopRequests = new Map<string, number>()
  return {
    current: () => attempts,
    stateOf: (id) => attempts.get(id)?.state,
    absent: (id) => void attempts.set(id, { state: 'absent' }),
    running(id) {
      attempts.set(id, { state: 'running' })
      onRunning(id)
    },
    ended: (id, end, logTail) => void attempts.set(id, { state: 'ended', end, ...(logTail && { logTail }) }),
    cancel: (id) => void canceled.add(id),
    isCanceled: (id) => canceled.has(id),
    stopRequested: (id, atMs) => void stopRequests.set(id, atMs),
    stopRequestedAtMs: (id) => stopRequests.get(id),
    forget(id) {
      attempts.delete(id)
      canceled.delete(id)
      stopRequests.delete(id)
    },
  }
}
