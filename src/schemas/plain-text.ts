/**
 * Untrusted text without characters that have an effect where it is printed. Only this file defines them. Pure.
 *
 * There are two reasons to remove characters. A terminal obeys control characters and the sequences that start with
 * them, and directional or invisible characters make a text look like another one. And characters between the letters
 * of a secret must not hide it: secrets are searched in clean text.
 */

/** Sequences of titles, links and the clipboard, without their end. */
const openString = String.raw`[\]PX^_][^\u0007\u001B\u0080-\u009F\r\n]*`
/** Of seven bits: cursor, color and the like; strings with their end; character sets. */
const sequence = String.raw`\u001B(?:\[[0-?]*[ -/]*[@-~]|${openString}(?:\u0007|\u001B\\)|[()][0-2AB])`
/** C0 but tabs and line ends, C1, direction, without a shape, halves of characters. */
const single = String.raw`(?![\t\n\r])[\p{Cc}\p{Cf}\p{Cs}\p{Default_Ignorable_Code_Point}]`
/** Of a carriage return before a line feed one line end remains. */
const removedPattern = new RegExp(`${sequence}|${single}|\\r(?=(?:${sequence}|${single})*\\n)`, 'gu')
const harmlessPattern = /^[\t\n -~]*$/
/** Starts a sequence whose end may follow in the next piece of a text. */
const openSequencePattern = new RegExp(String.raw`\u001B(?:\[[0-?]*[ -/]*|${openString}\u001B?|[()])?$`)

/** The parts that `plainText` removes from a text, in order. Everything else keeps its place. */
export const removedFrom = (text: string): Iterable<RegExpExecArray> =>
  harmlessPattern.test(text) ? [] : text.matchAll(removedPattern)

/** A longer sequence without an end counts as text. */
const maxOpenLength = 4_096

/** The start of an incomplete sequence at the end of the text; the text's length if there is none. */
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

/** The text, cut to at most `maxLength` characters including an ellipsis. */
export const clip = (text: string, maxLength: number): string =>
  text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`.toWellFormed() // a cut may split a character

/** The same for its end. */
export const clipStart = (text: string, maxLength: number): string =>
  text.length <= maxLength ? text : `…${text.slice(1 - maxLength)}`.toWellFormed()

/** At most `maxLength` characters of a text, cleaned in a time that does not depend on its length. */
export const plainExcerpt = (text: string, maxLength: number): string =>
  clip(plainText(text.length > 16 * maxLength ? text.slice(0, 16 * maxLength) : text), maxLength)

/** The limit for a text of one node, person or registry within a line. */
const maxShownLength = 2_048

/** Untrusted text as a part of one line of a view. */
export const shownLine = (text: string): string => plainLine(plainExcerpt(text, maxShownLength))

/** Lines of a view, each kept on one line, with their line feeds. */
export const shownLines = (lines: readonly string[]): string => lines.map((line) => `${shownLine(line)}\n`).join('')

/** The same JSON document, safe to print: characters that `plainText` would remove are escaped. */
export const harmlessJson = (json: string): string =>
  json.replaceAll(/[\p{Cf}\p{Default_Ignorable_Code_Point}\u007F-\u009F\u2028\u2029]/gu, escaped)

/** Escapes of JSON and double-quoted YAML: one for each UTF-16 code unit. */
const escaped = (character: string): string =>
  Array.from({ length: character.length }, (_, at) => character.charCodeAt(at))
    .map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`)
    .join('')
