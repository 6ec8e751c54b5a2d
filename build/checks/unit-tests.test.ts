import { expect, test } from 'vitest'
import { repositoryOf } from '../../test/kit/pages/repository-of.ts'
import { unitTestProblems } from './unit-tests.ts'

const file = 'src/kube/some.test.ts'
const problems = (text: string, path = file): string[] => unitTestProblems(repositoryOf({ [path]: text }))

test.each([
  ['the clock of the machine', "import { systemClock } from '../daemon/platform/system-clock.ts'", 'systemClock'],
  ['a timeout', 'setTimeout(() => {}, 1)', 'setTimeout'],
  ['a timeout of the global object', 'globalThis.setTimeout(() => {}, 1)', 'setTimeout'],
  ['an interval', 'setInterval(() => {}, 1)', 'setInterval'],
  ['timers', "import * as timers from 'node:timers'", 'node:timers'],
  ['timers as promises', "import { scheduler } from 'node:timers/promises'", 'node:timers/promises'],
  ['a module without the prefix', "import { scheduler } from 'timers/promises'", 'timers/promises'],
  ['waiting of vitest', 'await vi.waitFor(() => {})', 'waitFor'],
  ['waiting of vitest for a value', 'await vi.waitUntil(() => true)', 'waitUntil'],
  ['polling', 'await expect.poll(() => 1).toBe(1)', 'expect.poll'],
  ['the monotonic clock', 'const start = performance.now()', 'performance.now'],
  ['the wall clock', 'const start = Date.now()', 'Date.now'],
  ['a signal with a timeout', 'const signal = AbortSignal.timeout(1)', 'AbortSignal.timeout'],
  ['a process', "import { spawn } from 'node:child_process'", 'node:child_process'],
  ['an import while it runs', "const { spawn } = await import('node:child_process')", 'node:child_process'],
  ['a module for what it does', "import 'node:child_process'", 'node:child_process'],
  ['what it passes on', "export { spawn } from 'node:child_process'", 'node:child_process'],
  ['HTTP', "import { createServer } from 'node:http'", 'node:http'],
  ['HTTPS', "import { createServer } from 'node:https'", 'node:https'],
  ['sockets', "import net from 'node:net'", 'node:net'],
  ['TLS', "import { type TLSSocket, connect } from 'node:tls'", 'node:tls'],
  ['the memory of its process', 'const { rss } = process.memoryUsage()', 'process.memoryUsage'],
  ['the same by the kernel', "const text = readFileSync('/proc/self/smaps_rollup', 'utf8')", 'smaps_rollup'],
  ['the time that its process took', 'const { user } = process.cpuUsage()', 'process.cpuUsage'],
  ['the clock of its process', 'const at = process.hrtime.bigint()', 'process.hrtime'],
  ['datagrams', "import { createSocket } from 'node:dgram'", 'node:dgram'],
])('a unit test with %s is reported', (_, line, name) => {
  const found = problems(`const first = 1\n${line}\n`)
  expect(found).toHaveLength(1)
  expect(found[0]).toMatch(new RegExp(String.raw`^${file}:2: \S*${RegExp.escape(name)} \w`))
})

test.each([
  ['texts', "const text = 'setTimeout(() => Date.now(), 1)' // systemClock\nconst html = `${text} waitFor`"],
  [
    'types',
    "import type { Server } from 'node:http'\nimport { type Socket } from 'node:net'\nlet both: Server | Socket",
  ],
  ['constants', "import { rootCertificates } from 'node:tls'"],
  ['turns of the event loop', 'setImmediate(() => {})'],
  ['points in time', 'const at = Date.parse(text)\nconst day = new Date(at)'],
])('a unit test with %s is not reported', (_, text) => {
  expect(problems(text)).toEqual([])
})

test.each(['src/kube/some.integration.test.ts', 'test/e2e/some.test.ts', 'src/kube/some.ts', 'test/kit/some.ts'])(
  'real time in %s is not reported without a unit test that imports it',
  (path) => {
    expect(problems('setTimeout(() => {}, 1)', path)).toEqual([])
  },
)

test('a problem says what, why, and what to do instead', () => {
  expect(problems('setTimeout(() => {}, 1)')).toEqual([
    'src/kube/some.test.ts:1: setTimeout knows real time, which a unit test may not: take createVirtualClock of ' +
      'test/kit/virtual-clock.ts, or move the test to src/kube/some.integration.test.ts',
  ])
})

test('a helper that unit tests import is reported with the shortest chain of imports', () => {
  const found = unitTestProblems(
    repositoryOf({
      'src/kube/a.test.ts': "import { far } from '../../test/kit/far.ts'",
      'src/kube/b.test.ts': "import { near } from '../../test/kit/near.ts'",
      'test/kit/far.ts': "export const far = 1\nimport { near } from './near.ts'",
      'test/kit/near.ts': "import { inner } from './inner.ts'\nexport const near = inner",
      'test/kit/inner.ts': "import { connect } from 'node:net'\nexport const inner = connect",
    }),
  )
  expect(found).toEqual([
    'test/kit/inner.ts:1: node:net opens sockets, which a unit test may not (src/kube/b.test.ts > ' +
      'test/kit/near.ts > test/kit/inner.ts): take the simulated API server (test/kit/api-server) or host ' +
      '(test/kit/host), or move the test to src/kube/b.integration.test.ts',
  ])
})

test('helpers that only lend a type, and product code, are not searched', () => {
  const found = unitTestProblems(
    repositoryOf({
      'src/kube/a.test.ts':
        "import type { A } from '../../test/kit/a.ts'\n" +
        "import { type B } from '../../test/kit/b.ts'\nimport './c.ts'",
      'test/kit/a.ts': 'setTimeout(() => {}, 1)',
      'test/kit/b.ts': 'setTimeout(() => {}, 1)',
      'src/kube/c.ts': 'setTimeout(() => {}, 1)',
    }),
  )
  expect(found).toEqual([])
})
