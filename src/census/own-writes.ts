import { type Backoff, backoffMs } from '../schemas/backoff.ts'
import type { Clock } from '../schemas/clock.ts'

/**
 * Our writes to an object that the watch has not shown yet. A write succeeds only over the last version that was
 * observed, so our own copy is newer than the watch's until the watch shows our last write or a later one.
 */
export type OwnWrites<T> = {
  /** Call it before a write. The watch may be faster than the response. */
  begin(): OwnWrite<T>
  /** The watch showed the object in this version. */
  observed(resourceVersion: string): void
  /** A LIST shows everything, also that etcd was restored without our write: what the watch shows counts from here on. */
  listed(): void
  latest(): T | undefined
  /** After conflicts, the earliest time of the next write (monotonic ms). */
  notBeforeMs(): number
}

/** How a write ended; neither is called for one that failed. */
export type OwnWrite<T> = {
  written(object: T): void
  /** Somebody else wrote it, or etcd was restored without our last write: our own copy is wrong. */
  conflicted(): void
}

/** After a conflict the watch brings what is new. Should it bring nothing, the pauses grow, and a LIST is asked for. */
const conflictBackoff: Backoff = { initialMs: 500, maxMs: 30_000 }

/** The first may be a write that the watch is about to show. */
const minConflictsOfOldWatch = 2

export function createOwnWrites<T extends { readonly metadata: { readonly resourceVersion: string } }>(
  clock: Pick<Clock, 'monotonicMs'>,
  /** Writes conflict again and again, and the watch shows nothing new. */
  onOldWatch: () => void,
): OwnWrites<T> {
  let latest: T | undefined
  let versions: string[] = []
  let observedCount = 0
  let conflicts = 0
  let notBeforeMs = -Infinity

  function forgetCopy(): void {
    latest = undefined
    versions = []
  }
  function noteObservation(): void {
    observedCount++
    notBeforeMs = -Infinity
  }

  return {
    begin() {
      const observedBefore = observedCount
      return {
        written(object) {
          conflicts = 0
          if (observedCount !== observedBefore) return // the watch has already shown this write or a later one
          latest = object
          versions.push(object.metadata.resourceVersion)
        },
        conflicted() {
          forgetCopy()
          conflicts++
          if (observedCount !== observedBefore) return
          notBeforeMs = clock.monotonicMs() + backoffMs(conflicts, conflictBackoff)
          if (conflicts >= minConflictsOfOldWatch) onOldWatch()
        },
      }
    },
    observed(resourceVersion) {
      const at = versions.indexOf(resourceVersion)
      if (at >= 0 && at < versions.length - 1) return // of an earlier write of ours; later ones are still in progress
      if (at < 0) noteObservation()
      forgetCopy()
    },
    listed() {
      noteObservation()
      forgetCopy()
    },
    latest: () => latest,
    notBeforeMs: () => notBeforeMs,
  }
}
