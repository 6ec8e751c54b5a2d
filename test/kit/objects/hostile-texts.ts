/**
 * The one list of texts that nobody should be able to do anything with: for every field that a person, a registry, a
 * package or another node controls, and for every place where people read it.
 */
import type { Random } from '../../../src/schemas/clock.ts'

/** Long enough to be masked, and without a character that belongs to a control sequence. */
export const secret = 'hunter2-correct-horse'

/** Single characters and whole sequences that a terminal obeys, or that change how other characters look. */
export const controls: Readonly<Record<string, string>> = {
  NUL: '\0',
  'a bell': '\u0007',
  'a backspace': '\b',
  'a vertical tab': '\u000B',
  'a delete': '\u007F',
  'a lone escape': '\u001B',
  'a color': '\u001B[31m',
  'a color with colons': '\u001B[38:2::255:0:0m',
  'a cleared screen': '\u001B[2J\u001B[H',
  'another character set': '\u001B(B',
  'a title': '\u001B]0;title\u0007',
  'the clipboard': '\u001B]52;c;QUFB\u001B\\',
  'a link': '\u001B]8;;http://evil.test\u0007',
  'a device control string': '\u001BPq#0\u001B\\',
  'a C1 sequence start': '\u009B',
  'a C1 string start': '\u009D',
  'the next line of C1': '\u0085',
  'a bidi override': '\u202E',
  'a bidi isolate': '\u2066',
  'a mark of direction': '\u200F',
  'a space without width': '\u200B',
  'a joiner': '\u200D',
  'a byte order mark': '\uFEFF',
  'a word joiner': '\u2060',
  'a soft hyphen': '\u00AD',
  'a letter without a shape': '\u3164',
  'a tag of an emoji': '\u{E0041}',
}

/** The secret with this between its letters. */
export const split = (text: string, between: string): string => Array.from(text).join(between)

/** UTF-16 as UTF-8 reads it: a NUL beside each letter. */
export const wide = (text: string): string => split(text, '\0') + '\0'

export const hostileTexts: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(controls).map(([name, control]) => [name, `before ${control}after`])),
  ...Object.fromEntries(
    Object.entries(controls).map(([name, control]) => [`a secret split by ${name}`, `key=${split(secret, control)}.`]),
  ),
  'all controls at once': Object.values(controls).join('x'),
  'ends of lines': 'a\r\nb\rc\u2028d\u2029e\ff',
  'UTF-16': wide(`key=${secret}\r\n`),
  'half a character': 'a\uD800b',
  'three megabytes': 'long '.repeat(600_000),
  'three megabytes of controls': '\u001B[1m\u0000'.repeat(600_000),
  'three megabytes of quotes': '"'.repeat(3_000_000),
  'three megabytes of wide letters': '\u20AC'.repeat(1_000_000),
}

/** `count` of the secret's gaps filled with controls at random. */
export function splitAtRandom(text: string, random: Random, count = 3): string {
  const all = Object.values(controls)
  let result = text
  for (let n = 0; n < count; n++) {
    // only between letters of the text itself: a sequence inside of a sequence is another one
    const gaps = [...result.matchAll(/(?=[\w-])/g)].map(({ index }) => index)
    const letters = gaps.filter((at) => !isInside(result, at))
    const at = letters[Math.floor(random.number() * letters.length)] ?? 0
    result = result.slice(0, at) + (all[Math.floor(random.number() * all.length)] ?? '') + result.slice(at)
  }
  return result
}

const isInside = (text: string, at: number): boolean =>
  Object.values(controls).some((control) => {
    for (let start = text.indexOf(control); start >= 0; start = text.indexOf(control, start + 1))
      if (start < at && at < start + control.length) return true
    return false
  })

/** What of the text has an effect where it is printed, each once: `U+001B`. Line ends and tabs have none. */
export const effectsOf = (text: string): readonly string[] => [
  ...new Set(
    [...text.matchAll(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu)]
      .map(([found]) => found)
      .filter((found) => found !== '\n' && found !== '\t')
      .map((found) => `U+${(found.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`),
  ),
]
