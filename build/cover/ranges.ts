/** Which lines of a file no test reaches, from a report of istanbul's form. */

type Position = { readonly line: number }

export type FileCoverage = {
  readonly statementMap: Readonly<Record<string, { readonly start: Position; readonly end: Position }>>
  /** How often each statement ran. */
  readonly s: Readonly<Record<string, number>>
}

/** Sources that unit tests are for. */
export const isCovered = (file: string): boolean =>
  /^(?:src|build)\/.*\.ts$/.test(file) && !/\.test\.ts$|^src\/schemas\/generated\//.test(file)

/** `7` or `7-12`, ascending. Lines between two statements that never ran belong to one range. */
export function uncoveredRanges({ statementMap, s }: FileCoverage): string[] {
  /** Whether some statement that starts there ran. */
  const lines = new Map<number, { hasRun: boolean; end: number }>()
  for (const [id, { start, end }] of Object.entries(statementMap)) {
    const before = lines.get(start.line)
    const hasRun = (s[id] ?? 0) > 0 || before?.hasRun === true
    lines.set(start.line, { hasRun, end: Math.max(before?.end ?? 0, end.line) })
  }
  const ranges: { first: number; last: number }[] = []
  let open: { first: number; last: number } | undefined
  for (const [line, { hasRun, end }] of [...lines].toSorted(([a], [b]) => a - b)) {
    if (hasRun) open = undefined
    else if (open) open.last = Math.max(open.last, end)
    else ranges.push((open = { first: line, last: end }))
  }
  return ranges.map(({ first, last }) => (first === last ? `${first}` : `${first}-${last}`))
}
