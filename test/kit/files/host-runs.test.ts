import { expect, test } from 'vitest'
import {
  type HostRun,
  leftOn,
  mainJob,
  plannedRuns,
  recordedRuns,
  recordText,
  skippedOf,
  withRows,
} from './host-runs.ts'

const files = ['test/host/steps.test.ts', 'test/host/survival.test.ts']
const planned = plannedRuns(files)
const machine = 'Linux 6.12.3, cgroup v2, native processor'
const page = (...rows: string[]): string =>
  [
    'before',
    '<!-- hosts: written by make prove -->',
    '| Host | Machine | Commit | Main job | Tests of the host |',
    '|---|---|---|---|---|',
    ...rows,
    '<!-- end of hosts -->',
    'after',
  ].join('\n')
const runsOf = (os: HostRun['os'], ...skipped: string[]): HostRun[] =>
  planned
    .filter((one) => one.os === os)
    .map((one) => ({ ...one, machine, commit: '1234567', passed: 2, skipped: one.file === files[1] ? skipped : [] }))

test('a container has the main job alone, and each other host the tests of hosts, too', () => {
  expect(planned.filter(({ os }) => os === 'container')).toEqual([{ os: 'container', file: mainJob }])
  expect(planned.filter(({ os }) => os === 'bare').map(({ file }) => file)).toEqual([mainJob, ...files])
})

test('the table gets a row for each host that has passed all, in their order, with the names of what was skipped', () => {
  const runs = [...runsOf('container'), ...runsOf('trixie').slice(1), ...runsOf('bare', 'a bus | a reboot', 'tuned')]
  expect(withRows(page(), runs, planned)).toBe(
    page(
      `| \`bare\` | ${machine} | 1234567 | passed | 4 passed; skipped: a bus \\| a reboot; tuned |`,
      `| \`container\` | ${machine} | 1234567 | passed, without a reboot | – |`,
    ),
  )
})

test('rows of other hosts, other machines and earlier commits stay until the same host passes on the same machine', () => {
  const [other, older] = [
    '| `trixie` | Linux 6.1.0, cgroup v1, native processor | 0000001 | passed | 3 passed |',
    `| \`bookworm\` | ${machine} | 0000001 | passed | 3 passed; skipped: x \\| y |`,
  ]
  const first = withRows(page(other, older), runsOf('trixie'), planned)
  const trixie = `| \`trixie\` | ${machine} | 1234567 | passed | 4 passed |`
  expect(first).toBe(page(older, other, trixie))
  const bookworm = `| \`bookworm\` | ${machine} | 89abcde | passed | 4 passed |`
  const later = runsOf('bookworm').map((run) => ({ ...run, commit: '89abcde' }))
  expect(withRows(first, later, planned)).toBe(page(bookworm, other, trixie))
})

test('a host whose runs have passed on two machines has no row, and each machine has the runs of the other left', () => {
  const [first, ...rest] = runsOf('bare')
  const runs = [first!, ...rest.map((run) => ({ ...run, machine: machine.replace('native', 'emulated') }))]
  expect(withRows(page(), runs, planned)).toBe(page())
  const bare = planned.filter(({ os }) => os === 'bare')
  const leftOf = (word: string) => leftOn((text) => text.includes(word), bare, runs)
  expect([leftOf('native'), leftOf('emulated'), leftOf('cgroup v2')]).toEqual([bare.slice(1), bare.slice(0, 1), []])
})

test('a page without the table is an error', () => {
  expect(() => withRows('text', [], planned)).toThrow('lacks the markers')
})

test('a file or a group of which no test ran is skipped by its own name, other tests by theirs', () => {
  const one = (title: string, status: string, ...ancestorTitles: string[]) => ({ title, status, ancestorTitles })
  const tests = [
    one('a', 'pending', 'with tuned'),
    one('b', 'skipped', 'with tuned'),
    one('c', 'passed', 'a reboot'),
    one('d', 'pending', 'a reboot'),
    one('e', 'pending'),
    one('f', 'passed'),
  ]
  expect(skippedOf('vitest.config.ts', tests)).toEqual(['with tuned', 'd', 'e'])
  expect(skippedOf('vitest.config.ts', [tests[0]!, tests[4]!])).toEqual(['`vitest.config.ts`'])
})

test('the record keeps a run as it is', () => {
  const runs = runsOf('bare', 'a bus')
  expect(recordedRuns(runs.map(recordText))).toEqual(runs)
})
