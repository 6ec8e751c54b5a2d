import { type Backoff, backoffMs } from '../../schemas/backoff.ts'
import type { Clock, Random } from '../../schemas/clock.ts'
import { isContentRefused } from '../../kube/errors.ts'
import type { Action } from '../../stages/model/plan.ts'
import type { Failure } from '../../stages/model/snapshot.ts'
import { causeOf } from './reason-of.ts'

/** Current failures, and when each task may be tried again. */
export type FailureBook = {
  /** Records one more consecutive failure. */
  record(key: string, task: FailedTask, error: unknown): Failure
  /** The task succeeded, or is no longer needed. */
  clear(key: string): void
  /** The earliest time of the next attempt; 0 if the task does not fail. */
  notBeforeMs(key: string): number
  readonly current: () => ReadonlyMap<string, Failure>
}

export type FailedTask = {
  /** The failed operation, such as `update the Node`. */
  readonly operation: string
  readonly skyhook?: string | undefined
  readonly action?: Action['do'] | undefined
}

/** Each action has its own backoff. A wake-up does not shorten it. */
export const actionBackoff: Backoff = { initialMs: 1_000, maxMs: 60_000, jitter: 0.2 }
/** Slots wait until the API server is back; this node needs no fix. */
const outageBackoff: Backoff = { ...actionBackoff, maxMs: 15_000 }

type Entry = {
  readonly failure: Failure
  readonly identity: string
  readonly count: number
  readonly notBeforeMs: number
}

/** Times, versions and temporary names differ from one attempt to the next. */
const withoutNumbers = (text: string): string => text.replaceAll(/[0-9a-f]{8,}|\d+/g, '')

export function createFailureBook({ clock, random }: { readonly clock: Clock; readonly random: Random }): FailureBook {
  const entries = new Map<string, Entry>()
  let failures: ReadonlyMap<string, Failure> = new Map()

  function set(key: string, entry: Entry | undefined): void {
    if (entry) entries.set(key, entry)
    else if (!entries.delete(key)) return
    failures = new Map([...entries].map(([name, { failure }]) => [name, failure]))
  }

  return {
    record(key, { operation, skyhook, action }, error) {
      const nowMs = clock.steadyMs()
      const { reason, detail, remedy, retryAfterMs = 0 } = causeOf(error)
      const identity = `${reason} ${withoutNumbers(detail)}`
      const previous = entries.get(key)
      const count = (previous?.count ?? 0) + 1
      const waitMs = Math.max(
        Math.min(retryAfterMs, actionBackoff.maxMs),
        backoffMs(count, reason === 'ApiServerUnavailable' ? outageBackoff : actionBackoff, random.number()),
      )
      // keeps the first message of the same error: temporary names in a newer one would change the Node with each
      // attempt
      const message =
        previous?.identity === identity
          ? previous.failure.message
          : [`cannot ${operation}: ${detail}`, remedy].filter((part) => part !== '').join(': ')
      const failure: Failure = {
        reason,
        message,
        sinceMs: previous?.failure.sinceMs ?? nowMs,
        skyhook,
        action,
        ...(isContentRefused(error) && { isContentRefused: true }),
      }
      set(key, { failure, identity, count, notBeforeMs: nowMs + waitMs })
      return failure
    },
    clear: (key) => set(key, undefined),
    notBeforeMs: (key) => entries.get(key)?.notBeforeMs ?? 0,
    current: () => failures,
  }
}
