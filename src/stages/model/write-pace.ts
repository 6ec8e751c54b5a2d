import type { Snapshot } from './snapshot.ts'

type Pace = Pick<Snapshot, 'answerMs' | 'spreadMs'>

/** Of what only informs, an agent writes at most this often, in times of an answer: a slow API server has enough to do. */
const answersPerWrite = 5
/** A failure is a reason on the Node within ten seconds, and the answers to the request and to the write are slow, too. */
const maxPaceMs = 6_000
/** A reason that is gone again sooner is not worth a write: most are before it would arrive. */
const usualSettleMs = 700

/**
 * Between two writes that inform about progress, in ms. `usualMs` where the API server answers fast. Where it is slow,
 * five times what it takes for one answer, up to 6 s.
 */
export const writePaceMs = (usualMs: number, { answerMs = 0 }: Pick<Pace, 'answerMs'>): number =>
  Math.max(usualMs, Math.min(maxPaceMs, answersPerWrite * answerMs))

/** How long the reason of a wait has to last before it is written, in ms. All nodes of a rollout begin to wait at once. */
export const settleMs = (pace: Pace): number => Math.max(writePaceMs(usualSettleMs, pace), pace.spreadMs ?? 0)
