import { isDeepStrictEqual } from 'node:util'
import { isContentRefused } from '../../kube/errors.ts'
import { type Backoff, backoffMs } from '../../schemas/backoff.ts'
import type { Clock, Random } from '../../schemas/clock.ts'
import { type Action, failureKey } from '../../stages/model/plan.ts'
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

/** Describes an action as the end of a sentence that starts with `cannot`. */
export function operationOf(action: Action): string {
  switch (action.do) {
    case 'prepare':
      return `prepare ${action.image.image}:${action.image.version}`
    case 'acquireSlot':
      return 'request a slot'
    case 'acquireControlPlaneSlot':
      return "request the control plane's slot"
    case 'createRecoverySlot':
      return 'create the slot of work in progress again'
    case 'confirmSlot':
      return `confirm slot ${action.slot.lease}`
    case 'renewSlot':
      return `renew slot ${action.slot.lease}`
    case 'releaseSlot':
      return `release slot ${action.slot.lease}`
    case 'startStep':
      return `start ${action.attempt.mode} ${action.attempt.path} of package ${action.record.name}`
    case 'stopStep':
      return `stop ${action.step.mode} ${action.step.path}`
    case 'forgetStep':
      return `remove the traces of ${action.step.mode} ${action.step.path}`
    case 'recordStep':
      return `record ${action.step.mode} ${action.step.path} of package ${action.name} on the host`
    case 'recordChecks':
      return `record the results of ${action.mode} on the host`
    case 'recordHistory':
      return `record the history of package ${action.name} on the host`
    case 'cleanUp':
      return `remove the files of package ${action.name}, which is uninstalled`
    case 'readStatus':
      return `read the status file of package ${action.package}`
    case 'evict':
      return `evict pod ${action.pod.metadata.namespace}/${action.pod.metadata.name}`
    case 'countNodes':
      return 'count the nodes'
    case 'interrupt':
      return `carry out the interrupt (${action.run.interrupt.type})`
    case 'recordInterrupt':
      return `record the interrupt (${action.run.interrupt.type}) on the host`
    case 'publish':
      return 'update the Node'
  }
}

/**
 * Actions that succeeded and are planned again with the same content, because their effect is not visible yet. Their
 * end wakes the loop: without a pause they would be repeated as fast as the host answers.
 */
type Repetitions = {
  succeeded(action: Action): void
  /** The plan of this pass: an action that is missing in it, or has other content, is no longer a repetition. */
  planned(actions: readonly Action[]): void
  /** The earliest time to start it (steady ms); 0 if it is not a repetition. */
  notBeforeMs(action: Action): number
}

/** A watch or a signal usually shows the effect sooner. */
const repetitionBackoff: Backoff = { initialMs: 100, maxMs: 5_000 }
/** After this time without a repetition, an action is counted from the start. */
const forgetAfterMs = 4 * repetitionBackoff.maxMs

type Repeated = { readonly action: Action; readonly count: number; readonly atMs: number }

export function createRepetitions(clock: Pick<Clock, 'steadyMs'>): Repetitions {
  const entries = new Map<string, Repeated>()
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
