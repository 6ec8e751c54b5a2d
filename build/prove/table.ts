/** What `make prove` says at the end. */

export type Row = {
  readonly part: string
  readonly proven: number
  /** Undefined before the campaign itself has found out. */
  readonly of: number | undefined
  readonly failed: number
  /** Of this run; undefined if it had nothing to do, or could not run. */
  readonly minutes: number | undefined
  /** Their hash. */
  readonly sources: string
}

/** At most 100 columns. */
export function tableOf(rows: readonly Row[], commit: string): string {
  const lines = rows.map(({ part, proven, of, failed, minutes, sources }) => [
    part,
    String(proven),
    of === undefined ? '?' : String(of),
    String(failed),
    minutes === undefined ? '–' : minutes.toFixed(1),
    sources,
    commit,
  ])
  const all = [['part', 'proven', 'of', 'failed', 'minutes', 'sources', 'commit'], ...lines]
  const widths = all[0]?.map((_, column) => Math.max(...all.map((line) => line[column]?.length ?? 0))) ?? []
  const isNumber = (column: number): boolean => column >= 1 && column <= 4
  const text = (line: readonly string[]): string => {
    const cells = line.map((cell, column) =>
      isNumber(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
    )
    return `| ${cells.join(' | ')} |`
  }
  const ruler = widths.map((width, column) => (isNumber(column) ? `${'-'.repeat(width - 1)}:` : '-'.repeat(width)))
  const [heading = [], ...body] = all
  return [text(heading), text(ruler), ...body.map(text)].join('\n')
}
