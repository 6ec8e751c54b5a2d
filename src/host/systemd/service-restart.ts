/**
 * Restarts of the host's own services.
 *
 * The job result `done` is not enough: a simple service that dies at once, a service in a restart loop and a service
 * whose condition does not hold all have it. Restarted means: the job is done, the unit runs with a new invocation, and
 * still does after a short while; or it is a unit that ends (Type=oneshot) and has succeeded. A service that did not
 * run before, because a Condition of its unit does not hold on this host, need not be restarted.
 */
import { type Clock, sleep } from '../../schemas/clock.ts'
import { counted } from '../../schemas/wording.ts'
import { BusError, describeError, isOutcomeUnknown, NoReplyError, NotConnectedError } from '../dbus/errors.ts'
import { endOfUnit, type UnitSnapshot } from './unit-state.ts'
import type { Units } from './units.ts'

export type RestartOutcome =
  | { readonly outcome: 'restarted'; readonly invocationId: string }
  | { readonly outcome: 'not-needed'; readonly detail: string }
  /** It was requested and did not come up, or cannot be requested; `detail` says which. */
  | { readonly outcome: 'failed'; readonly reason: RestartFailure; readonly detail: string }
  /** Nothing was requested. */
  | { readonly outcome: 'not-requested'; readonly detail: string }
  /** The connection or the answer was lost: see `confirmRestart`, with the same `previousInvocation`. */
  | { readonly outcome: 'unknown'; readonly detail: string }

type RefusedRestart = Extract<RestartOutcome, { readonly outcome: 'failed' }>

export type RestartFailure =
  | 'no-such-unit'
  | 'no-unit-name'
  | 'masked'
  | 'bad-unit'
  | 'refused'
  | 'job-failed'
  | 'condition'
  | 'not-active'
  | 'timeout'

