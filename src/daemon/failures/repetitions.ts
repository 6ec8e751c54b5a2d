import { isDeepStrictEqual } from 'node:util'
import { type Backoff, backoffMs } from '../../schemas/backoff.ts'
import type { Clock } from '../../schemas/clock.ts'
import { type Action, failureKey } from '../../stages/model/plan.ts'

/**
 * Actions that succeeded and are planned again with the same content, because their effect is not visible yet. Their
 * end wakes the loop: without a pause they would be repeated as fast as the host answers.
 */
export type Repetitions = {
  succeeded(action: Action): void
  /** The plan of this pass: an action that is missing in it, or has other content, is no longer a repetition. */
  planned(actions: readonly Action[]): void
  /** The earliest time to start it (steady ms); 0 if it is not a repetition. */
  notBeforeMs(action: Action): number
}

/** A watch or a signal usually shows the effect sooner. */
export const repetitionBackoff: Backoff = { initialMs: 100, maxMs: 5_000 }
/** After this time without a repetition, an action is counted from the start. */
const forgetAfterMs = 4 * repetitionBackoff.maxMs

type Entry = { readonly action: Action; readonly count: number; readonly atMs: number }

export function createRepetitions(clock: Pick<Clock, 'steadyMs'>): Repetitions {
  const entries = new Map<string, Entry>()
  return {
    succeeded(action) {
      const nowMs = clock.steadyMs()
      const key = failureKey(action)
      const previous = entries.get(key)
      const isRepeated = previous !== undefined && nowMs - previous.atMs < forgetAfterMs
      entries.set(key, { action, count: isRepeated ? previous.count + 1 : 1, atMs: nowMs })
    },
    planned(actions) {
      if (entries.size === 0) return
      const byKey = new Map(actions.map((action) => [failureKey(action), action]))
      for (const [key, { action }] of entries) if (!isDeepStrictEqual(byKey.get(key), action)) entries.delete(key)
    },
    notBeforeMs(action) {
      const entry = entries.get(failureKey(action))
      if (entry === undefined || !isDeepStrictEqual(entry.action, action)) return 0
      return entry.atMs + backoffMs(entry.count, repetitionBackoff)
    },
  }
}
