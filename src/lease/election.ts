/**
 * Election of one agent on a Lease, by the rule in election-rule.ts. It does not fence: for a moment two may lead, and
 * whatever they do must bear that.
 */
import { isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts'
import { abortableSleep } from '../kube/retry.ts'
import { messageOf } from '../schemas/json.ts'
import {
  defaultTiming,
  canAcquire,
  nextPollDelayMs,
  observe,
  type ElectionTiming,
  type Observation,
} from './election-rule.ts'
import { leasesPathOf, type Leases } from './slot-reads.ts'
import { microTime, type Lease } from './slot.ts'

export const censusLeaseName = 'skyhookd-census'

export type ElectionOptions = {
  /**
   * Unique among the candidates and the same after a restart: the node's name. Who finds the Lease in its own name
   * takes it at once.
   */
  readonly identity: string
  /** About how many agents there are. */
  readonly candidates: () => number
  /** Begins a term; `term` is aborted at its end. Must not throw. */
  readonly onElected: (term: AbortSignal) => void
  /** The term is over; `term` is aborted already. Not called before `onElected`. */
  readonly onLost: (why: string) => void
  /** A request failed; it is repeated. */
  readonly onError?: (error: unknown) => void
  /** Ends the candidacy; a leader gives the Lease back first, so that the next one takes it at its next look. */
  readonly signal: AbortSignal
  readonly name?: string
  readonly timing?: Partial<ElectionTiming>
  readonly random?: () => number
  /** Monotonic. */
  readonly nowMs?: () => number
}

export type Election = {
  isLeader(): boolean
  /** Ends a term and leads again, for `ms`, only when nobody else does. */
  resign(ms: number, why: string): void
  /** Resolves after the signal, when the Lease was given back or could not be. */
  readonly ended: Promise<void>
}

/** Stands for election until the signal ends it. */
export function startElection(leases: Leases, options: ElectionOptions): Election {
  const { identity, signal, name = censusLeaseName, random = Math.random, nowMs = () => performance.now() } = options
  const timing = { ...defaultTiming, ...options.timing }
  const { nowMs: wallClockMs = Date.now } = leases
  const path = `${leasesPathOf(leases)}/${name}`
  let term: AbortController | undefined
  let observation: Observation | undefined
  let resignedUntilMs = -Infinity

  /** Candidates read the server's cache: looking costs the store nothing, and taking fails on what was old. */
  const readLease = async (from: 'cache' | 'store', requestSignal = signal): Promise<Lease | undefined> => {
    try {
      return await leases.transport.json<Lease>('GET', path, {
        query: from === 'cache' ? { resourceVersion: 0 } : {},
        signal: requestSignal,
      })
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }

  /** Writes over exactly what was seen. undefined = somebody else was faster. */
  const write = async (
    found: Lease | undefined,
    change: LeaseChange,
    requestSignal: AbortSignal,
    timeoutMs: number,
  ): Promise<Lease | undefined> => {
    const body = leaseBody(found, name, change, wallClockMs())
    try {
      const [method, target] =
        found === undefined ? (['POST', leasesPathOf(leases)] as const) : (['PUT', path] as const)
      return await leases.transport.json<Lease>(method, target, { body, signal: requestSignal, timeoutMs })
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error) || isNotFound(error)) return undefined
      throw error
    }
  }

  /** One look; the Lease if it could be taken, else how long to wait for the next look. */
  const tryAcquire = async (): Promise<{ readonly lease: Lease } | { readonly retryInMs: number }> => {
    const found = await readLease('cache')
    observation = observe(observation, found, nowMs())
    const resignedDelayMs = nowMs() < resignedUntilMs ? timing.resignedDelayMs : 0
    if (
      !canAcquire(observation, { identity, nowMs: nowMs(), leaseDurationMs: timing.leaseDurationMs, resignedDelayMs })
    ) {
      return {
        retryInMs: nextPollDelayMs(observation, {
          timing,
          candidates: options.candidates(),
          random,
          nowMs: nowMs(),
          wallClockMs: wallClockMs(),
        }),
      }
    }
    const { leaseDurationMs, renewDeadlineMs } = timing
    const lease = await write(found, { holder: identity, isNewTerm: true, leaseDurationMs }, signal, renewDeadlineMs)
    return lease === undefined ? { retryInMs: timing.retryPeriodMs * random() } : { lease }
  }

  /** Leads until the Lease is lost, the term is ended from outside, or renewing failed for too long. */
  const lead = async (acquiredLease: Lease): Promise<string> => {
    const current = new AbortController()
    const endSignal = AbortSignal.any([signal, current.signal])
    const { leaseDurationMs, renewDeadlineMs, renewIntervalMs, retryPeriodMs } = timing
    let lease = acquiredLease
    let lastRenewedAtMs = nowMs()
    let waitMs = renewIntervalMs
    term = current
    options.onElected(current.signal)
    for (;;) {
      await abortableSleep(waitMs, endSignal).catch(() => {})
      if (endSignal.aborted) break
      const requestedAtMs = nowMs()
      try {
        const remainingMs = Math.max(retryPeriodMs / 2, lastRenewedAtMs + renewDeadlineMs - requestedAtMs)
        const renewed = await write(
          lease,
          { holder: identity, isNewTerm: false, leaseDurationMs },
          endSignal,
          remainingMs,
        )
        const found = renewed ?? (await readLease('store'))
        if (found?.spec?.holderIdentity !== identity)
          return `${found?.spec?.holderIdentity || 'nobody'} holds the Lease now`
        lease = found
        if (renewed !== undefined) lastRenewedAtMs = requestedAtMs
        waitMs = renewed === undefined ? retryPeriodMs / 10 : renewIntervalMs // a person wrote into it: still ours, go over what was written
      } catch (error) {
        if (endSignal.aborted) break
        options.onError?.(error)
        waitMs = retryPeriodMs
        if (nowMs() + waitMs - lastRenewedAtMs > renewDeadlineMs) return 'the Lease could not be renewed in time'
      }
    }
    current.abort(endSignal.reason) // who works under the term stops before the next one can begin
    await releaseLease(lease)
    return messageOf(endSignal.reason)
  }

  /** Tried for a moment only: who cannot give the Lease back leaves it to the lease duration. */
  const releaseLease = async (lease: Lease): Promise<void> => {
    const requestSignal = AbortSignal.timeout(timing.retryPeriodMs)
    const releaseChange = { holder: '', isNewTerm: false, leaseDurationMs: 1000 }
    try {
      if ((await write(lease, releaseChange, requestSignal, timing.retryPeriodMs)) !== undefined) return
      const found = await readLease('store', requestSignal) // the renewal that the end of the term cut off may have come through
      if (found?.spec?.holderIdentity === identity)
        await write(found, releaseChange, requestSignal, timing.retryPeriodMs)
    } catch (error) {
      options.onError?.(error)
    }
  }

  const run = async (): Promise<void> => {
    await abortableSleep(
      Math.min(timing.minPollIntervalMs, options.candidates() * timing.pollMsPerCandidate) * random(),
      signal,
    ).catch(() => {})
    while (!signal.aborted) {
      try {
        const result = await tryAcquire()
        if ('retryInMs' in result) {
          await abortableSleep(result.retryInMs, signal)
          continue
        }
        const why = await lead(result.lease)
        term?.abort(new Error(why))
        term = undefined
        observation = undefined
        options.onLost(why)
      } catch (error) {
        if (signal.aborted) break
        options.onError?.(error)
        await abortableSleep(timing.retryPeriodMs * (0.5 + random()), signal).catch(() => {})
      }
    }
  }

  return {
    isLeader: () => term !== undefined && !term.signal.aborted,
    resign(ms, why) {
      resignedUntilMs = nowMs() + ms
      term?.abort(new Error(why))
    },
    ended: run(),
  }
}

type LeaseChange = { readonly holder: string; readonly isNewTerm: boolean; readonly leaseDurationMs: number }

function leaseBody(
  found: Lease | undefined,
  name: string,
  { holder, isNewTerm, leaseDurationMs }: LeaseChange,
  wallClockMs: number,
): object {
  const renewedAt = microTime(wallClockMs)
  const spec: Record<string, unknown> = { ...found?.spec, holderIdentity: holder, renewTime: renewedAt }
  spec['leaseDurationSeconds'] = Math.ceil(leaseDurationMs / 1000)
  if (isNewTerm) {
    const transitions = spec['leaseTransitions']
    spec['acquireTime'] = renewedAt
    spec['leaseTransitions'] = typeof transitions === 'number' ? transitions + 1 : 0
  }
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: found?.metadata ?? { name }, spec }
}
