/** Actions and sources that fail, as the decisions see them. */
import { reasons, type Reason } from '../../schemas/catalogue/reasons.ts'
import { type Action, failureKey } from './plan.ts'
import type { Failure, Snapshot } from './snapshot.ts'
import { writePaceMs } from './write-pace.ts'

/** A failure that the next attempts fix does not become a reason. */
const usualSettleMs = 3_000

export type Failing = {
  /** The worst lasting failure. */
  readonly failure: Failure | undefined
  /** When the next failure becomes a lasting one. */
  readonly recheckAtMs: number
}

export function worstOf(
  { failures, nowMs, answerMs = 0 }: Pick<Snapshot, 'failures' | 'nowMs' | 'answerMs'>,
  isConcerned: (key: string, failure: Failure) => boolean,
): Failing {
  const settleMs = writePaceMs(usualSettleMs, { answerMs })
  const concerned = [...failures].filter(([key, failure]) => isConcerned(key, failure)).map(([, failure]) => failure)
  const settledAtMs = concerned.map(({ sinceMs }) => sinceMs + settleMs)
  const lasting = concerned.filter(({ sinceMs }) => sinceMs + settleMs <= nowMs)
  return {
    failure: lasting.toSorted((a, b) => weight(a) - weight(b) || a.sinceMs - b.sinceMs)[0],
    recheckAtMs: Math.min(Infinity, ...settledAtMs.filter((atMs) => atMs > nowMs)),
  }
}

export const failureOf = (snapshot: Snapshot, action: Pick<Action, 'do' | 'key'>): Failure | undefined =>
  worstOf(snapshot, (key) => key === failureKey(action)).failure

/** It ends by itself. */
export const isWait = ({ reason }: Reason): boolean => reasons[reason].section === 'waiting'

const weight = (reason: Reason): number => (isWait(reason) ? 1 : 0)
