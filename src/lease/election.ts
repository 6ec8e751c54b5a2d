/**
 * Election of one agent on a Lease, by the rule in election-rule.ts. It does not fence: two agents may lead for a short
 * time, and their writes must tolerate that.
 */
import { type Backoff, backoffMs } from '../schemas/backoff.ts'
import { sleep, timeoutSignal, type Random } from '../schemas/clock.ts'
import { messageOf } from '../schemas/json.ts'
import {
  defaultTiming,
  canAcquire,
  delayAfterResigning,
  isCandidate,
  nextLookDelayMs,
  observe,
  requestedLookDelayMs,
  type ElectionTiming,
  type Observation,
} from './election-rule.ts'
import {
  publishedAgents,
  type Published,
  readLease,
  termsBetween,
  uncountedMs,
  uncountedSince,
  writeLease,
} from './election-lease.ts'
import type { Leases } from './slot-reads.ts'
import { microTime, type Lease } from './slot.ts'

/** The first looks of agents that start together are spread over this much for each, at most over the other. */
const firstLookMsPerAgent = 10
const maxFirstLookMs = 5_000
/** A request for a look that is older than this does not delay the next one. */
const forgetLooksMs = 600_000

export type ElectionOptions = {
  /** Unique among the candidates and the same after a restart: an agent takes a Lease in its own name at once. */
  readonly identity: string
  /** About how many agents there are: a few of them are candidates. */
  readonly agents: () => number
  /** What the leader publishes in the Lease. */
  readonly published: () => Published
  /** What the leader published. */
  readonly onAgents: (agents: number) => void
  /** Starts a term; `term` is aborted at its end. Must not throw. */
  readonly onElected: (term: AbortSignal) => void
  /** The term is over and `term` is aborted. Not called before `onElected`. */
  readonly onLost: (why: string) => void
  /** A request failed; it is repeated. */
  readonly onError?: (error: unknown) => void
  /** Ends the candidacy; a leader gives the Lease back first, so that the next one takes it at its next look. */
  readonly signal: AbortSignal
  readonly timing?: Partial<ElectionTiming>
  readonly random: Random
}

export type Election = {
  isLeader(): boolean
  /** The result of `uncountedSince` for the last seen version of the Lease. */
  uncounted(): string | undefined
  /** The result of `uncountedMs` for it. */
  uncountedMs(): number
  /** Ends the term. For `ms`, the agent leads again only if no other agent does. */
  resign(ms: number, why: string): void
  /**
   * Looks now whether there is a leader, also on an agent that is not a candidate. Repeated calls are spread over time.
   */
  look(): void
  /** Resolves after the signal, when the Lease was given back or could not be. */
  readonly ended: Promise<void>
}

