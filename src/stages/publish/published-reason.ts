/** A reason as the Node has it, in one annotation or the other. */
import type { PublishedReason } from '../../schemas/annotations.ts'
import type { JsonObject } from '../../schemas/json.ts'
import type { TimedReason } from '../model/plan.ts'

/** `since` by the wall clock of now: what it said when the wait began may have been wrong. */
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

/** The Node says the same; its `since` is older, or by another clock. */
export const isSameReason = (shown: JsonObject | PublishedReason, reason: TimedReason): boolean =>
  (['reason', 'message', 'code', 'package'] as const).every((field) => shown[field] === reason[field]) &&
  shown.attempts === reason.attempts?.count
