import { type Backoff, backoffMs } from '../schemas/backoff.ts'
import type { Clock } from '../schemas/clock.ts'

/**
 * Our writes to an object that the watch has not shown yet. A write succeeds only over the last version that was
 * observed. What the watch shows after the start of a write is that write or a later one. All times are monotonic ms.
 */
export type OwnWrites = {
  /** Call it before a write. The watch may be faster than the response. */
  begin(): OwnWrite
  /**
   * The watch showed the object, or a LIST was complete, also a LIST of an etcd that was restored without our write.
   * True if our last write was not seen before.
   */
  observed(): boolean
  /** After a write that the watch has not shown. Until then the watch shows an old version. */
  unseenUntilMs(): number
  /** After conflicts, the earliest time of the next write. */
  notBeforeMs(): number
}

/** How a write ended; neither is called for one that failed. */
export type OwnWrite = {
  written(): void
  /** Somebody else wrote it, or the watch is late. */
  conflicted(): void
}

/** A watch that is later than this is late. The next write over what it shows will be a conflict, which is harmless. */
const maxUnseenMs = 1_000
/** After a conflict the watch shows the new version. If it does not, the pauses grow, and a LIST is asked for. */
const conflictBackoff: Backoff = { initialMs: 500, maxMs: 30_000 }

/** The first may be a write that the watch is about to show. */
const minConflictsOfOldWatch = 2

/** `onOldWatch`: writes conflict again and again, and the watch shows nothing new. */
export function createOwnWrites(clock: Pick<Clock, 'monotonicMs'>, onOldWatch: () => void): OwnWrites {
  let observations = 0
  let conflicts = 0
  let unseenUntilMs = -Infinity
  let notBeforeMs = -Infinity

  return {
    begin() {
      const before = observations
      return {
        written() {
          conflicts = 0
          if (observations === before) unseenUntilMs = clock.monotonicMs() + maxUnseenMs
        },
        conflicted() {
          conflicts++
          if (observations !== before) return
          notBeforeMs = clock.monotonicMs() + backoffMs(conflicts, conflictBackoff)
          if (conflicts >= minConflictsOfOldWatch) onOldWatch()
        },
      }
    },
    observed() {
      const wasUnseen = unseenUntilMs !== -Infinity
      observations++
      unseenUntilMs = -Infinity
      notBeforeMs = -Infinity
      return wasUnseen
    },
    unseenUntilMs: () => unseenUntilMs,
    notBeforeMs: () => notBeforeMs,
  }
}
