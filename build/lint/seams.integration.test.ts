import { expect, test } from 'vitest'
import { lintFiles } from '../../test/kit/pages/lint-files.ts'

const samples: Readonly<Record<string, string>> = {
  'the wall clock': 'export const f = () => Date.now()',
  'the date': 'export const f = () => new Date()',
  'the monotonic clock': 'export const f = () => performance.now()',
  'a timeout': 'export const f = () => setTimeout(() => {}, 1)',
  'an interval': 'export const f = () => setInterval(() => {}, 1)',
  'a turn of the event loop': 'export const f = () => setImmediate(() => {})',
  'a module of timers': "import { setTimeout as wait } from 'node:timers/promises'\nexport const f = () => wait(1)",
  'a signal with a timeout': 'export const f = () => AbortSignal.timeout(1)',
  'a random number': 'export const f = () => Math.random()',
  'a random id': "import { randomUUID } from 'node:crypto'\nexport const f = () => randomUUID()",
  'random bytes': "import { randomBytes } from 'node:crypto'\nexport const f = () => randomBytes(1)",
  'a file': "import { readFile } from 'node:fs/promises'\nexport const f = () => readFile('/x')",
  'an imported module': "export const f = async () => await import('node:fs')",
  'a child process': "import { spawn } from 'node:child_process'\nexport const f = () => spawn('/bin/true')",
  'a socket': "import { connect } from 'node:net'\nexport const f = () => connect('/x')",
  'a request': "import { request } from 'node:https'\nexport const f = () => request('https://example.com')",
  environment: 'export const f = () => process.env',
}

const seams = (found: readonly string[] | undefined): number =>
  (found ?? []).filter((one) => one.startsWith('seams(')).length

test('what reaches past the platform is refused', () => {
  const found = lintFiles(
    Object.fromEntries(Object.values(samples).map((text, index) => [`src/kube/new${index}.ts`, text])),
  )
  for (const [index, what] of Object.keys(samples).entries())
    expect(seams(found[`src/kube/new${index}.ts`]), what).toBeGreaterThan(0)
})

test('the platform, tests, types and parameters may use what only looks like it', () => {
  const allowed = {
    'src/daemon/platform/some.ts': 'export const f = () => Date.now()',
    'src/kube/some.test.ts': 'export const f = () => Date.now()',
    'src/kube/date.ts': 'export const f = (ms: number) => new Date(ms)',
    'src/kube/member.ts': 'export const f = (clock: any) => clock.setTimeout(1)',
    'src/kube/type.ts': "import type { Socket } from 'node:net'\nexport type S = Socket",
    'src/kube/hash.ts': "import { createHash } from 'node:crypto'\nexport const f = () => createHash('sha256')",
  }
  const found = lintFiles(allowed)
  expect(Object.keys(allowed).map((path) => [path, seams(found[path])])).toEqual(
    Object.keys(allowed).map((path) => [path, 0]),
  )
})
