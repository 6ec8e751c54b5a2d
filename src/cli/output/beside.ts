/** A table of which the last column has many lines. Pure. */

/** A text and how wide its column is. */
export type Cell = readonly [text: string, width: number]

/** The lines beside the cells. The cells are only before the first line; without lines they stand alone. */
export function besideCells(cells: readonly Cell[], lines: readonly string[]): readonly string[] {
  const start = cells.map(([text, width]) => text.padEnd(width)).join(' ')
  if (lines.length === 0) return [start.trimEnd()]
  return lines.map((line, index) => `${index === 0 ? start : ' '.repeat(start.length)} ${line}`)
}
