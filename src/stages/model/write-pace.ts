import type { Snapshot } from './snapshot.ts'

type Pace = Pick<Snapshot, 'answerMs' | 'spreadMs'>

/** The minimum interval of informative writes, as a multiple of the time of an answer, to spare a slow API server. */
const answersPerWrite = 5
/**
 * A failure must become a reason on the Node within ten seconds, including slow answers to the request and to the
 * write.
 */
const maxPaceMs = 6_000
/** A shorter reason is not written: most are gone before the write would arrive. */
const usualSettleMs = 700

/**
 * Interval between two writes of progress, in ms. `usualMs` where the API server answers fast. Where it is slow, five
 * times the time of one answer, up to 6 s.
 */
export const writePaceMs = (usualMs: number, { answerMs = 0 }: Pick<Pace, 'answerMs'>): number =>
  Math.max(usualMs, Math.min(maxPaceMs, answersPerWrite * answerMs))

/**
 * How long the reason of a wait must last before it is written, in ms. All nodes of a rollout start to wait at once.
 */
export const settleMs = (pace: Pace): number => Math.max(writePaceMs(usualSettleMs, pace), pace.spreadMs ?? 0)
