/**
 * Reads lines of the growing file of a step's output, clean and without secrets. Pure: bytes in, lines out.
 *
 * Secrets are masked in clean text: control characters between their letters do not hide them. Text is passed on only
 * up to a line break that no secret crosses. Therefore output that is read in pieces is masked like output that is read
 * at once: a secret in two pieces is held back until its other half arrives.
 */
import { isUtf8 } from 'node:buffer'
import { ignoreNotFound } from '../../host/fs/errors.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { clipStart, openSequenceStart, plainText, removedFrom } from '../../schemas/plain-text.ts'
import type { LogFiles } from './log-files.ts'
import { createMask, type Mask } from './mask.ts'

/** Longer lines are passed on in pieces of this size; container runtimes keep twice as much in one entry. */
const maxLineChars = 8 * 1024
/** The most bytes that are held back, in addition to the longest secret: a longer text is not a secret. */
const maxHeldBytes = 64 * 1024

/** The position of the reader. The bytes of the file before `offset` have been passed on or dropped. */
export type OutputCursor = {
  readonly offset: number
  /** Bytes from `offset` on that were read and are held back. */
  readonly pending: Buffer
  /**
   * After a jump: everything up to the first line break at or after this offset is dropped. Reading starts before it,
   * because a secret may start before it and end after it.
   */
  readonly dropUntil?: number | undefined
}

export const initialCursor = (offset = 0): OutputCursor => ({ offset, pending: Buffer.alloc(0) })

/** The offset of the first byte that has not been read. */
export const endOf = ({ offset, pending }: OutputCursor): number => offset + pending.length

export type OutputReader = {
  /**
   * The lines that these bytes complete; they follow the bytes read before. `isEnd`: nothing follows, so the last line
   * needs no line break. Leaves out empty lines and control sequences.
   */
  read(
    cursor: OutputCursor,
    bytes: Buffer,
    isEnd?: boolean,
  ): { readonly lines: readonly string[]; readonly cursor: OutputCursor }
  /** The cursor of a reader that leaves out everything before `offset`. */
  jump(offset: number): OutputCursor
}

/** Replaces secrets and each of their lines by `***`, as `failureTail` does. */
export function createOutputReader(secrets: readonly string[]): OutputReader {
  const mask = createMask(secrets)

  return {
    jump: (offset) => ({ ...initialCursor(Math.max(0, offset - mask.longestBytes)), dropUntil: offset }),

    read(before, bytes, isEnd = false) {
      const cursor = dropped(before, Buffer.concat([before.pending, bytes]), mask)
      const { offset, pending: raw, dropUntil } = cursor
      if (dropUntil !== undefined) return { lines: [], cursor }
      const output = cleanOutput(raw, isEnd)
      const cut = isEnd ? output.text.length : cutOf(output, mask)
      const end = isEnd ? raw.length : output.byteOf(cut)
      const lines = linesOf(mask.mask(output.text.slice(0, cut)))
      return { lines, cursor: { offset: offset + end, pending: Buffer.from(raw.subarray(end)) } }
    },
  }
}

/** The cursor with the bytes read, without those that a jump drops. */
function dropped({ offset, dropUntil }: OutputCursor, raw: Buffer, mask: Mask): OutputCursor {
  if (dropUntil === undefined) return { offset, pending: raw }
  const output = cleanOutput(raw, false)
  const skipped = cleanOutput(raw.subarray(0, Math.max(0, dropUntil - offset)), false).text.length
  for (let at = output.text.indexOf('\n', skipped); at >= 0; at = output.text.indexOf('\n', at + 1)) {
    if (mask.crossing(output.text, at + 1) !== undefined) continue
    const end = output.byteOf(at + 1)
    return { offset: offset + end, pending: raw.subarray(end) }
  }
  const kept = raw.subarray(-Math.max(1, mask.longestBytes)) // a secret in it may continue
  return { offset: offset + raw.length - kept.length, pending: kept, dropUntil }
}

/** How much of the text may be passed on. */
function cutOf(output: CleanOutput, mask: Mask): number {
  const cut = wholeTo(output.text, mask)
  // a program with this much between the letters of a secret does not print the secret by mistake
  const isTooMuch = output.bytes - output.byteOf(cut) > maxHeldBytes + 2 * mask.longestBytes
  return isTooMuch ? output.text.length : cut
}

/** Whole lines, or pieces of a very long line, without half a secret. */
function wholeTo(text: string, mask: Mask): number {
  let cut = lineStart(text, text.length)
  const isTooLong = text.length - cut > maxLineChars
  if (isTooLong) cut = text.length
  for (;;) {
    const start = mask.crossing(text, cut)
    if (start === undefined) return cut
    cut = isTooLong && start > lineStart(text, start) + maxLineChars ? start : lineStart(text, start)
  }
}

/** After the last line break before `end`. */
const lineStart = (text: string, end: number): number => (end === 0 ? 0 : text.lastIndexOf('\n', end - 1) + 1)

