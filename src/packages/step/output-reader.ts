/**
 * Lines out of the growing file of a step's output, without secrets. Pure: bytes in, lines out.
 *
 * Text is handed on only up to a line break that no secret crosses. So what is read in pieces is masked as if it had
 * been read at once: a secret in two pieces is held back until its other half is there.
 */
import { maskedParts, maskText } from './mask.ts'

/** Longer lines are handed on in pieces of this size; twice as much fits into what container runtimes keep together. */
const maxLineBytes = 8 * 1024
const newline = 0x0a
const carriageReturn = 0x0d

/** Where the reader is. The bytes of the file before `offset` have been handed on or dropped. */
export type OutputCursor = {
  readonly offset: number
  /** Bytes from `offset` on that were read and wait for more. */
  readonly pending: Buffer
  /**
   * After a jump: everything up to the first line break at or after this offset is dropped. Reading starts before it,
   * for a secret may begin there and end after it.
   */
  readonly dropUntil?: number | undefined
}

export const initialCursor = (offset = 0): OutputCursor => ({ offset, pending: Buffer.alloc(0) })

/** The offset of the first byte that has not been read. */
export const endOf = ({ offset, pending }: OutputCursor): number => offset + pending.length

export type OutputReader = {
  /**
   * The lines that are whole with these bytes, which follow what was read before. `isEnd`: nothing will follow, so the
   * last line needs no line break. Empty lines are left out, and control characters.
   */
  read(
    cursor: OutputCursor,
    bytes: Buffer,
    isEnd?: boolean,
  ): { readonly lines: readonly string[]; readonly cursor: OutputCursor }
  /** The cursor of a reader that leaves out everything before `offset`. */
  jump(offset: number): OutputCursor
}

/** Secrets and each of their lines are replaced by `***`, as at the end of a step's log. */
export function createOutputReader(secrets: readonly string[]): OutputReader {
  const parts = maskedParts(secrets)
  // One that starts with a line break would hold back each line. What follows the break is a part of its own.
  const heldParts = parts.filter((part) => !/^[\r\n]/.test(part)).map((part) => Buffer.from(part))
  const longestBytes = Math.max(0, ...heldParts.map(({ length }) => length))

  return {
    jump: (offset) => ({ ...initialCursor(Math.max(0, offset - longestBytes)), dropUntil: offset }),

    read(before, bytes, isEnd = false) {
      const cursor = dropped(before, Buffer.concat([before.pending, bytes]), heldParts)
      const { offset, pending: text, dropUntil } = cursor
      if (dropUntil !== undefined) return { lines: [], cursor }
      const end = isEnd ? text.length : cutOf(text, heldParts)
      const lines = linesOf(maskText(text.subarray(0, end).toString(), parts))
      return { lines, cursor: { offset: offset + end, pending: Buffer.from(text.subarray(end)) } }
    },
  }
}

/** The cursor with what was read, without what a jump drops. */
function dropped({ offset, dropUntil }: OutputCursor, text: Buffer, parts: readonly Buffer[]): OutputCursor {
  const longestBytes = Math.max(1, ...parts.map(({ length }) => length))
  if (dropUntil === undefined) return { offset, pending: text }
  for (let at = Math.max(0, dropUntil - offset); at < text.length; at++)
    if (isBreak(text[at]) && crossing(text, at + 1, parts) === undefined)
      return { offset: offset + at + 1, pending: text.subarray(at + 1) }
  const kept = text.subarray(-longestBytes) // a secret in it may go on
  return { offset: offset + text.length - kept.length, pending: kept, dropUntil }
}

/** How much of the text may be handed on: whole lines, or pieces of a very long one, but no half of a secret. */
function cutOf(text: Buffer, parts: readonly Buffer[]): number {
  let cut = lineStart(text, text.length)
  const isTooLong = text.length - cut > maxLineBytes
  if (isTooLong) cut = characterStart(text, text.length)
  for (;;) {
    const start = crossing(text, cut, parts)
    if (start === undefined) return cut
    cut = isTooLong && start > lineStart(text, start) + maxLineBytes ? start : lineStart(text, start)
  }
}

/** Where a part begins that is, or may turn out to be, on both sides of the cut. */
function crossing(text: Buffer, cut: number, parts: readonly Buffer[]): number | undefined {
  for (const part of parts) {
    const first = part.subarray(0, 1)
    const from = Math.max(0, cut - part.length + 1)
    for (let at = text.indexOf(first, from); at >= 0 && at < cut; at = text.indexOf(first, at + 1)) {
      const found = text.subarray(at, at + part.length)
      if (part.subarray(0, found.length).equals(found)) return at
    }
  }
  return undefined
}

const isBreak = (byte: number | undefined): boolean => byte === newline || byte === carriageReturn

/** After the last line break before `end`. */
function lineStart(text: Buffer, end: number): number {
  let start = end
  while (start > 0 && !isBreak(text[start - 1])) start--
  return start
}

/** At or before `end`, not in the middle of a character. */
function characterStart(text: Buffer, end: number): number {
  let lead = end - 1
  while (lead > Math.max(0, end - 4) && ((text[lead] ?? 0) & 0xc0) === 0x80) lead--
  const byte = text[lead] ?? 0
  const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
  return lead + length > end ? lead : end
}

function linesOf(text: string): string[] {
  const clean = text.replaceAll('\r', '\n').replaceAll(/\p{Cc}\[[0-9;]*[A-Za-z]|[^\P{Cc}\n\t]/gu, '')
  return clean.split('\n').flatMap((line) => piecesOf(line.trimEnd()))
}

function piecesOf(line: string): string[] {
  const pieces: string[] = []
  for (let start = 0; start < line.length; start += maxLineBytes) pieces.push(line.slice(start, start + maxLineBytes))
  return pieces
}
