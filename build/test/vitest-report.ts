/** What vitest's JSON reporter writes, as far as campaigns and `make test` read it. */
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'

export type Report = {
  readonly numPassedTests: number
  readonly numFailedTests: number
  /** One per file. */
  readonly testResults: readonly {
    readonly name: string
    readonly startTime: number
    readonly endTime: number
    readonly status: string
    /** Of a file that could not be loaded or set up. */
    readonly message?: string
    readonly assertionResults: readonly TestResult[]
  }[]
}

export type TestResult = {
  readonly title: string
  readonly ancestorTitles: readonly string[]
  readonly fullName: string
  readonly status: string
  readonly failureMessages?: readonly string[]
}

/** For the command line of vitest. */
export const reportOptions = (file: string): readonly string[] => [
  '--reporter=default',
  '--reporter=json',
  `--outputFile.json=${file}`,
]

/** Undefined where vitest has written none. */
export function readReport(file: string): Report | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Report
  } catch {
    return undefined
  }
}

/** A failed test, or a file of which no test could run, and the first message. */
export type Failure = { readonly file: string; readonly fullName: string; readonly message: string }

export const failuresOf = ({ testResults }: Report): readonly Failure[] =>
  testResults.flatMap(({ name, status, message = '', assertionResults }) => {
    const file = relative(process.cwd(), name)
    const failed = assertionResults
      .filter((one) => one.status === 'failed')
      .map(({ fullName, failureMessages: [first = ''] = [] }) => ({ file, fullName, message: first }))
    return failed.length > 0 || status !== 'failed' ? failed : [{ file, fullName: 'could not start', message }]
  })
