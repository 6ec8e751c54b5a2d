/**
 * Prints the table of scenarios row by row from the JSON report of a run: `node test/conformance/table.ts REPORT`. Ends
 * with `N passed, N failed`; fails when a row failed or a row that has a test was not run.
 */
import { readFileSync } from 'node:fs'
import { rows, type Row } from './rows.ts'

type Assertion = { readonly title: string; readonly status: string; readonly duration?: number | null }
type Report = { readonly testResults: readonly { readonly assertionResults: readonly Assertion[] }[] }

/** `not run` is a failure: a row must not vanish with a file that fails to load. */
type Outcome = {
  readonly result: 'passed' | 'failed' | 'not run' | 'differs'
  readonly ms?: number
  readonly note?: string
}

export function outcomeOf(row: Row, assertions: readonly Assertion[]): Outcome {
  if (row.status !== 'tested') return { result: 'differs', note: row.status.differs }
  const own = assertions.find(({ title }) => title.startsWith(`${row.id} `))
  if (!own || !['passed', 'failed'].includes(own.status)) return { result: 'not run' }
  return {
    result: own.status === 'passed' ? 'passed' : 'failed',
    ms: own.duration ?? 0,
    ...(row.apart !== undefined && { note: `apart from: ${row.apart}` }),
  }
}

export function tableOf(assertions: readonly Assertion[]): {
  readonly lines: readonly string[]
  readonly failed: number
} {
  const outcomes = rows.map((row) => ({ row, outcome: outcomeOf(row, assertions) }))
  const width = Math.max(...rows.map(({ name }) => name.length))
  const lines = outcomes.map(({ row, outcome: { result, ms, note } }) => {
    const seconds = ms === undefined ? '' : `${(ms / 1000).toFixed(1)} s`
    const columns = [row.id, row.name.padEnd(width), row.class.padEnd(6), result.padEnd(7), seconds.padStart(7)]
    return [...columns, note ?? ''].join('  ').trimEnd()
  })
  const count = (...results: readonly Outcome['result'][]): number =>
    outcomes.filter(({ outcome }) => results.includes(outcome.result)).length
  const failed = count('failed', 'not run')
  return {
    lines: [...lines, '', `${count('differs')} differ`, `${count('passed')} passed, ${failed} failed`],
    failed,
  }
}

if (import.meta.main) {
  const [file = ''] = process.argv.slice(2)
  const report = JSON.parse(readFileSync(file, 'utf8')) as Report
  const { lines, failed } = tableOf(report.testResults.flatMap(({ assertionResults }) => assertionResults))
  console.log(lines.join('\n'))
  process.exitCode = failed === 0 ? 0 : 1
}
