/**
 * When a candidate may take the Lease of an election, and when it looks again. Pure.
 *
 * Invariant: clocks are never compared. A candidate takes the Lease only when it is free (absent, holder cleared), when it is its own, or
 * when it has itself seen it unchanged for the whole lease duration on its own monotonic clock. Wall clocks only say how soon to look.
 */
import type { Lease } from './slot.ts'

export type ElectionTiming = {
  /** A candidate takes a Lease that it saw unchanged for so long. client-go's figure: outlasts a restart of the API server's leader. */
  readonly durationMs: number
  /** A leader that could not renew for so long stops leading, before anybody else begins. */
  readonly deadlineMs: number
  /** A third of the duration, and less than half as many writes as client-go's 2 s. */
  readonly renewEveryMs: number
  readonly retryMs: number
  /** How often one candidate looks: all of them together about 100 times a second, each at least once a minute and not twice a second. */
  readonly lookMsPerCandidate: number
  readonly shortestLookMs: number
  readonly longestLookMs: number
  /** A candidate that stands back takes a Lease only when nobody else has wanted it for so long. */
  readonly patienceMs: number
}

export const DEFAULT_TIMING: ElectionTiming = {
  durationMs: 15_000,
  deadlineMs: 10_000,
  renewEveryMs: 5_000,
  retryMs: 2_000,
  lookMsPerCandidate: 10,
  shortestLookMs: 2_000,
  longestLookMs: 60_000,
  patienceMs: 30_000,
}

/** A record and since when this candidate has seen it like this. */
export type Observation = { readonly key: string; readonly lease: Lease | undefined; readonly sinceMs: number }

/** What a look adds: the same record keeps its time, another one starts anew. */
export function observe(before: Observation | undefined, lease: Lease | undefined, nowMs: number): Observation {
  const key = lease === undefined ? '' : `${lease.metadata.uid} ${JSON.stringify(lease.spec ?? {})}`
  return { key, lease, sinceMs: before?.key === key ? before.sinceMs : nowMs }
}

export type Candidate = { readonly identity: string; readonly nowMs: number; readonly durationMs: number; readonly patienceMs: number }

/** Whether a candidate may take the Lease it observes. With patience it leaves the Lease to others for so much longer. */
export function isFree({ lease, sinceMs }: Observation, { identity, nowMs, durationMs, patienceMs }: Candidate): boolean {
  const holder = lease?.spec?.holderIdentity ?? ''
  const unchangedMs = nowMs - sinceMs
  if (holder === '' || holder === identity) return unchangedMs >= patienceMs
  return unchangedMs >= durationMs + patienceMs
}

type Looking = {
  readonly timing: ElectionTiming
  readonly candidates: number
  readonly random: () => number
  readonly nowMs: number
  /** Compared with the record's time as a hint for when to look, and for nothing else: a wrong clock costs requests or time. */
  readonly wallMs: number
}

/** When to look again. A record that seems to have been left alone is looked at as soon as it could be taken. */
export function nextLookMs({ lease, sinceMs }: Observation, { timing, candidates, random, nowMs, wallMs }: Looking): number {
  const { shortestLookMs, longestLookMs, lookMsPerCandidate, renewEveryMs, durationMs } = timing
  const ordinaryMs = Math.min(longestLookMs, Math.max(shortestLookMs, candidates * lookMsPerCandidate)) * (0.5 + random())
  const renewedMs = Date.parse(lease?.spec?.renewTime ?? '')
  const seemsLeft = Number.isNaN(renewedMs) || wallMs - renewedMs > 2 * renewEveryMs
  const takeableInMs = Math.max(shortestLookMs / 2, sinceMs + durationMs - nowMs)
  return seemsLeft ? Math.min(ordinaryMs, takeableInMs) : ordinaryMs
}
