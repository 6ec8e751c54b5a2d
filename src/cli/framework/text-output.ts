/** The one way to standard output and standard error. */
import { clip, harmlessJson, plainText } from '../../schemas/plain-text.ts'
import type { TextOutput, TextStream } from './command.ts'

/** Twice the longest line of a step's output. */
const maxLineLength = 16 * 1024
/** Cursor to the upper left, and clear what is below: no line of the scroll-back is lost. */
const redraw = '\u001B[H\u001B[J'

/**
 * Names and messages come from others: what a terminal would obey, and what makes a text look like another one, does
 * not get through, whoever writes.
 */
export const createTextOutput = (stream: TextStream): TextOutput => ({
  isTerminal: stream.isTerminal,
  hasColor: stream.hasColor,
  columns: () => stream.columns(),
  write: (text) => stream.write(withShortLines(plainText(text))),
  document: (text) => stream.write(harmlessJson(text)),
  screen: (text) => stream.write(`${redraw}${withShortLines(plainText(text))}`),
})

const withShortLines = (text: string): string =>
  text.length <= maxLineLength
    ? text
    : text
        .split('\n')
        .map((line) => clip(line, maxLineLength))
        .join('\n')
