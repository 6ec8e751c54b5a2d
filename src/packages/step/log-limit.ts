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
