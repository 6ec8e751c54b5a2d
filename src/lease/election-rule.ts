/**
 * When a candidate may take the Lease of an election, and when it looks again. Pure.
 *
 * Invariant: clocks are never compared. A candidate takes the Lease only when it is free (absent, holder cleared), when
 * it is its own, or when it has itself seen it unchanged for the whole lease duration on its own monotonic clock. Wall
 * clocks only affect how soon to look.
 */
import { type Backoff, backoffMs } from '../schemas/backoff.ts'
import type { Lease } from './slot.ts'
import { hashFraction } from './waiting.ts'

export type ElectionTiming = {
  /**
   * A candidate takes a Lease that has not changed for this long. client-go's figure: outlasts a restart of the API
   * server.
   */
  readonly leaseDurationMs: number
  /** A leader that could not renew for this long stops leading, before any other agent starts to lead. */
  readonly renewDeadlineMs: number
  /** A third of the duration, and less than half as many writes as client-go's 2 s. */
  readonly renewIntervalMs: number
  readonly retryPeriodMs: number
  /** The longest time between two looks of a candidate; on average a little less. */
  readonly lookIntervalMs: number
  /**
   * For an agent that is not a candidate: this much for each agent, within these bounds. It takes over when every
   * candidate is dead.
   */
  readonly idleLookMsPerAgent: number
  readonly minIdleLookMs: number
  readonly maxIdleLookMs: number
  /** The same after its first look: in a new cluster, only the first agents were counted then. */
  readonly secondLookDelayMs: number
  /** A candidate that has resigned takes a Lease only if no other candidate has taken it for this long. */
  readonly resignedDelayMs: number
  /** Added for each term that it leaves to others: longer than the time between the looks of two candidates. */
  readonly resignedTurnMs: number
}

export const defaultTiming: ElectionTiming = {
  leaseDurationMs: 15_000,
  renewDeadlineMs: 10_000,
  renewIntervalMs: 5_000,
  retryPeriodMs: 2_000,
  lookIntervalMs: 10_000,
  idleLookMsPerAgent: 2_000,
  minIdleLookMs: 30_000,
  maxIdleLookMs: 1_800_000,
  secondLookDelayMs: 120_000,
  resignedDelayMs: 30_000,
  resignedTurnMs: 15_000,
}

/** About how many agents are candidates: enough that one is alive, few enough that their looks cost nothing. */
const candidateCount = 8

/**
 * Whether an agent is a candidate, by the hash of its name and the number of agents: all agents agree without a
 * request.
 */
export const isCandidate = (identity: string, agents: number): boolean =>
  hashFraction(identity) * agents < candidateCount

/** A record and since when this candidate has seen it like this. */
export type Observation = {
  readonly key: string
  readonly lease: Lease | undefined
  readonly sinceMs: number
  /** The last look showed another record than the one before: an agent wrote meanwhile. */
  readonly isRenewed: boolean
}

/** What a look adds: the same record keeps its time, another one starts its time. */
export function observe(previous: Observation | undefined, lease: Lease | undefined, nowMs: number): Observation {
  const key = lease === undefined ? '' : `${lease.metadata.uid} ${JSON.stringify(lease.spec ?? {})}`
  const isSame = previous?.key === key
  return { key, lease, sinceMs: isSame ? previous.sinceMs : nowMs, isRenewed: previous !== undefined && !isSame }
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
  // a candidate that could not give its Lease back when it resigned waits like the others
  if (holder === '' || (holder === identity && resignedDelayMs === 0)) return unchangedMs >= resignedDelayMs
  return unchangedMs >= leaseDurationMs + resignedDelayMs
}

/**
 * How long a candidate that has resigned waits for others. The last leader sees first that the Lease is free: without a
 * longer wait it would lead again and again although it cannot count, while another agent could. Of three, each has
 * every third term; of more, the last two leaders wait for the others.
 * @param terms how many terms of others there were since its own; undefined: not known
 * @param agents about how many there are
 */
export function delayAfterResigning(
  { resignedDelayMs, resignedTurnMs }: ElectionTiming,
  terms: number | undefined,
  agents: number,
): number {
  const turns = terms === 0 ? 2 : terms === 1 && agents > 2 ? 1 : 0
  return resignedDelayMs + turns * resignedTurnMs
}

type LookContext = {
  readonly timing: ElectionTiming
  readonly isCandidate: boolean
  /** About how many agents there are, as far as this one knows. */
  readonly agents: number
  /** It was the first look of this agent. */
  readonly isFirst: boolean
  /** At least 0, below 1. */
  readonly random: number
  readonly nowMs: number
  /** Only a hint for when to look, by the record's time: a wrong clock costs requests or time. */
  readonly wallMs: number
}

/** When to look again. A record that seems to have been left alone is looked at as soon as it could be taken. */
export function nextLookDelayMs(
  { lease, sinceMs, isRenewed }: Observation,
  { timing, isCandidate, agents, isFirst, random, nowMs, wallMs }: LookContext,
): number {
  const { lookIntervalMs, secondLookDelayMs, renewIntervalMs, leaseDurationMs } = timing
  const idleDelayMs = isFirst ? secondLookDelayMs : idleLookDelayMs(timing, agents)
  const regularDelayMs = (isCandidate ? lookIntervalMs : idleDelayMs) * (0.6 + 0.4 * random)
  const renewedAtMs = Date.parse(lease?.spec?.renewTime ?? '')
  const seemsAbandoned = !isRenewed && (Number.isNaN(renewedAtMs) || wallMs - renewedAtMs > 2 * renewIntervalMs)
  const availableInMs = Math.max(lookIntervalMs / 4, sinceMs + leaseDurationMs - nowMs)
  return seemsAbandoned ? Math.min(regularDelayMs, availableInMs) : regularDelayMs
}

/** All agents together look about equally often, for any number of agents. With few agents, one takes over soon. */
const idleLookDelayMs = (
  { idleLookMsPerAgent, minIdleLookMs, maxIdleLookMs }: ElectionTiming,
  agents: number,
): number => Math.min(maxIdleLookMs, Math.max(minIdleLookMs, agents * idleLookMsPerAgent))

const requestedLookBackoff: Backoff = { initialMs: 30_000, maxMs: 1_800_000, jitter: 0.5 }

/** The minimum time between looks requested because a count is missing. */
export const requestedLookDelayMs = (looks: number, random: number): number =>
  backoffMs(looks, requestedLookBackoff, random)
