/**
 * When a count may be written. Every write of a status wakes every agent that watches the Skyhook. Mere progress is
 * written less often the more agents there are. What people and programs wait for is written immediately.
 */
export type WriteThrottle = {
  /** Own writes to this object; undefined = none in this term. */
  readonly lastWriteMs: number | undefined
  readonly agents: number
  /** It changes what someone may be waiting for: a condition, or its generation. */
  readonly isUrgent: boolean
}

const minIntervalMs = 1_000
/** 100 agents a second parse it. */
const intervalPerAgentMs = 10
const maxIntervalMs = 30_000
/** A condition that keeps changing is written at this interval. */
const urgentIntervalMs = 100

/** The earliest time of the next write. The first one after a quiet time is never delayed. */
export function writeAtMs({ lastWriteMs, agents, isUrgent }: WriteThrottle): number {
  if (lastWriteMs === undefined) return -Infinity
  return lastWriteMs + (isUrgent ? urgentIntervalMs : progressIntervalMs(agents))
}

/** Time between two writes of mere progress. */
const progressIntervalMs = (agents: number): number =>
  Math.min(maxIntervalMs, Math.max(minIntervalMs, intervalPerAgentMs * agents))
