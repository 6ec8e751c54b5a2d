/** What one node of a measured fleet did since the last mark: whether it completed, and how long it was silent. */
import { reasonKey, statusKey } from '../../src/schemas/annotations.ts'
import type { JsonObject } from '../../src/schemas/json.ts'

/** `onCompleted`: it has published that all awaited Skyhooks are complete. */
export function createNodeConduct(onCompleted: () => void) {
  const reasons = new Set<string>()
  const completed = new Set<string>()
  let awaited: readonly string[] = []
  let slots = 0
  let silentSinceMs: number | undefined
  let longestSilentMs = 0

  const isComplete = (): boolean => completed.size === awaited.length

  /** A node that works, waits with a reason, or has nothing to do is not silent. */
  function look(nowMs: number): void {
    const isSilent = !isComplete() && slots === 0 && reasons.size === 0
    if (silentSinceMs !== undefined) longestSilentMs = Math.max(longestSilentMs, nowMs - silentSinceMs)
    silentSinceMs = isSilent ? (silentSinceMs ?? nowMs) : undefined
  }

  return {
    mark(skyhooks: readonly string[], sinceMs: number): void {
      awaited = skyhooks
      completed.clear()
      reasons.clear()
      longestSilentMs = 0
      silentSinceMs = isComplete() ? undefined : sinceMs
    },
    published(annotations: JsonObject, nowMs: number): void {
      for (const skyhook of awaited) {
        const [status, reason] = [annotations[statusKey(skyhook)], annotations[reasonKey(skyhook)]]
        if (status === 'complete' && !completed.has(skyhook)) {
          completed.add(skyhook)
          if (isComplete()) onCompleted()
        }
        if (typeof reason === 'string') reasons.add(skyhook)
        else if (reason === null) reasons.delete(skyhook)
      }
      look(nowMs)
    },
    slotsChanged(change: 1 | -1, nowMs: number): void {
      slots += change
      look(nowMs)
    },
    silentMs(nowMs: number): number {
      look(nowMs)
      return longestSilentMs
    },
  }
}
