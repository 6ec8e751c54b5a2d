/**
 * Restarts of the host's own services.
 *
 * systemd's word `done` is not enough: a simple service that dies at once, one that is restarted over and over, and one
 * whose condition does not hold are all done. Restarted means: the job is done, the unit runs under another invocation than
 * before, and still does after a short while; or it is one that ends (Type=oneshot), and has ended well. A service that did not run
 * before, because a Condition of its unit does not hold on this host, need not be restarted.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { BusError, describeError, isOutcomeUnknown, NoAnswerError, NotConnectedError } from '../dbus/errors.ts'
import { endOfUnit } from './unit-end.ts'
import type { UnitSnapshot } from './unit-state.ts'
import type { Units } from './units.ts'

export type RestartOutcome =
  | { readonly outcome: 'restarted'; readonly invocationId: string }
  | { readonly outcome: 'not-needed'; readonly detail: string }
  /** It was asked for and did not come up, or cannot be asked for; `detail` says which. */
  | { readonly outcome: 'failed'; readonly reason: RestartFailure; readonly detail: string }
  /** Nothing was asked. */
  | { readonly outcome: 'not-asked'; readonly detail: string }
  /** The connection or the answer was lost: see `confirmRestart`, with the same `previousInvocation`. */
  | { readonly outcome: 'unknown'; readonly detail: string }

export type RestartFailure = 'no-such-unit' | 'masked' | 'bad-unit' | 'refused' | 'job-failed' | 'condition' | 'not-active' | 'timeout'

