/**
 * Election of one agent on a Lease, by the rule in election-rule.ts. It does not fence: for a moment two may lead, and
 * whatever they do must bear that.
 */
import { isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts'
import { getIfExists } from '../kube/get.ts'
import { apiGroup, leaseTypeMeta } from '../schemas/api.ts'
import { sleep, timeoutSignal, type Random } from '../schemas/clock.ts'
import { messageOf } from '../schemas/json.ts'
import {
  defaultTiming,
  canAcquire,
  isCandidate,
  nextLookDelayMs,
  observe,
  requestedLookDelayMs,
  type ElectionTiming,
  type Observation,
} from './election-rule.ts'
import { leasesPathOf, type Leases } from './slot-reads.ts'
import { microTime, type Lease } from './slot.ts'

export const censusLeaseName = 'skyhookd-census'
/** Ready agents, as the elected one has counted them: all agents spread their requests by it. */
const agentsAnnotation = `${apiGroup}/agents`
/** The first looks of agents that start together are spread over this much for each, at most over the other. */
const firstLookMsPerAgent = 10
const maxFirstLookMs = 5_000
/** Looks that were requested so long ago do not delay the next one. */
const forgetLooksMs = 600_000

export type ElectionOptions = {
  /** Unique among the candidates and the same after a restart: a Lease in one's own name is taken at once. */
  readonly identity: string
  /** About how many agents there are: a few of them are candidates. */
  readonly agents: () => number
  /** What the leader publishes of it in the Lease; undefined = not counted. */
  readonly countedAgents: () => number | undefined
  /** What a leader has published. */
  readonly onAgents: (agents: number) => void
  /** Starts a term; `term` is aborted at its end. Must not throw. */
  readonly onElected: (term: AbortSignal) => void
  /** The term is over; `term` is aborted already. Not called before `onElected`. */
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
  /** Ends a term and leads again, for `ms`, only when nobody else does. */
  resign(ms: number, why: string): void
  /** Looks now whether there is a leader, also an agent that is no candidate. Repeated calls are spread over time. */
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
  const ownLease = { holder: identity, leaseDurationMs, countedAgents: options.countedAgents }
  let term: AbortController | undefined
  let observation: Observation | undefined
  let resignedUntilMs = -Infinity
  let endSleep = (): void => undefined
  let requestedLooks = 0
  let nextRequestedLookAtMs = -Infinity

  /** One look; the Lease if it could be taken, else how long to wait for the next look. */
  const tryAcquire = async (): Promise<{ readonly lease: Lease } | { readonly retryInMs: number }> => {
    const found = await readLease(leases, 'cache', signal)
    const nowMs = clock.monotonicMs()
    observation = observe(observation, found, nowMs)
    const counted = publishedAgents(found)
    if (counted !== undefined) options.onAgents(counted)
    const resignedDelayMs = nowMs < resignedUntilMs ? timing.resignedDelayMs : 0
    if (!canAcquire(observation, { identity, nowMs, leaseDurationMs, resignedDelayMs })) {
      const isNear = isCandidate(identity, agents())
      const context = { timing, isCandidate: isNear, random: random.number(), nowMs, wallMs: clock.wallMs() }
      return { retryInMs: nextLookDelayMs(observation, context) }
    }
    const limits = { signal, timeoutMs: renewDeadlineMs }
    const lease = await writeLease(leases, found, { ...ownLease, isNewTerm: true }, limits)
    return lease === undefined ? { retryInMs: retryPeriodMs * random.number() } : { lease }
  }

  /** Leads until the Lease is lost, the term is ended from outside, or renewing failed for too long. */
  const lead = async (acquiredLease: Lease): Promise<string> => {
    const current = new AbortController()
    const endSignal = AbortSignal.any([signal, current.signal])
    let lease = acquiredLease
    let lastRenewedAtMs = clock.monotonicMs()
    let waitMs = renewIntervalMs
    let conflicts = 0
    term = current
    options.onElected(current.signal)
    for (;;) {
      await sleep(clock, waitMs, endSignal).catch(() => {}) // the term ends: so does this loop
      if (endSignal.aborted) break
      const requestedAtMs = clock.monotonicMs()
      try {
        const timeoutMs = Math.max(retryPeriodMs / 2, lastRenewedAtMs + renewDeadlineMs - requestedAtMs)
        const limits = { signal: endSignal, timeoutMs }
        const renewed = await writeLease(leases, lease, { ...ownLease, isNewTerm: false }, limits)
        const found = renewed ?? (await readLease(leases, 'store', signal))
        if (found?.spec?.holderIdentity !== identity)
          return `${found?.spec?.holderIdentity || 'nobody'} holds the Lease now`
        lease = found
        if (renewed !== undefined) {
          lastRenewedAtMs = requestedAtMs
          conflicts = 0
          waitMs = renewIntervalMs
          continue
        }
        // a person wrote into it: still ours, write over that
        waitMs = Math.min(retryPeriodMs, (retryPeriodMs / 10) * 2 ** conflicts++)
      } catch (error) {
        if (endSignal.aborted) break
        options.onError?.(error)
        waitMs = retryPeriodMs
      }
      if (clock.monotonicMs() + waitMs - lastRenewedAtMs > renewDeadlineMs) return 'the Lease was not renewed in time'
    }
    current.abort(endSignal.reason) // work under this term stops before the next one can start
    await releaseLease(lease)
    return messageOf(endSignal.reason)
  }

  /** Tried for a moment only: a Lease that cannot be given back expires. */
  const releaseLease = async (lease: Lease): Promise<void> => {
    const limits = { signal: timeoutSignal(clock, retryPeriodMs), timeoutMs: retryPeriodMs }
    const change = { holder: '', isNewTerm: false, leaseDurationMs: 1000 }
    try {
      if ((await writeLease(leases, lease, change, limits)) !== undefined) return
      // the renewal that the end of the term cut off may have come through
      const found = await readLease(leases, 'store', limits.signal)
      if (found?.spec?.holderIdentity === identity) await writeLease(leases, found, change, limits)
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
    while (!signal.aborted) {
      try {
        const result = await tryAcquire()
        if ('retryInMs' in result) {
          await untilNextLook(result.retryInMs)
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
        await sleep(clock, retryPeriodMs * (0.5 + random.number()), signal).catch(() => {}) // aborted: the loop ends
      }
    }
  }

  return {
    isLeader: () => term !== undefined && !term.signal.aborted,
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

type LeaseChange = {
  readonly holder: string
  readonly isNewTerm: boolean
  readonly leaseDurationMs: number
  readonly countedAgents?: () => number | undefined
}

function publishedAgents(lease: Lease | undefined): number | undefined {
  const agents = Number(lease?.metadata.annotations?.[agentsAnnotation])
  return Number.isSafeInteger(agents) && agents > 0 ? agents : undefined
}

/** Candidates read the server's cache: that costs the store nothing, and taking a Lease that was old there fails. */
function readLease(leases: Leases, from: 'cache' | 'store', signal: AbortSignal): Promise<Lease | undefined> {
  const query = from === 'cache' ? { resourceVersion: 0 } : {}
  return getIfExists(leases.transport, `${leasesPathOf(leases)}/${censusLeaseName}`, { query, signal })
}

/** Writes over exactly what was read. undefined = somebody else was faster. */
async function writeLease(
  leases: Leases,
  found: Lease | undefined,
  change: LeaseChange,
  limits: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<Lease | undefined> {
  const collection = leasesPathOf(leases)
  const body = leaseBody(found, change, leases.clock.wallMs())
  try {
    return found === undefined
      ? await leases.transport.json<Lease>('POST', collection, { body, ...limits })
      : await leases.transport.json<Lease>('PUT', `${collection}/${censusLeaseName}`, { body, ...limits })
  } catch (error) {
    if (isConflict(error) || isAlreadyExists(error) || isNotFound(error)) return undefined
    throw error
  }
}

function leaseBody(
  found: Lease | undefined,
  { holder, isNewTerm, leaseDurationMs, countedAgents }: LeaseChange,
  wallMs: number,
): object {
  const renewedAt = microTime(wallMs)
  const spec: Record<string, unknown> = { ...found?.spec, holderIdentity: holder, renewTime: renewedAt }
  spec['leaseDurationSeconds'] = Math.ceil(leaseDurationMs / 1000)
  if (isNewTerm) {
    const transitions = spec['leaseTransitions']
    spec['acquireTime'] = renewedAt
    spec['leaseTransitions'] = typeof transitions === 'number' ? transitions + 1 : 0
  }
  const agents = countedAgents?.()
  const annotations = {
    ...found?.metadata.annotations,
    ...(agents !== undefined && { [agentsAnnotation]: `${agents}` }),
  }
  const metadata = { ...(found?.metadata ?? { name: censusLeaseName }), annotations }
  return { ...leaseTypeMeta, metadata, spec }
}
