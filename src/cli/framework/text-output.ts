/** The one way to standard output and standard error. */
import { clip, harmlessJson, plainText } from '../../schemas/plain-text.ts'
import type { TextOutput, TextStream } from './command.ts'
import type { Painter } from './paint.ts'

/** Twice the longest line of a step's output. */
const maxLineLength = 16 * 1024
/** Cursor to the upper left, and clear what is below: no line of the scroll-back is lost. */
const redraw = '\u001B[H\u001B[J'

/**
 * Names and messages come from others. Characters that a terminal would obey, or that disguise a text, do not get
 * through.
 */
export function createTextOutput(stream: TextStream): TextOutput {
  const clean = (text: string, paint?: Painter): string => {
    const lines = withShortLines(plainText(text))
    return paint !== undefined && stream.hasColor ? lines.split('\n').map(paint).join('\n') : lines
  }
  return {
    isTerminal: stream.isTerminal,
    hasColor: stream.hasColor,
    columns: () => stream.columns(),
    write: (text, paint) => stream.write(clean(text, paint)),
    document: (text) => stream.write(harmlessJson(text)),
    screen: (text, paint) => stream.write(`${redraw}${clean(text, paint)}`),
  }
}

const withShortLines = (text: string): string =>
  text.length <= maxLineLength
    ? text
    : text
        .split('\n')
        .map((line) => clip(line, maxLineLength))
        .join('\n')