/** Campaigns until the signal ends it. */
export function startElection(leases: Leases, options: ElectionOptions): Election {
  const { identity, signal, random, agents } = options
  const { clock } = leases
  const timing = { ...defaultTiming, ...options.timing }
  const { leaseDurationMs, renewDeadlineMs, renewIntervalMs, retryPeriodMs } = timing
  const ownLease = { holder: identity, leaseDurationMs, published: options.published }
  const acquisitionBackoff: Backoff = { initialMs: retryPeriodMs, maxMs: timing.lookIntervalMs, jitter: 0.5 }
  let term: AbortController | undefined
  /** The Lease as this leader wrote it last. */
  let ownTerm: Lease | undefined
  let observation: Observation | undefined
  let resignedUntilMs = -Infinity
  /** As this agent took it the last time. */
  let lastAcquired: Lease | undefined
  let endSleep = (): void => undefined
  let requestedLooks = 0
  let nextRequestedLookAtMs = -Infinity
  /**
   * A conflict means that the cache is old, or that another candidate was faster: only a consistent read shows which.
   */
  let readsStore = false

  /** One look; the Lease if it could be taken, else how long to wait for the next look. */
  const tryAcquire = async (): Promise<{ readonly lease: Lease } | { readonly retryInMs: number }> => {
    const found = await readLease(leases, readsStore ? 'store' : 'cache', { signal })
    readsStore = false
    const isFirst = observation === undefined
    const nowMs = clock.monotonicMs()
    observation = observe(observation, found, nowMs)
    const counted = publishedAgents(found)
    if (counted !== undefined) options.onAgents(counted)
    const terms = termsBetween(lastAcquired, found)
    const resignedDelayMs = nowMs < resignedUntilMs ? delayAfterResigning(timing, terms, agents()) : 0
    if (!canAcquire(observation, { identity, nowMs, leaseDurationMs, resignedDelayMs })) {
      const [fleet, wallMs] = [agents(), clock.wallMs()]
      const own = { isCandidate: isCandidate(identity, fleet), agents: fleet, isFirst, random: random.number() }
      const context = { timing, ...own, nowMs, wallMs }
      return { retryInMs: nextLookDelayMs(observation, context) }
    }
    const limits = { signal, timeoutMs: renewDeadlineMs }
    const change = { ...ownLease, isNewTerm: true, renewTime: microTime(clock.wallMs()) }
    const lease = await writeLease(leases, found, change, limits)
    if (lease !== undefined) return { lease }
    readsStore = true
    return { retryInMs: retryPeriodMs * random.number() }
  }

  const isOwn = (lease: Lease | undefined): lease is Lease => lease?.spec?.holderIdentity === identity

  /** Leads until the Lease is lost, the term is ended from outside, or renewing failed for too long. */
  const lead = async (acquiredLease: Lease): Promise<string> => {
    const current = new AbortController()
    const endSignal = AbortSignal.any([signal, current.signal])
    let lease = acquiredLease
    let lastRenewedAtMs = clock.monotonicMs()
    let waitMs = renewIntervalMs
    let conflicts = 0
    /**
     * When each unanswered renewal was sent, keyed by the renewTime that it writes. If the Lease has that time, the
     * renewal took effect.
     */
    const unanswered = new Map<string, number>()
    term = current
    ownTerm = acquiredLease
    options.onElected(current.signal)
    for (;;) {
      await sleep(clock, waitMs, endSignal).catch(() => {}) // the term ends, and this loop with it
      if (endSignal.aborted) break
      const requestedAtMs = clock.monotonicMs()
      const renewTime = microTime(clock.wallMs())
      try {
        const timeoutMs = Math.max(retryPeriodMs / 2, lastRenewedAtMs + renewDeadlineMs - requestedAtMs)
        const limits = { signal: endSignal, timeoutMs }
        let found = unanswered.size > 0 ? await readLease(leases, 'store', limits) : lease
        if (!isOwn(found)) return lostTo(found)
        let renewedAtMs = unanswered.get(`${found.spec?.['renewTime']}`)
        if (renewedAtMs === undefined) {
          const renewed = await writeLease(leases, found, { ...ownLease, isNewTerm: false, renewTime }, limits)
          if (renewed !== undefined) renewedAtMs = requestedAtMs
          found = renewed ?? (await readLease(leases, 'store', limits))
          if (!isOwn(found)) return lostTo(found)
        }
        lease = found
        ownTerm = found
        if (renewedAtMs !== undefined) {
          lastRenewedAtMs = renewedAtMs
          conflicts = 0
          unanswered.clear()
          waitMs = Math.max(retryPeriodMs / 10, renewIntervalMs - (requestedAtMs - renewedAtMs))
          continue
        }
        // edited by hand: still ours, write over it
        waitMs = Math.min(retryPeriodMs, (retryPeriodMs / 10) * 2 ** conflicts++)
      } catch (error) {
        if (endSignal.aborted) break
        options.onError?.(error)
        unanswered.set(renewTime, requestedAtMs)
        waitMs = retryPeriodMs
      }
      if (clock.monotonicMs() + waitMs - lastRenewedAtMs > renewDeadlineMs) return 'the Lease was not renewed in time'
    }
    current.abort(endSignal.reason) // work under this term stops before the next one can start
    await releaseLease(lease)
    return messageOf(endSignal.reason)
  }

  /** Tried only briefly: a Lease that cannot be given back expires. */
  const releaseLease = async (lease: Lease): Promise<void> => {
    const limits = { signal: timeoutSignal(clock, retryPeriodMs), timeoutMs: retryPeriodMs }
    const renewTime = microTime(clock.wallMs())
    const change = { holder: '', isNewTerm: false, leaseDurationMs: 1000, renewTime }
    try {
      if ((await writeLease(leases, lease, change, limits)) !== undefined) return
      // the renewal that the end of the term interrupted may have taken effect
      const found = await readLease(leases, 'store', limits)
      if (isOwn(found)) await writeLease(leases, found, change, limits)
    } catch (error) {
      options.onError?.(error)
    }
  }

  const untilNextLook = async (delayMs: number): Promise<void> => {
    const awake = new AbortController()
    endSleep = () => awake.abort()
    await sleep(clock, delayMs, AbortSignal.any([signal, awake.signal])).catch(() => {}) // looks, or ends, now
    endSleep = () => undefined
  }

  const run = async (): Promise<void> => {
    const spreadMs = Math.min(maxFirstLookMs, agents() * firstLookMsPerAgent)
    await sleep(clock, spreadMs * random.number(), signal).catch(() => {}) // aborted: nothing starts
    let failures = 0
    while (!signal.aborted) {
      try {
        const result = await tryAcquire()
        failures = 0
        if ('retryInMs' in result) {
          await untilNextLook(result.retryInMs)
          continue
        }
        lastAcquired = result.lease
        const why = await lead(result.lease)
        term?.abort(new Error(why))
        term = undefined
        ownTerm = undefined
        observation = undefined
        options.onLost(why)
      } catch (error) {
        if (signal.aborted) break
        options.onError?.(error)
        const pauseMs = backoffMs(++failures, acquisitionBackoff, random.number())
        await sleep(clock, pauseMs, signal).catch(() => {}) // aborted: the loop ends
      }
    }
  }

  return {
    isLeader: () => term !== undefined && !term.signal.aborted,
    uncounted: () => uncountedSince(ownTerm ?? observation?.lease),
    uncountedMs: () => uncountedMs(ownTerm ?? observation?.lease),
    resign(ms, why) {
      resignedUntilMs = clock.monotonicMs() + ms
      term?.abort(new Error(why))
    },
    look() {
      const nowMs = clock.monotonicMs()
      if (nowMs < nextRequestedLookAtMs) return
      if (nowMs > nextRequestedLookAtMs + forgetLooksMs) requestedLooks = 0
      nextRequestedLookAtMs = nowMs + requestedLookDelayMs(++requestedLooks, random.number())
      endSleep()
    },
    ended: run(),
  }
}

const lostTo = (lease: Lease | undefined): string => `${lease?.spec?.holderIdentity || 'nobody'} holds the Lease now`
