/** How much of a running step's output goes into the agent's log. Pure: time comes in. */

/**
 * Of one stream of one step. The first part is shown as it comes; a step that writes without end is shown in samples,
 * because a node keeps only the last 10 MiB of the agent's log. The file on the host has more of it (log-limit.ts).
 */
const burst: OutputAmount = { lines: 1_000, bytes: 128 * 1024 }
const perSecond: OutputAmount = { lines: 5, bytes: 1024 }
/** Once everything is used up, so much has to come back first: a sample that can be understood. */
const resumeAt: OutputAmount = { lines: 25, bytes: 5 * 1024 }
/** A guess: lines of logs are shorter. */
const longLineBytes = 200

export type OutputAmount = { readonly lines: number; readonly bytes: number }

export type OutputBudget = {
  /** Negative after more lines than were left; they were written at once. */
  readonly left: OutputAmount
  readonly isUsedUp: boolean
  /** When `left` was right, in ms of steady time. */
  readonly atMs: number
}

export const initialBudget = (nowMs: number): OutputBudget => ({ left: burst, isUsedUp: false, atMs: nowMs })

/** The budget with what came back until now. */
export function refilled({ left, isUsedUp, atMs }: OutputBudget, nowMs: number): OutputBudget {
  const seconds = Math.max(0, nowMs - atMs) / 1000
  const refill = (key: keyof OutputAmount): number => Math.min(burst[key], left[key] + perSecond[key] * seconds)
  const now = { lines: refill('lines'), bytes: refill('bytes') }
  const isRecovered = now.lines >= resumeAt.lines && now.bytes >= resumeAt.bytes
  return { left: now, isUsedUp: isUsedUp && !isRecovered, atMs: nowMs }
}

/** The budget after this was written. */
export function spent({ left, atMs, ...budget }: OutputBudget, { lines, bytes }: OutputAmount): OutputBudget {
  const rest = { lines: left.lines - lines, bytes: left.bytes - bytes }
  return { left: rest, isUsedUp: budget.isUsedUp || rest.lines <= 0 || rest.bytes <= 0, atMs }
}

/** How much of the newest output to show, in bytes, where there is more than the budget has room for. */
export const sampleBytes = ({ left }: OutputBudget): number =>
  Math.max(0, Math.floor(Math.min(left.bytes, left.lines * longLineBytes)))
