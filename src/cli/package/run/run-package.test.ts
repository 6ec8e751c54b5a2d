/** What `package run` refuses before it boots anything; test/host/package-run.test.ts boots. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { commandContext } from '../../../../test/kit/tool/command-context.ts'
import { runTool } from '../../../../test/kit/tool/run-tool.ts'
import { createVirtualClock } from '../../../../test/kit/virtual-clock.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { runPackage, type RunFlags } from './run-package.ts'

const folder = mkdtempSync(join(tmpdir(), 'run-package-'))
const [mine, other, base] = ['mine', 'other', 'base'].map((name) => join(folder, name)) as [string, string, string]
const flags: RunFlags = {
  from: undefined,
  only: undefined,
  interrupt: 'none',
  service: [],
  config: ['greeting.txt=greeting'],
  env: [],
  root: base,
  network: 'none',
  stepTimeout: 1_000,
  ignore: [],
  keep: false,
}

beforeAll(async () => {
  for (const name of ['mine', 'other'])
    expect((await runTool(['package', 'init', name, join(folder, name)])).code).toBe(0)
  mkdirSync(base) // without systemd: nothing can be booted by mistake
})
afterAll(() => rmSync(folder, { recursive: true }))

/** The refusal of a call by root on Linux with all programs, unless `change` says otherwise. */
async function refusal(path: string, changedFlags: Partial<RunFlags> = {}, uid = 0) {
  const { context } = commandContext({ transport: {} as KubeTransport, clock: createVirtualClock() })
  const machine = { platform: 'linux', uid, hasProgram: () => true }
  const run = runPackage(
    { ...context, readText: async () => 'hello' },
    { folder: path },
    { ...flags, ...changedFlags },
    machine,
  )
  return await run.then(
    () => 'nothing',
    (error: unknown) => error,
  )
}

test('a caller who is not root is refused before anything is read', async () => {
  expect(await refusal('/nowhere', {}, 1000)).toMatchObject({
    message: expect.stringContaining('needs root') as string,
  })
})

test('a missing folder, and one that is not a valid package, are refused by name', async () => {
  expect(await refusal('/nowhere')).toMatchObject({ exitCode: 3, message: 'there is no folder /nowhere' })
  expect(await refusal(base)).toMatchObject({ exitCode: 1, remedy: `run kubectl skyhook validate ${base}` })
})

test('an upgrade from another package, and a missing key of configMap, are usage errors', async () => {
  expect(await refusal(mine, { from: other })).toMatchObject({
    exitCode: 2,
    message: `--from ${other} is the package other, not mine`,
  })
  expect(await refusal(mine, { config: [] })).toMatchObject({ exitCode: 2, remedy: 'add --config greeting.txt=FILE' })
})

test('a stage that the package does not have is a wrong call before a base is needed', async () => {
  const root = join(folder, 'none')
  expect(await refusal(mine, { only: 'interrupt', root })).toMatchObject({
    exitCode: 2,
    message: '--only interrupt does not fit --interrupt none',
  })
  expect(await refusal(mine, { only: 'apply', from: mine, root })).toMatchObject({ remedy: 'leave out --from' })
  expect(await refusal(mine, { only: 'config', root })).toMatchObject({ exitCode: 3 }) // that of the base
})

test('a base that cannot be booted is refused, and a missing one with the command that makes it', async () => {
  expect(await refusal(mine)).toMatchObject({ exitCode: 2, message: expect.stringContaining('no systemd') as string })
  const missing = join(folder, 'none')
  expect(await refusal(mine, { root: missing })).toMatchObject({
    exitCode: 3,
    remedy: expect.stringContaining(`debootstrap`) as string,
  })
})

test('a TMPDIR in which the path of a socket would be too long is refused', async () => {
  const systemd = join(base, 'usr/lib/systemd')
  mkdirSync(systemd, { recursive: true })
  mkdirSync(join(base, 'usr/bin'))
  for (const file of [join(systemd, 'systemd'), join(base, 'usr/bin/dbus-daemon')]) writeFileSync(file, '')
  expect(readFileSync(join(systemd, 'systemd'), 'utf8')).toBe('') // not a program
  const { context } = commandContext({ transport: {} as KubeTransport, clock: createVirtualClock() })
  const around = { ...context, environment: { TMPDIR: `/${'x'.repeat(60)}` }, readText: async () => 'hello' }
  const machine = { platform: 'linux', uid: 0, hasProgram: () => true }
  await expect(runPackage(around, { folder: mine }, flags, machine)).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringContaining('TMPDIR') as string,
  })
})
