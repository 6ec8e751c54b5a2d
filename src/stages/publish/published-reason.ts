/** A reason as in the annotations of the Node. */
import type { PublishedReason } from '../../schemas/annotations.ts'
import type { JsonObject } from '../../schemas/json.ts'
import type { TimedReason } from '../model/plan.ts'

/** `since` by the current wall clock: the clock may have been wrong when the wait started. */
export const publishedReason = (
  { reason, message, code, package: key, attempts, sinceMs, failingSinceMs = sinceMs }: TimedReason,
  { wallOffsetMs }: { readonly wallOffsetMs: number },
): PublishedReason => ({
  reason,
  message,
  ...(code && { code }),
  ...(key !== undefined && { package: key }),
  since: new Date(failingSinceMs + wallOffsetMs).toISOString(),
  ...(attempts && { attempts: attempts.count, nextTry: new Date(attempts.retryAtMs + wallOffsetMs).toISOString() }),
})

/** The Node has the same reason; its `since` is older, or by another clock. */
export const isSameReason = (shown: JsonObject | PublishedReason, reason: TimedReason): boolean =>
  (['reason', 'message', 'code', 'package'] as const).every((field) => shown[field] === reason[field]) &&
  shown.attempts === reason.attempts?.count
