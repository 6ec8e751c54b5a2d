/**
 * When a candidate may take the Lease of an election, and when it looks again. Pure.
 *
 * Invariant: clocks are never compared. A candidate takes the Lease only when it is free (absent, holder cleared), when
 * it is its own, or when it has itself seen it unchanged for the whole lease duration on its own monotonic clock. Wall
 * clocks only say how soon to look.
 */
import type { Lease } from './slot.ts'

export type ElectionTiming = {
  /** A candidate takes a Lease unchanged for so long. client-go's figure: outlasts a restart of the API server. */
  readonly leaseDurationMs: number
  /** A leader that could not renew for so long stops leading, before anybody else begins. */
  readonly renewDeadlineMs: number
  /** A third of the duration, and less than half as many writes as client-go's 2 s. */
  readonly renewIntervalMs: number
  readonly retryPeriodMs: number
  /**
   * Poll interval per candidate: about 100 polls a second in all; each at least once a minute, and at most as often as
   * the leader renews, since polls are nearly all that an idle agent does.
   */
  readonly pollMsPerCandidate: number
  readonly minPollIntervalMs: number
  readonly maxPollIntervalMs: number
  /** A candidate that has resigned takes a Lease only when nobody else has wanted it for so long. */
  readonly resignedDelayMs: number
}

export const defaultTiming: ElectionTiming = {
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  renewIntervalMs: 5_000,
  retryPeriodMs: 2_000,
  pollMsPerCandidate: 10,
  minPollIntervalMs: 5_000,
  maxPollIntervalMs: 60_000,
  resignedDelayMs: 30_000,
}

/** A record and since when this candidate has seen it like this. */
export type Observation = { readonly key: string; readonly lease: Lease | undefined; readonly sinceMs: number }

/** What a look adds: the same record keeps its time, another one starts its time. */
export function observe(previous: Observation | undefined, lease: Lease | undefined, nowMs: number): Observation {
  const key = lease === undefined ? '' : `${lease.metadata.uid} ${JSON.stringify(lease.spec ?? {})}`
  return { key, lease, sinceMs: previous?.key === key ? previous.sinceMs : nowMs }
}

export type Candidate = {
  readonly identity: string
  readonly nowMs: number
  readonly leaseDurationMs: number
  readonly resignedDelayMs: number
}

/** Whether a candidate may take the Lease it observes; a resigned one waits `resignedDelayMs` longer. */
export function canAcquire(
  { lease, sinceMs }: Observation,
  { identity, nowMs, leaseDurationMs, resignedDelayMs }: Candidate,
): boolean {
  const holder = lease?.spec?.holderIdentity ?? ''
  const unchangedMs = nowMs - sinceMs
  if (holder === '' || holder === identity) return unchangedMs >= resignedDelayMs
  return unchangedMs >= leaseDurationMs + resignedDelayMs
}

type PollContext = {
  readonly timing: ElectionTiming
  readonly candidates: number
  /** At least 0, below 1. */
  readonly random: number
  readonly nowMs: number
  /** A hint for when to look, by the record's time, and for nothing else: a wrong clock costs requests or time. */
  readonly wallMs: number
}

/** When to look again. A record that seems to have been left alone is looked at as soon as it could be taken. */
export function nextPollDelayMs(
  { lease, sinceMs }: Observation,
  { timing, candidates, random, nowMs, wallMs }: PollContext,
): number {
  const { minPollIntervalMs, maxPollIntervalMs, pollMsPerCandidate, renewIntervalMs, leaseDurationMs } = timing
  const regularDelayMs =
    Math.min(maxPollIntervalMs, Math.max(minPollIntervalMs, candidates * pollMsPerCandidate)) * (0.5 + random)
  const renewedAtMs = Date.parse(lease?.spec?.renewTime ?? '')
  const seemsAbandoned = Number.isNaN(renewedAtMs) || wallMs - renewedAtMs > 2 * renewIntervalMs
  const availableInMs = Math.max(minPollIntervalMs / 2, sinceMs + leaseDurationMs - nowMs)
  return seemsAbandoned ? Math.min(regularDelayMs, availableInMs) : regularDelayMs
}
