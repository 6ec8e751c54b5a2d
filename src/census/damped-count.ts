/** A node count that falls immediately and rises after a delay, so that short-lived nodes do not widen the budget. */
export type PendingRise = { readonly sinceMs: number; readonly lowest: number }
export type DampedCount = { readonly published: number; readonly pendingRise?: PendingRise }

export const riseDelayMs = 30_000

/**
 * The next published count. `before` undefined = the first count for this selector: published as it is. A rise is
 * published as the lowest count during its delay.
 */
export function nextDampedCount(before: DampedCount | undefined, counted: number, nowMs: number): DampedCount {
  if (before === undefined || counted <= before.published) return { published: counted }
  const pendingRise: PendingRise = {
    sinceMs: before.pendingRise?.sinceMs ?? nowMs,
    lowest: Math.min(before.pendingRise?.lowest ?? counted, counted),
  }
  if (nowMs - pendingRise.sinceMs < riseDelayMs) return { published: before.published, pendingRise }
  return pendingRise.lowest === counted
    ? { published: counted }
    : { published: pendingRise.lowest, pendingRise: { sinceMs: nowMs, lowest: counted } }
}

/** When the count must be published again without any change. */
export const dampedCountDueAtMs = ({ pendingRise }: DampedCount): number =>
  pendingRise === undefined ? Infinity : pendingRise.sinceMs + riseDelayMs
