/**
 * Limits the size of the file of a step's output. Beyond the limit its middle is left out, and a line there reports how
 * much. Start and end stay, because they explain most. Pure: sizes and pieces are parameters.
 */
import { initialCursor, type OutputCursor } from './output-reader.ts'

export const minLogLimitBytes = 1 << 20

/** The range that is searched for the end of a line. */
const windowBytes = 64 << 10
/** A note of an earlier cut may start at the end of the window. */
const maxNoteBytes = 80
export const cutWindowBytes = windowBytes + maxNoteBytes

/** Offsets of the pieces of the file that `cutOf` needs; each piece has `cutWindowBytes`. */
export type CutWindows = { readonly headOffset: number; readonly tailOffset: number }

/** The range to leave out of a file, and the note that replaces it. */
export type Cut = {
  readonly from: number
  readonly to: number
  readonly note: Buffer
  /** True if lines stay whole. Secrets stay recognizable then, because each line of a secret is masked by itself. */
  readonly isBetweenLines: boolean
}

/**
 * Undefined: the file is within the limit. A quarter of the limit stays at each end, so that the next cut is not needed
 * soon.
 */
export function windowsOf(sizeBytes: number, limitBytes: number): CutWindows | undefined {
  if (sizeBytes <= limitBytes) return undefined
  const keptBytes = Math.floor(limitBytes / 4)
  return { headOffset: keptBytes - windowBytes, tailOffset: sizeBytes - keptBytes }
}

/** Leaves out everything between the last line of the first window and the first line of the second. */
export function cutOf({ headOffset, tailOffset }: CutWindows, head: Buffer, tail: Buffer): Cut {
  const earlier = earlierNote(head)
  const headEnd = earlier?.start ?? (head.subarray(0, windowBytes).lastIndexOf(newline) + 1 || windowBytes)
  const tailStart = tail.subarray(0, windowBytes).indexOf(newline) + 1
  const [from, to] = [headOffset + headEnd, tailOffset + tailStart]
  const leftOutBytes = to - from - (earlier?.length ?? 0) + (earlier?.leftOutBytes ?? 0)
  const isAfterLine = head[headEnd - 1] === newline
  const note = Buffer.from(`${isAfterLine ? '' : '\n'}${notePrefix}${leftOutBytes} bytes ---\n`)
  return { from, to, note, isBetweenLines: isAfterLine && tailStart > 0 }
}

/** The cursor of a reader of the file after a cut. */
export function afterCut(cursor: OutputCursor, { from, to, note, isBetweenLines }: Cut): OutputCursor {
  const { offset, pending, dropUntil } = cursor
  const movedBytes = to - from - note.length
  if (offset >= to) {
    const moved = { offset: offset - movedBytes, pending }
    return dropUntil === undefined ? moved : { ...moved, dropUntil: dropUntil - movedBytes }
  }
  // half a secret may be on each side: continue with the next line
  if (!isBetweenLines) return { ...initialCursor(to - movedBytes), dropUntil: to - movedBytes }
  if (offset + pending.length <= from) return cursor
  if (offset < from && dropUntil === undefined) return { offset, pending: pending.subarray(0, from - offset) }
  return initialCursor(from)
}

const newline = 0x0a
const notePrefix = '--- skyhookd left out '

function earlierNote(
  head: Buffer,
): { readonly start: number; readonly length: number; readonly leftOutBytes: number } | undefined {
  const start = head.indexOf(notePrefix)
  if (start < 0) return undefined
  const match = /^--- skyhookd left out (\d+) bytes ---\n/.exec(head.toString('latin1', start, start + maxNoteBytes))
  return match ? { start, length: match[0].length, leftOutBytes: Number(match[1]) } : undefined
}

/** How much of a running step's output goes into the agent's log. Pure: time is a parameter. */

/**
 * For one stream of one step. The first part is shown as it comes. A step that writes without end is shown in samples,
 * because a node keeps only the last 10 MiB of the agent's log. The file on the host has more.
 */
const burst: OutputAmount = { lines: 1_000, bytes: 128 * 1024 }
const perSecond: OutputAmount = { lines: 5, bytes: 1024 }
/** A used-up budget must recover this amount before output resumes, so that a sample is large enough to understand. */
const resumeAt: OutputAmount = { lines: 25, bytes: 5 * 1024 }
/** An estimate: lines of logs are shorter. */
const longLineBytes = 200

type OutputAmount = { readonly lines: number; readonly bytes: number }

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
