/**
 * Election of one agent on a Lease, by the rule in election-rule.ts. It does not fence: for a moment two may lead, and whatever they do
 * must bear that.
 */
import { isAlreadyExists, isConflict, isNotFound } from '../kube/errors.ts'
import { pause } from '../kube/retry.ts'
import { DEFAULT_TIMING, isFree, nextLookMs, observe, type ElectionTiming, type Observation } from './election-rule.ts'
import { collectionOf, type Leases } from './slot-reads.ts'
import { microTime, type Lease } from './slot.ts'

export const CENSUS_LEASE = 'skyhookd-census'

export type ElectionOptions = {
  /** Unique among the candidates and the same after a restart: the node's name. Who finds the Lease in its own name takes it at once. */
  readonly identity: string
  /** About how many agents there are. */
  readonly candidates: () => number
  /** Begins a term; `term` is aborted at its end. Must not throw. */
  readonly onElected: (term: AbortSignal) => void
  /** The term is over; `term` is aborted already. Not called before `onElected`. */
  readonly onLost: (why: string) => void
  /** A request failed; it is repeated. */
  readonly onTrouble?: (error: unknown) => void
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
  standBack(ms: number, why: string): void
  /** Resolves after the signal, when the Lease was given back or could not be. */
  readonly ended: Promise<void>
}

/** Stands for election until the signal ends it. */
export function startElection(leases: Leases, options: ElectionOptions): Election {
  const { identity, signal, name = CENSUS_LEASE, random = Math.random, nowMs = () => performance.now() } = options
  const timing = { ...DEFAULT_TIMING, ...options.timing }
  const { nowMs: wallMs = Date.now } = leases
  const path = `${collectionOf(leases)}/${name}`
  let term: AbortController | undefined
  let seen: Observation | undefined
  let backUntilMs = -Infinity

  /** Candidates read the server's cache: looking costs the store nothing, and taking fails on what was old. */
  const look = async (from: 'cache' | 'store', within = signal): Promise<Lease | undefined> => {
    try {
      return await leases.transport.json<Lease>('GET', path, { query: from === 'cache' ? { resourceVersion: 0 } : {}, signal: within })
    } catch (error) {
      if (isNotFound(error)) return undefined
      throw error
    }
  }

  /** Writes over exactly what was seen. undefined = somebody else was faster. */
  const write = async (
    found: Lease | undefined,
    change: LeaseChange,
    within: AbortSignal,
    timeoutMs: number,
  ): Promise<Lease | undefined> => {
    const body = changedLease(found, name, change, wallMs())
    try {
      const [method, target] = found === undefined ? (['POST', collectionOf(leases)] as const) : (['PUT', path] as const)
      return await leases.transport.json<Lease>(method, target, { body, signal: within, timeoutMs })
    } catch (error) {
      if (isConflict(error) || isAlreadyExists(error) || isNotFound(error)) return undefined
      throw error
    }
  }

  /** One look; the Lease if it could be taken, else how long to wait for the next look. */
  const stand = async (): Promise<{ readonly lease: Lease } | { readonly againInMs: number }> => {
    const found = await look('cache')
    seen = observe(seen, found, nowMs())
    const patienceMs = nowMs() < backUntilMs ? timing.patienceMs : 0
    if (!isFree(seen, { identity, nowMs: nowMs(), durationMs: timing.durationMs, patienceMs })) {
      return { againInMs: nextLookMs(seen, { timing, candidates: options.candidates(), random, nowMs: nowMs(), wallMs: wallMs() }) }
    }
    const { durationMs, deadlineMs } = timing
    const lease = await write(found, { holder: identity, isNewTerm: true, durationMs }, signal, deadlineMs)
    return lease === undefined ? { againInMs: timing.retryMs * random() } : { lease }
  }

  /** Leads until the Lease is lost, the term is ended from outside, or renewing failed for too long. */
  const lead = async (taken: Lease): Promise<string> => {
    const current = new AbortController()
    const ends = AbortSignal.any([signal, current.signal])
    const { durationMs, deadlineMs, renewEveryMs, retryMs } = timing
    let lease = taken
    let provenMs = nowMs()
    let waitMs = renewEveryMs
    term = current
    options.onElected(current.signal)
    for (;;) {
      await pause(waitMs, ends).catch(() => {})
      if (ends.aborted) break
      const askedMs = nowMs()
      try {
        const leftMs = Math.max(retryMs / 2, provenMs + deadlineMs - askedMs)
        const renewed = await write(lease, { holder: identity, isNewTerm: false, durationMs }, ends, leftMs)
        const found = renewed ?? (await look('store'))
        if (found?.spec?.holderIdentity !== identity) return `${found?.spec?.holderIdentity || 'nobody'} holds the Lease now`
        lease = found
        if (renewed !== undefined) provenMs = askedMs
        waitMs = renewed === undefined ? retryMs / 10 : renewEveryMs // a person wrote into it: still ours, go over what was written
      } catch (error) {
        if (ends.aborted) break
        options.onTrouble?.(error)
        waitMs = retryMs
        if (nowMs() + waitMs - provenMs > deadlineMs) return 'the Lease could not be renewed in time'
      }
    }
    current.abort(ends.reason) // who works under the term stops before the next one can begin
    await giveBack(lease)
    return messageOf(ends.reason)
  }

  /** Tried for a moment only: who cannot give the Lease back leaves it to the lease duration. */
  const giveBack = async (lease: Lease): Promise<void> => {
    const within = AbortSignal.timeout(timing.retryMs)
    const nobody = { holder: '', isNewTerm: false, durationMs: 1000 }
    try {
      if ((await write(lease, nobody, within, timing.retryMs)) !== undefined) return
      const found = await look('store', within) // the renewal that the end of the term cut off may have come through
      if (found?.spec?.holderIdentity === identity) await write(found, nobody, within, timing.retryMs)
    } catch (error) {
      options.onTrouble?.(error)
    }
  }

  const run = async (): Promise<void> => {
    await pause(Math.min(timing.shortestLookMs, options.candidates() * timing.lookMsPerCandidate) * random(), signal).catch(() => {})
    while (!signal.aborted) {
      try {
        const stood = await stand()
        if ('againInMs' in stood) {
          await pause(stood.againInMs, signal)
          continue
        }
        const why = await lead(stood.lease)
        term?.abort(new Error(why))
        term = undefined
        seen = undefined
        options.onLost(why)
      } catch (error) {
        if (signal.aborted) break
        options.onTrouble?.(error)
        await pause(timing.retryMs * (0.5 + random()), signal).catch(() => {})
      }
    }
  }

  return {
    isLeader: () => term !== undefined && !term.signal.aborted,
    standBack(ms, why) {
      backUntilMs = nowMs() + ms
      term?.abort(new Error(why))
    },
    ended: run(),
  }
}

type LeaseChange = { readonly holder: string; readonly isNewTerm: boolean; readonly durationMs: number }

function changedLease(found: Lease | undefined, name: string, { holder, isNewTerm, durationMs }: LeaseChange, wallMs: number): object {
  const at = microTime(wallMs)
  const spec: Record<string, unknown> = { ...found?.spec, holderIdentity: holder, renewTime: at }
  spec['leaseDurationSeconds'] = Math.ceil(durationMs / 1000)
  if (isNewTerm) {
    const terms = spec['leaseTransitions']
    spec['acquireTime'] = at
    spec['leaseTransitions'] = typeof terms === 'number' ? terms + 1 : 0
  }
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: found?.metadata ?? { name }, spec }
}

const messageOf = (reason: unknown): string => (reason instanceof Error ? reason.message : String(reason))
