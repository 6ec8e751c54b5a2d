/** A node count that falls at once and rises only after it has held: autoscalers that add and remove must not widen the budget. */
export type Rising = { readonly sinceMs: number; readonly lowest: number }
export type Matched = { readonly published: number; readonly rising?: Rising }

export const RISE_HOLDS_MS = 30_000

/**
 * The next published count. `before` undefined = the first count for this selector: published as it is. A rise is published as the lowest
 * count seen while it was held.
 */
export function nextMatched(before: Matched | undefined, counted: number, nowMs: number): Matched {
  if (before === undefined || counted <= before.published) return { published: counted }
  const rising: Rising = { sinceMs: before.rising?.sinceMs ?? nowMs, lowest: Math.min(before.rising?.lowest ?? counted, counted) }
  if (nowMs - rising.sinceMs < RISE_HOLDS_MS) return { published: before.published, rising }
  return rising.lowest === counted ? { published: counted } : { published: rising.lowest, rising: { sinceMs: nowMs, lowest: counted } }
}

/** When the count has to be looked at again though nothing changes. */
export const matchedAgainMs = ({ rising }: Matched): number => (rising === undefined ? Infinity : rising.sinceMs + RISE_HOLDS_MS)
