/** The text of bytes that a program has written, and where in the bytes each place of it is. Pure. */
import { isUtf8 } from 'node:buffer'
import { openSequenceStart, plainText, removedFrom } from '../../schemas/plain-text.ts'

export type CleanOutput = {
  readonly text: string
  /** Of the bytes that it is the text of. */
  readonly bytes: number
  /** Where the bytes of the character at `index` begin, after whatever was removed before it. */
  byteOf(index: number): number
}

/**
 * The clean text of the bytes. Unless this `isEnd`, a character or a control sequence that is not complete at their end
 * is not part of it.
 */
export function cleanOutput(bytes: Buffer, isEnd: boolean): CleanOutput {
  const marked = withMarks(isEnd ? bytes : bytes.subarray(0, characterEnd(bytes))).toString()
  const raw = isEnd ? marked : marked.slice(0, openSequenceStart(marked))
  const shown = raw.replaceAll(mark, '\uFFFD') // as long as it was
  return {
    text: plainText(shown),
    bytes: bytes.length,
    byteOf: (index) => Buffer.byteLength(raw.slice(0, rawIndexOf(shown, index))),
  }
}

/** A character of one byte that stands for a byte that is no text, as this control character has always done. */
const mark = '\u001A'

/** Of the same length, and valid UTF-8. */
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

/** Bytes of a character, by its first one. */
const lengthOf = (byte: number): number => (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1)

/** After the last character that is complete. */
function characterEnd(bytes: Buffer): number {
  let lead = bytes.length - 1
  while (lead > Math.max(0, bytes.length - 4) && ((bytes[lead] ?? 0) & 0xc0) === 0x80) lead--
  return lead >= 0 && lead + lengthOf(bytes[lead] ?? 0) > bytes.length ? lead : bytes.length
}

/** Where in the text the character is that has this place in the clean text. */
function rawIndexOf(text: string, index: number): number {
  let removed = 0
  for (const { index: at, 0: found } of removedFrom(text)) {
    if (at - removed > index) break
    removed += found.length
  }
  return index + removed
}
