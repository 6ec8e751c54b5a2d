/** Actions and sources that fail, as the decisions see them. */
import { reasons, type Reason } from '../../schemas/catalogue/reasons.ts'
import { type Action, failureKey } from './plan.ts'
import type { Failure, Snapshot } from './snapshot.ts'

/** A failure that the next attempts end is not worth a reason. */
const settleMs = 3_000

export type Failing = {
  /** The worst that lasts. */
  readonly failure: Failure | undefined
  /** When another one will have lasted. */
  readonly recheckAtMs: number
}

export function worstOf(
  { failures, nowMs }: Pick<Snapshot, 'failures' | 'nowMs'>,
  isConcerned: (key: string, failure: Failure) => boolean,
): Failing {
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
