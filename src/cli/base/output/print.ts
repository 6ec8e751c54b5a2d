import type { Context } from '../framework/command.ts'
import type { Painter } from '../framework/paint.ts'
import { wrapText, widthOf } from './wrap.ts'
import { shownLine } from '../../../schemas/plain-text.ts'

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

/** One answer in all its forms. */
type View<T> = {
  readonly rows: readonly T[]
  /** For `-o json` and `-o yaml`. */
  readonly document: unknown
  /** For `-o name`: as kubectl names objects, such as `node/n1`. */
  readonly nameOf?: (row: T) => string
  /** Printed before the table, with its own line ends. */
  readonly before?: string
  /** Printed to stderr instead of a table without rows, so that standard output stays empty. */
  readonly empty?: string
  readonly paint?: Painter
} & (
  | { readonly columns: readonly Column<T>[] }
  /** Within the width of a terminal. */
  | { readonly lines: (row: T) => string }
)

/** Writes an answer in the form that `-o` asks for. */
export async function print<T>({ format, stdout, stderr }: Context, view: View<T>): Promise<void> {
  switch (format) {
    case 'json':
      return stdout.document(`${JSON.stringify(view.document, null, 2)}\n`)
    case 'yaml': {
      const { yamlText } = await import('../framework/yaml-text.ts')
      return stdout.document(yamlText(view.document))
    }
    case 'name':
      return stdout.write(view.rows.map((row) => `${view.nameOf?.(row) ?? ''}\n`).join(''))
    case 'table':
    case 'wide':
    case 'markdown':
    case 'github':
  }
  if (view.rows.length === 0 && view.empty !== undefined) return stderr.write(`${view.empty}\n`)
  if ('lines' in view) {
    const text = view.rows.map((row) => `${view.lines(row)}\n`).join('')
    return stdout.write(wrapText(text, stdout.columns()), view.paint)
  }
  stdout.write(`${view.before ?? ''}${formatTable(view.columns, view.rows, format === 'wide')}`)
}

/** The envelope of every answer that is not one of the operator's shapes. */
export const envelope = (kind: string, items: readonly unknown[]): object => ({
  apiVersion: 'cli.skyhookd/v1',
  kind,
  items,
})
