import { shownLine } from '../../schemas/plain-text.ts'
import { widthOf } from './wrap.ts'

export type Column<T> = {
  readonly header: string
  readonly value: (row: T) => string
  /** Only with `-o wide`. */
  readonly isWide?: true
}

const gap = '  '

/** A table with a header and columns as wide as their longest value; lines end in a newline and without blanks. */
export function formatTable<T>(columns: readonly Column<T>[], rows: readonly T[], isWide: boolean): string {
  const shown = columns.filter((column) => isWide || column.isWide !== true)
  const lines = [
    shown.map(({ header }) => header),
    ...rows.map((row) => shown.map(({ value }) => shownLine(value(row)))),
  ]
  const widths = shown.map((_, index) => Math.max(...lines.map((line) => widthOf(line[index] ?? ''))))
  return lines
    .map((line) => line.map((text, index) => text + ' '.repeat((widths[index] ?? 0) - widthOf(text))).join(gap))
    .map((line) => `${line.trimEnd()}\n`)
    .join('')
}
