/** Secret values in texts that people read. */
import { plainText } from '../../schemas/plain-text.ts'

/** Secrets shorter than this are not masked: `1` or `on` is not a secret, and would fill every log with stars. */
const minMaskedSecretChars = 4

export type Mask = {
  /** Length of the longest masked part; 0 if there is none. */
  readonly longestBytes: number
  /** The text with every part replaced. The text must be clean (`plainText`). */
  mask(text: string): string
  /** The start of a part that is, or may be, on both sides of the cut. */
  crossing(text: string, cut: number): number | undefined
}

/**
 * Masks each secret and each of its lines, without the white space around them. A secret that is too short without
 * white space is masked with it. Control characters of a secret are ignored, because the text has none.
 */
export const createMask = (secrets: readonly string[], minChars = minMaskedSecretChars, instead = '***'): Mask =>
  maskOf(partsOf(secrets.map(plainText), minChars), instead)

function partsOf(secrets: readonly string[], minChars: number): readonly string[] {
  const trimmed = (secret: string): string => (secret.trim().length < minChars ? secret : secret.trim())
  const parts = secrets.flatMap((secret) => [trimmed(secret), ...secret.split('\n').map((line) => line.trim())])
  return parts.filter((part) => part.length >= minChars)
}

/** The parts are sorted, so that a prefix of the text among them is found in few steps, even with many parts. */
function maskOf(parts: readonly string[], instead: string): Mask {
  const sorted = [...new Set(parts)].toSorted(byUnits)
  // a part that starts with a line break would hold back every line; the text after the break is a part of its own
  const held = sorted.filter((part) => !part.startsWith('\n'))
  const longest = sorted.reduce((length, part) => Math.max(length, part.length), 0)
  const starts = new Set(sorted.map((part) => part.slice(0, startLength)))

  function mask(text: string): string {
    let masked = ''
    let copied = 0
    /** End of the last part that was found. */
    let end = 0
    for (const at of placesOf(text, starts)) {
      const found = longestPrefix(sorted, text.slice(at, at + longest))
      if (found === 0) continue
      // overlapping parts become one
      if (at >= end) masked += text.slice(copied, at) + instead
      end = Math.max(end, at + found)
      copied = end
    }
    return masked + text.slice(copied)
  }

  return {
    longestBytes: held.reduce((bytes, part) => Math.max(bytes, Buffer.byteLength(part)), 0),
    mask,
    crossing(text, cut) {
      for (let at = Math.max(0, cut - longest + 1); at < cut; at++) {
        const rest = text.slice(at, at + longest)
        const isLong = rest.length >= startLength
        if (isLong && !starts.has(rest.slice(0, startLength))) continue
        if (at + longestPrefix(held, rest) > cut || (at + rest.length === text.length && isStart(held, rest))) return at
      }
      return undefined
    },
  }
}

const startLength = minMaskedSecretChars

/**
 * Up to this number, each is searched by itself: that takes the engine a fraction of the time of a test of every place.
 */
const maxSearched = 64

/** Places where one of the parts may start, in order. */
function* placesOf(text: string, starts: ReadonlySet<string>): Iterable<number> {
  if (starts.size > maxSearched) {
    for (let at = 0; at + startLength <= text.length; at++) if (starts.has(text.slice(at, at + startLength))) yield at
    return
  }
  const next = new Map<string, number>()
  const search = (start: string, from: number): void => {
    const at = text.indexOf(start, from)
    if (at < 0) next.delete(start)
    else next.set(start, at)
  }
  for (const start of starts) search(start, 0)
  while (next.size > 0) {
    const at = Math.min(...next.values())
    yield at
    search(text.slice(at, at + startLength), at + 1)
  }
}

const byUnits = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

/** How many of the sorted parts come before the text or are equal to it. */
function rankOf(sorted: readonly string[], text: string): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((sorted[middle] as string) <= text) low = middle + 1
    else high = middle
  }
  return low
}

/** Length of the longest part that is a prefix of the text; 0 if there is none. */
function longestPrefix(sorted: readonly string[], text: string): number {
  for (let rest = text; rest !== ''; ) {
    const before = sorted[rankOf(sorted, rest) - 1]
    if (before === undefined) return 0
    if (rest.startsWith(before)) return before.length
    rest = rest.slice(0, commonLength(before, rest)) // a shorter part is a prefix of both
  }
  return 0
}

/** Whether the text is a proper prefix of one of the parts. */
function isStart(sorted: readonly string[], text: string): boolean {
  const after = sorted[rankOf(sorted, text)]
  return after !== undefined && after.startsWith(text)
}

function commonLength(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) if (a.charCodeAt(at) !== b.charCodeAt(at)) return at
  return length
}
