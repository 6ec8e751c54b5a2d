import { join } from 'node:path'
import { expect, test } from 'vitest'
import { failuresOf, type Report } from './vitest-report.ts'

const file = (name: string, rest: Partial<Report['testResults'][number]>): Report['testResults'][number] => ({
  name: join(process.cwd(), name),
  startTime: 0,
  endTime: 0,
  status: 'failed',
  assertionResults: [],
  ...rest,
})
const result = (title: string, status: string, failureMessages: string[] = []) => ({
  title,
  fullName: title,
  ancestorTitles: [],
  status,
  failureMessages,
})

test('a file that could not be loaded or set up is a failure beside the tests that failed', () => {
  const testResults = [
    file('build/bundle.ts', { assertionResults: [result('good', 'passed'), result('bad', 'failed', ['one', 'two'])] }),
    file('build/cover.ts', { message: 'no syntax' }),
    file('build/image.ts', { message: 'no cluster', assertionResults: [result('left out', 'skipped')] }),
    file('build/prove.ts', { status: 'passed', assertionResults: [result('fine', 'passed')] }),
  ]
  expect(failuresOf({ numPassedTests: 2, numFailedTests: 1, testResults })).toEqual([
    { file: 'build/bundle.ts', fullName: 'bad', message: 'one' },
    { file: 'build/cover.ts', fullName: 'could not start', message: 'no syntax' },
    { file: 'build/image.ts', fullName: 'could not start', message: 'no cluster' },
  ])
})
