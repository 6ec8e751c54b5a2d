/**
 * Text of others without whatever has an effect where it is printed: the one place that says what that is. Pure.
 *
 * Two things decide what goes. A terminal obeys control characters and the sequences that begin with them, and
 * characters of direction or without a shape make a text look like another one. And what stands between the letters of
 * a secret must not keep it from being found: secrets are looked for in text that is clean.
 */

/** Of titles, links and the clipboard, without their end. */
const openString = String.raw`[\]PX^_][^\u0007\u001B\u0080-\u009F\r\n]*`
/** Of seven bits: cursor, color and the like; strings with their end; character sets. */
const sequence = String.raw`\u001B(?:\[[0-?]*[ -/]*[@-~]|${openString}(?:\u0007|\u001B\\)|[()][0-2AB])`
/** C0 but tabs and line ends, C1, direction, without a shape, halves of characters. */
const single = String.raw`(?![\t\n\r])[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}]`
/** Of a carriage return before a line feed one line end remains. */
const removedPattern = new RegExp(`${sequence}|${single}|\\r(?=(?:${sequence}|${single})*\\n)`, 'gu')
const harmlessPattern = /^[\t\n -~]*$/
/** Begins a sequence whose end may follow in the next piece of a text. */
const openSequencePattern = new RegExp(String.raw`\u001B(?:\[[0-?]*[ -/]*|${openString}\u001B?|[()])?$`)

/** What `plainText` removes of a text, in order. Everything else keeps its place. */
export const removedFrom = (text: string): Iterable<RegExpExecArray> =>
  harmlessPattern.test(text) ? [] : text.matchAll(removedPattern)

/** What is longer without an end is text. */
const maxOpenLength = 4_096

/** Where the text ends in a sequence that is not complete; its length where it does not. */
export function openSequenceStart(text: string): number {
  const end = text.slice(-maxOpenLength)
  return text.length - end.length + (openSequencePattern.exec(end)?.index ?? end.length)
}

/**
 * The text in lines, each ending in a line feed: a carriage return ends one too. Cleaning it again changes nothing.
 */
export function plainText(text: string): string {
  if (harmlessPattern.test(text)) return text
  return text
    .replaceAll(removedPattern, '')
    .replaceAll('\r', '\n')
    .replaceAll(/[\u2028\u2029]/g, ' ')
}

/** The same in one line. */
export const plainLine = (text: string): string => plainText(text).replaceAll(/[\n\t]+/g, ' ')

/** The text, or so much of it that it has at most `maxLength` characters with an ellipsis. */
export const clip = (text: string, maxLength: number): string =>
  text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`.toWellFormed() // a cut may halve a character

/** The same of its end. */
export const clipStart = (text: string, maxLength: number): string =>
  text.length <= maxLength ? text : `…${text.slice(1 - maxLength)}`.toWellFormed()

/** At most `maxLength` characters of a text of any length, cleaned in a time that does not grow with it. */
export const plainExcerpt = (text: string, maxLength: number): string =>
  clip(plainText(text.length > 16 * maxLength ? text.slice(0, 16 * maxLength) : text), maxLength)

/** Of what one node, person or registry says within a line. */
const maxShownLength = 2_048

/** Text of others as a part of one line of a view. */
export const shownLine = (text: string): string => plainLine(plainExcerpt(text, maxShownLength))

/** Lines of a view, each of which stays one line, with their line feeds. */
export const shownLines = (lines: readonly string[]): string => lines.map((line) => `${shownLine(line)}\n`).join('')

/**
 * The same JSON document, in a text that has no effect where it is printed: what `plainText` would remove is escaped.
 */
export const harmlessJson = (json: string): string =>
  json.replaceAll(/[\p{Cf}\p{Default_Ignorable_Code_Point}\u007F-\u009F\u2028\u2029]/gu, escaped)

/** As JSON and double-quoted YAML have it: one for each half of a character. */
const escaped = (character: string): string =>
  Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
    .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
    .join('')
