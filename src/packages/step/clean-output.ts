/** Converts bytes that a program wrote to clean text, and maps places in the text to places in the bytes. Pure. */
import { isUtf8 } from 'node:buffer'
import { openSequenceStart, plainText, removedFrom } from '../../schemas/plain-text.ts'

export type CleanOutput = {
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
export function cleanOutput(bytes: Buffer, isEnd: boolean): CleanOutput {
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