export type RestartRequest = {
  readonly units: Units
  readonly clock: Clock
  readonly unit: string
  /** The invocation before the restart, empty for a unit that did not run. */
  readonly previousInvocation: string
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
const defaultSettleMs = 300
/** Above systemd's 90 s to stop and 90 s to start. */
const defaultTimeoutMs = 200_000
/** `confirmRestart` polls: the signals of the old connection are lost. */
const confirmPollMs = 50

const timedOutResult = 'overdue' // not a result of systemd's

/** Only the jobs of a shutdown cannot be replaced: after a refusal the restart waits for the next boot. */
const transactionIsDestructive = 'org.freedesktop.systemd1.TransactionIsDestructive'

const refusalReasons: Readonly<Record<string, RestartFailure>> = {
  'org.freedesktop.DBus.Error.InvalidArgs': 'no-unit-name',
  'org.freedesktop.systemd1.NoSuchUnit': 'no-such-unit',
  'org.freedesktop.systemd1.LoadFailed': 'bad-unit',
  'org.freedesktop.systemd1.BadUnitSetting': 'bad-unit',
  'org.freedesktop.systemd1.UnitMasked': 'masked',
}

/** The invocation before a restart, empty for a unit that does not run; or why its restart cannot be requested. */
export async function readInvocation({
  units,
  unit,
  signal,
}: Pick<RestartRequest, 'units' | 'unit' | 'signal'>): Promise<
  { readonly outcome: 'read'; readonly invocationId: string } | RefusedRestart
> {
  try {
    return { outcome: 'read', invocationId: (await units.readState(unit, { signal })).invocationId ?? '' }
  } catch (error) {
    return refusedRestart(error, unit)
  }
}

/**
 * Restarts a service and waits until the outcome is known. The caller has recorded `previousInvocation`, to be able to
 * continue after a crash.
 */
export async function restartService(request: RestartRequest): Promise<RestartOutcome> {
  const { units, clock, unit, timeoutMs = defaultTimeoutMs, signal } = request
  const jobs = watchJobs(units, clock) // before the request: the end of the job may overtake the answer
  try {
    // Without the first, systemd refuses a service that failed too often in a millisecond, with its old result. Without
    // the second, systemd unloads an ended service together with the reason of its end. systemd carries out the three
    // in this order.
    const [, , job] = await Promise.all([units.resetFailed(unit), units.ref(unit), units.restart(unit, { signal })])
    const result = await jobs.result(job, timeoutMs, signal)
    if (result === timedOutResult) return timedOut(request)
    if (result === 'done') return (await endedUnseen(request)) ?? (await settledOutcome(request))
    return failed('job-failed', `restarting ${unit}: job ${result} (${describeEnd(await units.readSnapshot(unit))})`)
  } catch (error) {
    return errorOutcome(error, unit)
  } finally {
    jobs.stop()
    units.unref(unit).catch(() => {}) // it ends with the connection anyway
  }
}

/**
 * Decides a restart whose answer was lost, from the unit alone, and waits for a bus to ask. `not-requested`: the unit
 * has its previous invocation and no job, so nothing was done and the request may be repeated.
 */
export async function confirmRestart(request: RestartRequest): Promise<RestartOutcome> {
  const { units, clock, unit, previousInvocation, timeoutMs = defaultTimeoutMs, signal } = request
  const deadlineMs = clock.monotonicMs() + timeoutMs
  for (;;) {
    let outcome: RestartOutcome
    try {
      const state = await units.readState(unit, { signal })
      const isSettling =
        state.isJobPending || state.activeState === 'activating' || state.activeState === 'deactivating'
      if (isSettling) outcome = timedOut(request)
      else if ((state.invocationId ?? '') === previousInvocation)
        return { outcome: 'not-requested', detail: `${unit} is in its previous state` }
      else return await settledOutcome(request)
    } catch (error) {
      if (!isOutcomeUnknown(error) && !(error instanceof NotConnectedError)) return refusedRestart(error, unit)
      outcome = { outcome: 'unknown', detail: `${unit}: ${describeError(error)}` } // reading may be repeated
    }
    if (signal?.aborted || clock.monotonicMs() > deadlineMs) return outcome
    await sleep(clock, confirmPollMs)
  }
}

function failed(reason: RestartFailure, detail: string): RefusedRestart {
  return { outcome: 'failed', reason, detail }
}

function timedOut({ unit, timeoutMs = defaultTimeoutMs }: RestartRequest): RestartOutcome {
  return failed('timeout', `${unit} did not restart within ${timeoutMs} ms`)
}

async function settledOutcome(request: RestartRequest): Promise<RestartOutcome> {
  const { clock, unit, previousInvocation, settleMs = defaultSettleMs, signal } = request
  const isRestarted = ({ invocationId }: UnitSnapshot): boolean =>
    invocationId !== undefined && invocationId !== previousInvocation
  const restarted = ({ invocationId = '' }: UnitSnapshot): RestartOutcome => ({ outcome: 'restarted', invocationId })

  const initial = await untilNobodyRestarts(request)
  if (initial.activeState === 'inactive') {
    const { isOneshot, conditionResult, result } = initial
    if (isOneshot && conditionResult && result === 'success' && isRestarted(initial)) return restarted(initial)
    if (!conditionResult && previousInvocation === '')
      return { outcome: 'not-needed', detail: `${unit} did not run, and one of its conditions does not hold here` }
  }
  if (initial.activeState !== 'active') return notActive(unit, initial)
  await sleep(clock, settleMs, signal)
  const later = await untilNobodyRestarts(request)
  if (later.activeState !== 'active' || later.nRestarts > initial.nRestarts) return notActive(unit, later)
  return isRestarted(later) ? restarted(later) : failed('not-active', `${unit} is running, but was not restarted`)
}

/**
 * Without a system bus systemd unloads an ended unit that no other unit needs: it then reads as never started. Its job
 * is done, so a unit that ends (Type=oneshot) has succeeded, or a condition of it does not hold.
 */
async function endedUnseen({ units, unit }: RestartRequest): Promise<RestartOutcome | undefined> {
  const { activeState, isJobPending, isOneshot, invocationId, result, conditionResult } = await units.readSnapshot(unit)
  const isForgotten = activeState === 'inactive' && !isJobPending && invocationId === undefined && conditionResult
  if (!isForgotten || !isOneshot || result !== 'success') return undefined
  return { outcome: 'not-needed', detail: `${unit} has ended and is no longer loaded` }
}

/**
 * The unit once no restart requested by another client is running: the unit stopped for that restart, not by itself.
 * For automatic restarts systemd has a counter.
 */
async function untilNobodyRestarts(request: RestartRequest): Promise<UnitSnapshot> {
  const { units, clock, unit, timeoutMs = defaultTimeoutMs, signal } = request
  const deadlineMs = clock.monotonicMs() + timeoutMs
  for (;;) {
    const snapshot = await units.readSnapshot(unit)
    if (!snapshot.isJobPending || snapshot.nRestarts > 0 || clock.monotonicMs() > deadlineMs) return snapshot
    await sleep(clock, confirmPollMs, signal)
  }
}

function notActive(unit: string, snapshot: UnitSnapshot): RestartOutcome {
  const { conditionResult, nRestarts, activeState, subState } = snapshot
  if (!conditionResult) return failed('condition', `${unit} was not started: one of its conditions does not hold`)
  const restartNote = nRestarts > 0 ? `, restarted by itself ${counted(nRestarts, 'time')}` : ''
  return failed('not-active', `${unit} is ${activeState}/${subState} (${describeEnd(snapshot)}${restartNote})`)
}

function describeEnd(snapshot: UnitSnapshot): string {
  const { result, code, status } = endOfUnit(snapshot)
  return code === '' ? result : `${result}, ${code} ${status}`
}

/** The outcome of a refusal by systemd; throws every other error. */
function refusedRestart(error: unknown, unit: string): RefusedRestart {
  const outcome = errorOutcome(error, unit)
  if (outcome.outcome !== 'failed') throw error
  return outcome
}

function errorOutcome(error: unknown, unit: string): RestartOutcome {
  if (isOutcomeUnknown(error)) return { outcome: 'unknown', detail: `${unit}: ${describeError(error)}` }
  if (error instanceof NotConnectedError) return { outcome: 'not-requested', detail: error.message }
  if (!(error instanceof BusError)) throw error
  if (error.name === transactionIsDestructive) return { outcome: 'not-requested', detail: describeError(error) }
  return failed(refusalReasons[error.name] ?? 'refused', describeError(error))
}

/**
 * Remembers the ends of jobs, so that an end that comes before its job's name is known is not missed. Of all units: the
 * requested name may be an alias (dbus.service of dbus-broker.service), and the signals carry the real name.
 */
function watchJobs(units: Units, clock: Clock) {
  const results = new Map<string, string>()
  let lostReason: string | undefined
  let checkResult = () => {}
  const unsubscribers = [
    units.onJobEnd(({ job, result }) => {
      results.set(job, result)
      checkResult()
    }),
    units.onInterrupted((why) => {
      lostReason = why
      checkResult()
    }),
  ]
  return {
    stop: () => unsubscribers.forEach((stop) => stop()),
    /** The job's result. Rejects with NoReplyError when it can no longer be known. */
    async result(job: string, timeoutMs: number, signal: AbortSignal | undefined): Promise<string> {
      const result = Promise.withResolvers<string>()
      checkResult = () => {
        const known = results.get(job)
        if (known !== undefined) result.resolve(known)
        else if (lostReason !== undefined)
          result.reject(new NoReplyError('connection-lost', `restarting: ${lostReason}`))
      }
      checkResult()
      const onAbort = () =>
        result.reject(new NoReplyError('aborted', 'aborted while restarting', { cause: signal?.reason }))
      if (signal?.aborted) onAbort()
      signal?.addEventListener('abort', onAbort, { once: true })
      const cancelTimer = clock.startTimer(timeoutMs, () => result.resolve(timedOutResult))
      try {
        return await result.promise
      } finally {
        cancelTimer()
        signal?.removeEventListener('abort', onAbort)
      }
    },
  }
}