const linesOf = (text: string): string[] => text.split('\n').flatMap((line) => piecesOf(line.trimEnd()))

function piecesOf(line: string): string[] {
  const pieces: string[] = []
  for (let start = 0; start < line.length; ) {
    const isHalved = /[\uD800-\uDBFF]/.test(line.charAt(start + maxLineChars - 1)) && line.length > start + maxLineChars
    const end = start + maxLineChars - (isHalved ? 1 : 0)
    pieces.push(line.slice(start, end))
    start = end
  }
  return pieces
}

/** Converts bytes that a program wrote to clean text, and maps places in the text to places in the bytes. Pure. */

type CleanOutput = {
  readonly text: string
  /** The number of bytes that the text stands for. */
  readonly bytes: number
  /** Offset of the bytes of the character at `index`, after everything removed before it. */
  byteOf(index: number): number
}

/**
 * The clean text of the bytes. Unless `isEnd` is set, an incomplete character or control sequence at their end is left
 * out.
 */
function cleanOutput(bytes: Buffer, isEnd: boolean): CleanOutput {
  const marked = withMarks(isEnd ? bytes : bytes.subarray(0, characterEnd(bytes))).toString()
  const raw = isEnd ? marked : marked.slice(0, openSequenceStart(marked))
  const shown = raw.replaceAll(mark, '\uFFFD') // the length must not change
  return {
    text: plainText(shown),
    bytes: bytes.length,
    byteOf: (index) => Buffer.byteLength(raw.slice(0, rawIndexOf(shown, index))),
  }
}

/** A character of one byte in place of a byte that is not text: ASCII SUB, which has this meaning. */
const mark = '\u001A'

/** Valid UTF-8 of the same length. */
function withMarks(bytes: Buffer): Buffer {
  if (isUtf8(bytes)) return bytes
  const marked = Buffer.from(bytes)
  for (let at = 0; at < marked.length; ) {
    const length = lengthOf(marked[at] ?? 0)
    const isValid = length === 1 ? (marked[at] ?? 0) < 0x80 : isUtf8(marked.subarray(at, at + length))
    if (!isValid) marked[at] = mark.charCodeAt(0)
    at += isValid ? length : 1
  }
  return marked
}

/** Number of bytes of a character, by its first byte. */
const lengthOf = (byte: number): number => (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1)

/** The end of the last complete character. */
function characterEnd(bytes: Buffer): number {
  let lead = bytes.length - 1
  while (lead > Math.max(0, bytes.length - 4) && ((bytes[lead] ?? 0) & 0xc0) === 0x80) lead--
  return lead >= 0 && lead + lengthOf(bytes[lead] ?? 0) > bytes.length ? lead : bytes.length
}

/** The index in the text of the character at this index of the clean text. */
function rawIndexOf(text: string, index: number): number {
  let removed = 0
  for (const { index: at, 0: found } of removedFrom(text)) {
    if (at - removed > index) break
    removed += found.length
  }
  return index + removed
}

/** The end of a step's output for an error message: few lines, no secrets, no control characters. */

type TailLimits = { readonly lines: number; readonly characters: number }

/** An Event's message holds 1 KiB; the limits leave room for the rest of the message. */
const messageTailLimits: TailLimits = { lines: 5, characters: 600 }

/**
 * The last output of a failed step: its standard error or, if that is empty, its standard output. Empty without output.
 */
export async function failureTail(
  host: HostRoot,
  logs: LogFiles,
  secrets: readonly string[],
  limits: TailLimits = messageTailLimits,
): Promise<string> {
  return (await tailOf(host, logs.stderr, secrets, limits)) || (await tailOf(host, logs.stdout, secrets, limits))
}

/** The last lines of a file that are not blank; none for a missing file. */
export async function tailOf(
  host: HostRoot,
  path: string,
  secrets: readonly string[],
  { lines, characters }: TailLimits = messageTailLimits,
): Promise<string> {
  const mask = createMask(secrets)
  // room for the rest of a secret, or of a control sequence in it, that starts before this part of the file
  const restChars = mask.longestBytes === 0 ? 0 : mask.longestBytes + longestSequence
  // 4: the longest UTF-8 sequence. 2: a byte of another encoding may follow each letter
  const bytes = 4 * characters + 2 * restChars
  const end = (await host.readPart(path, 'end', bytes).catch(ignoreNotFound)) ?? Buffer.alloc(0)
  // mask before the cut: half a secret at the edge would not be recognized
  const masked = mask.mask(cleanOutput(withoutHalfCharacter(end), true).text)
  const tail = (end.length < bytes ? masked : masked.slice(restChars))
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .slice(-lines)
    .join('\n')
  return clipStart(tail, characters)
}

/** Of the control sequences that programs print. */
const longestSequence = 64

const withoutHalfCharacter = (bytes: Buffer): Buffer =>
  bytes.subarray(
    Math.max(
      0,
      bytes.findIndex((byte) => (byte & 0xc0) !== 0x80),
    ),
  )
