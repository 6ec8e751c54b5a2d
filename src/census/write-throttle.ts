/**
 * When a count may be written. Every status of a Skyhook is news to every agent that watches it, so what merely
 * progresses is written the slower the more agents there are; what people and machines wait for is written at once.
 */
export type WriteThrottle = {
  /** Own writes to this object; undefined = none in this term. */
  readonly lastWriteMs: number | undefined
  readonly agents: number
  /** It turns what somebody may be waiting for: a condition, or the generation it holds for. */
  readonly isUrgent: boolean
}

const minIntervalMs = 1_000
const intervalPerAgentMs = 2
/** Something that turns to and fro all the time is slowed down to this. */
const urgentIntervalMs = 100

/** The earliest moment for the next write. The first one after a quiet time is never late. */
export function writeAtMs({ lastWriteMs, agents, isUrgent }: WriteThrottle): number {
  if (lastWriteMs === undefined) return -Infinity
  return lastWriteMs + (isUrgent ? urgentIntervalMs : progressIntervalMs(agents))
}

/** Time between two writes of mere progress. */
export const progressIntervalMs = (agents: number): number => Math.max(minIntervalMs, intervalPerAgentMs * agents)
