/** Lines of a view within the width of a terminal. Words are never broken: names can be copied. Pure. */

/** Columns of a terminal; names and messages of Kubernetes have no wide characters. */
export const widthOf = (text: string): number => Array.from(text).length

/** A table's cells of one word, such as `drain  CLOSED  `: what stands in the last column continues below it. */
const cells = /^ *(?:\S+ {2,})*/
/** How much further the rest of a line without cells is indented than its start. */
const hang = 2
/** A terminal joins what it breaks itself when a person copies it. */
const command = /^ *(?:run|next): /

/**
 * The line in as many as it needs. A word that is wider than `columns` has its own line, and a command stays whole.
 * Undefined: there is no terminal, and the line stays as it is.
 */
export function wrapLine(line: string, columns: number | undefined): readonly string[] {
  if (columns === undefined || widthOf(line) <= columns || command.test(line)) return [line]
  const start = widthOf(/^ */.exec(line)?.[0] ?? '')
  const column = widthOf(cells.exec(line)?.[0] ?? '')
  const indent = ' '.repeat(column > start && column <= columns / 2 ? column : start + hang)
  const [first = '', ...rest] = line.split(/(?<=\S) (?=\S)/)
  const lines = [first]
  for (const word of rest) {
    const longer = `${lines.at(-1) ?? ''} ${word}`
    if (widthOf(longer) <= columns) lines[lines.length - 1] = longer
    else lines.push(`${indent}${word}`)
  }
  return lines
}

/** The same for each line of a text. */
export const wrapText = (text: string, columns: number | undefined): string =>
  columns === undefined
    ? text
    : text
        .split('\n')
        .flatMap((line) => wrapLine(line, columns))
        .join('\n')

/** A text and how wide its column is. */
export type Cell = readonly [text: string, width: number]

/** The lines beside the cells. The cells are only before the first line; without lines they stand alone. */
export function besideCells(cells: readonly Cell[], lines: readonly string[]): readonly string[] {
  const start = cells.map(([text, width]) => text.padEnd(width)).join(' ')
  if (lines.length === 0) return [start.trimEnd()]
  return lines.map((line, index) => `${index === 0 ? start : ' '.repeat(start.length)} ${line}`)
}
