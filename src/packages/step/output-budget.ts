/** How much of a running step's output goes into the agent's log. Pure: time is a parameter. */

/**
 * For one stream of one step. The first part is shown as it comes. A step that writes without end is shown in samples,
 * because a node keeps only the last 10 MiB of the agent's log. The file on the host has more (log-limit.ts).
 */
const burst: OutputAmount = { lines: 1_000, bytes: 128 * 1024 }
const perSecond: OutputAmount = { lines: 5, bytes: 1024 }
/** A used-up budget must recover this amount before output resumes, so that a sample is large enough to understand. */
const resumeAt: OutputAmount = { lines: 25, bytes: 5 * 1024 }
/** An estimate: lines of logs are shorter. */
const longLineBytes = 200

export type OutputAmount = { readonly lines: number; readonly bytes: number }

export type OutputBudget = {
  /** Negative if more lines than were left have been written at once. */
  readonly left: OutputAmount
  readonly isUsedUp: boolean
  /** The time of `left`, in ms of the monotonic clock. */
  readonly atMs: number
}

export const initialBudget = (nowMs: number): OutputBudget => ({ left: burst, isUsedUp: false, atMs: nowMs })

/** The budget with the amount recovered until now. */
export function refilled({ left, isUsedUp, atMs }: OutputBudget, nowMs: number): OutputBudget {
  const seconds = Math.max(0, nowMs - atMs) / 1000
  const refill = (key: keyof OutputAmount): number => Math.min(burst[key], left[key] + perSecond[key] * seconds)
  const now = { lines: refill('lines'), bytes: refill('bytes') }
  const isRecovered = now.lines >= resumeAt.lines && now.bytes >= resumeAt.bytes
  return { left: now, isUsedUp: isUsedUp && !isRecovered, atMs: nowMs }
}

/** The budget after this amount was written. */
export function spent({ left, atMs, ...budget }: OutputBudget, { lines, bytes }: OutputAmount): OutputBudget {
  const rest = { lines: left.lines - lines, bytes: left.bytes - bytes }
  return { left: rest, isUsedUp: budget.isUsedUp || rest.lines <= 0 || rest.bytes <= 0, atMs }
}

/** How many bytes of the newest output to show if the output exceeds the budget. */
export const sampleBytes = ({ left }: OutputBudget): number =>
  Math.max(0, Math.floor(Math.min(left.bytes, left.lines * longLineBytes)))