export type RestartTimes = {
  /** How long to watch the service after its job is done. */
  readonly settleMs?: number
  /** How long the job may take, its own start and stop limits included. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/**
 * A service that dies at once is gone within milliseconds and comes back 100 ms later (RestartSec's default); this is
 * enough to see both, and short beside the restart of a kubelet.
 */
const SETTLE_MS = 300
/** Above systemd's 90 s to stop and 90 s to start. */
const TIMEOUT_MS = 200_000
/** `confirmRestart` polls: with the old connection gone nobody tells. */
const CONFIRM_POLL_MS = 50

const OVERDUE = 'overdue' // not a result of systemd's

/** Only the jobs of a shutdown cannot be replaced: what is refused now is for the next boot. */
const jobInTheWay = 'org.freedesktop.systemd1.TransactionIsDestructive'

const REFUSALS: Readonly<Record<string, RestartFailure>> = {
  'org.freedesktop.systemd1.NoSuchUnit': 'no-such-unit',
  'org.freedesktop.systemd1.LoadFailed': 'bad-unit',
  'org.freedesktop.systemd1.BadUnitSetting': 'bad-unit',
  'org.freedesktop.systemd1.UnitMasked': 'masked',
}

/** The unit that people mean by the name of a service: `kubelet` is `kubelet.service`, as systemctl has it. */
export function serviceUnit(name: string): string {
  return /\.(?:service|socket|target|timer|mount|automount|swap|path|slice|scope|device)$/.test(name) ? name : `${name}.service`
}

/**
 * Restarts a service and waits until it is known how that went. `previousInvocation` is the invocation before (empty for
 * one that did not run): the caller has written it down, to be able to go on after a crash.
 */
export async function restartService(
  units: Units,
  unit: string,
  previousInvocation: string,
  times: RestartTimes = {},
): Promise<RestartOutcome> {
  const { timeoutMs = TIMEOUT_MS, signal } = times
  const jobs = watchJobs(units) // before asking: the end of the job may overtake the answer
  try {
    // Without the first a service that failed too often is refused in a millisecond, with its old result. Without the second one
    // that ended is unloaded, and why it ended is forgotten. systemd takes the three in this order.
    const [, , job] = await Promise.all([units.resetFailed(unit), units.ref(unit), units.restart(unit, signal ? { signal } : {})])
    const result = await jobs.result(job, timeoutMs, signal)
    if (result === OVERDUE) return overdue(unit, timeoutMs)
    if (result !== 'done') return await jobFailed(units, unit, result)
    return await settled(units, unit, previousInvocation, times)
  } catch (error) {
    return restartFailed(error, unit)
  } finally {
    jobs.stop()
    units.unref(unit).catch(() => {}) // it ends with the connection anyway
  }
}

/**
 * Decides a restart whose answer was lost, from the unit alone, and waits for a bus to ask. `not-asked`: the unit has its
 * previous invocation and no job, so nothing was done and it may be asked again.
 */
export async function confirmRestart(
  units: Units,
  unit: string,
  previousInvocation: string,
  times: RestartTimes = {},
): Promise<RestartOutcome> {
  const { timeoutMs = TIMEOUT_MS, signal } = times
  const deadlineMs = performance.now() + timeoutMs
  for (;;) {
    let outcome: RestartOutcome
    try {
      const state = await units.readState(unit, signal ? { signal } : {})
      const settling = state.jobPending || state.activeState === 'activating' || state.activeState === 'deactivating'
      if (settling) outcome = overdue(unit, timeoutMs)
      else if ((state.invocationId ?? '') === previousInvocation) return { outcome: 'not-asked', detail: `${unit} is as it was before` }
      else return await settled(units, unit, previousInvocation, times)
    } catch (error) {
      if (!isOutcomeUnknown(error) && !(error instanceof NotConnectedError)) throw error
      outcome = { outcome: 'unknown', detail: `${unit}: ${describeError(error)}` } // reading may be repeated
    }
    if (signal?.aborted || performance.now() > deadlineMs) return outcome
    await delay(CONFIRM_POLL_MS)
  }
}

function overdue(unit: string, timeoutMs: number): RestartOutcome {
  return { outcome: 'failed', reason: 'timeout', detail: `${unit} did not restart within ${timeoutMs} ms` }
}

async function settled(
  units: Units,
  unit: string,
  previousInvocation: string,
  { settleMs = SETTLE_MS, signal }: RestartTimes,
): Promise<RestartOutcome> {
  const first = await units.readSnapshot(unit)
  const hasEnded = first.endsByItself && first.activeState === 'inactive' && first.conditionResult
  if (hasEnded && first.result === 'success' && first.invocationId !== undefined && first.invocationId !== previousInvocation)
    return { outcome: 'restarted', invocationId: first.invocationId }
  if (!first.conditionResult && first.activeState === 'inactive' && previousInvocation === '')
    return { outcome: 'not-needed', detail: `${unit} did not run, and one of its conditions does not hold here` }
  if (first.activeState !== 'active') return notActive(unit, first)
  await delay(settleMs, undefined, signal ? { signal } : {})
  const then = await units.readSnapshot(unit)
  if (then.activeState !== 'active' || then.nRestarts > first.nRestarts) return notActive(unit, then)
  const { invocationId } = then
  if (invocationId === undefined || invocationId === previousInvocation) {
    return { outcome: 'failed', reason: 'not-active', detail: `${unit} runs, but was not restarted` }
  }
  return { outcome: 'restarted', invocationId }
}

function notActive(unit: string, snapshot: UnitSnapshot): RestartOutcome {
  if (!snapshot.conditionResult)
    return { outcome: 'failed', reason: 'condition', detail: `${unit} was not started: one of its conditions does not hold` }
  const again = snapshot.nRestarts > 0 ? `, restarted by itself ${snapshot.nRestarts} times` : ''
  return {
    outcome: 'failed',
    reason: 'not-active',
    detail: `${unit} is ${snapshot.activeState}/${snapshot.subState} (${howItEnded(snapshot)}${again})`,
  }
}

async function jobFailed(units: Units, unit: string, result: string): Promise<RestartOutcome> {
  const snapshot = await units.readSnapshot(unit)
  return { outcome: 'failed', reason: 'job-failed', detail: `restarting ${unit}: job ${result} (${howItEnded(snapshot)})` }
}

function howItEnded(snapshot: UnitSnapshot): string {
  const { result, code, status } = endOfUnit(snapshot)
  return code === '' ? result : `${result}, ${code} ${status}`
}

function restartFailed(error: unknown, unit: string): RestartOutcome {
  if (isOutcomeUnknown(error)) return { outcome: 'unknown', detail: `${unit}: ${describeError(error)}` }
  if (error instanceof NotConnectedError) return { outcome: 'not-asked', detail: error.message }
  if (error instanceof BusError && error.name === jobInTheWay) return { outcome: 'not-asked', detail: describeError(error) }
  if (error instanceof BusError) return { outcome: 'failed', reason: REFUSALS[error.name] ?? 'refused', detail: describeError(error) }
  throw error
}

/**
 * Remembers the ends of jobs, so that one that comes before its job's name is known is not missed. Of all units: the name
 * that was asked for may be an alias (dbus.service of dbus-broker.service), and the news carry the real one.
 */
function watchJobs(units: Units) {
  const results = new Map<string, string>()
  let lost: string | undefined
  let look = () => {}
  const stops = [
    units.onJobEnd(({ job, result }) => {
      results.set(job, result)
      look()
    }),
    units.onInterrupted((why) => {
      lost = why
      look()
    }),
  ]
  return {
    stop: () => stops.forEach((stop) => stop()),
    /** The job's result. Rejects with NoAnswerError when it cannot be known any more. */
    async result(job: string, timeoutMs: number, signal: AbortSignal | undefined): Promise<string> {
      const result = Promise.withResolvers<string>()
      look = () => {
        const known = results.get(job)
        if (known !== undefined) result.resolve(known)
        else if (lost !== undefined) result.reject(new NoAnswerError('connection-lost', `restarting: ${lost}`))
      }
      look()
      const onAbort = () => result.reject(new NoAnswerError('aborted', 'given up while restarting', { cause: signal?.reason }))
      if (signal?.aborted) onAbort()
      signal?.addEventListener('abort', onAbort, { once: true })
      const timer = setTimeout(() => result.resolve(OVERDUE), timeoutMs)
      try {
        return await result.promise
      } finally {
        clearTimeout(timer)
        signal?.removeEventListener('abort', onAbort)
      }
    },
  }
}
