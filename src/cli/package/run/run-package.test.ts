/** What `package run` refuses before it boots anything; test/host/package-run.test.ts boots. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, describe } from 'vitest'
import { commandContext } from '../../../../test/kit/tool/command-context.ts'
import { runTool } from '../../../../test/kit/tool/run-tool.ts'
import { createVirtualClock } from '../../../../test/kit/virtual-clock.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import {
  runPackage,
  type RunFlags,
  configFilesOf,
  interruptOf,
  requireInputs,
  requireStage,
  variablesOf,
  defaultBase,
  requireBase,
  requireMachine,
  type RunMachine,
  actText,
  endText,
  type RunReport,
} from './run-package.ts'
import { plainStep, simplePackage } from '../../../../test/kit/node-simulator/package-content.ts'
import type { StageName } from '../../../schemas/skyhook.ts'
import type { LifeOptions } from './life.ts'
import { errorOf } from '../../../../test/kit/tool/command-error.ts'
import { exitCodes } from '../../base/framework/command-error.ts'

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

test('an interrupt of services names them, and no other interrupt does', () => {
  expect(interruptOf('reboot', [])).toEqual({ type: 'reboot' })
  expect(interruptOf('none', [])).toBeUndefined()
  expect(interruptOf('service', ['cron'])).toEqual({ type: 'service', services: ['cron'] })
  expect(() => interruptOf('service', [])).toThrow(/needs to know which/)
  expect(() => interruptOf('reboot', ['cron'])).toThrow(/--service does not fit/)
})

describe('--only', () => {
  const config = simplePackage({ apply: [plainStep('a')], 'config-check': [plainStep('c')] })
  const withInterrupt = { interrupt: { type: 'reboot' } } as const
  const has = (stages: string) => `name one that it has: ${stages}`

  test.each<[StageName, LifeOptions, message: string, remedy: string]>([
    ['uninstall', {}, 'pkg 1.0.0 has no stage uninstall', has('apply, config')],
    ['upgrade', withInterrupt, 'pkg 1.0.0 has no stage upgrade', has('apply, config, interrupt')],
    ['post-interrupt', withInterrupt, 'pkg 1.0.0 has no stage post-interrupt', has('apply, config, interrupt')],
    ['interrupt', {}, '--only interrupt does not fit --interrupt none', 'say which interrupt the package has'],
    [
      'post-interrupt',
      {},
      '--only post-interrupt does not fit --interrupt none',
      'say which interrupt the package has',
    ],
    [
      'apply',
      { previous: config },
      '--only apply does not fit --from: an upgrade does not run apply',
      'leave out --from',
    ],
  ])('%s with %j is refused', (stage, options, message, remedy) => {
    const refused = expect.objectContaining({ exitCode: 2, message, remedy }) as Error
    expect(() => requireStage(stage, config, options)).toThrow(refused)
  })

  test('a package without steps is refused without a stage to name', () => {
    const refused = expect.objectContaining({ remedy: 'its config.json names no steps' }) as Error
    expect(() => requireStage('apply', simplePackage({}), {})).toThrow(refused)
  })

  test('a stage that is only a check, and the interrupt of --interrupt, are stages', () => {
    expect(() => requireStage('config', config, {})).not.toThrow()
    expect(() => requireStage('interrupt', config, withInterrupt)).not.toThrow()
  })
})

test('a key of configMap is a name and a file', () => {
  expect(configFilesOf(['a.txt=dir/b=c.txt'])).toEqual([['a.txt', 'dir/b=c.txt']])
  for (const bad of ['a.txt', '=b', 'a=']) expect(() => configFilesOf([bad])).toThrow(/--config/)
})

test('inputs that agents would miss must be given, and the remedy has the flags', () => {
  const named = (name: string) => [plainStep('run.sh', { arguments: [`env:${name}`] })]
  const modes = { upgrade: named('SITE'), 'post-interrupt': named('LATER'), uninstall: named('NEVER') }
  const config = { ...simplePackage(modes), expectedConfigFiles: ['a', 'b'] }
  expect(() => requireInputs(config, { configMap: { b: '' } })).toThrow(
    expect.objectContaining({
      message: 'the package expects a in configMap, and SITE in env',
      remedy: 'add --config a=FILE --env SITE=VALUE',
    }),
  )
  const given = { configMap: { a: '', b: '', c: '' }, env: [{ name: 'SITE', value: '' }] }
  expect(() => requireInputs(config, given)).not.toThrow()
  expect(() => requireInputs(config, { ...given, interrupt: { type: 'reboot' } })).toThrow(/expects LATER in env/)
})

test('a comma belongs to the value of a variable unless another variable starts after it', () => {
  expect(variablesOf(['A=1', '2', 'B=x=y', 'C='])).toEqual([
    { name: 'A', value: '1,2' },
    { name: 'B', value: 'x=y' },
    { name: 'C', value: '' },
  ])
  expect(() => variablesOf(['1A=1'])).toThrow(/sets no variable/)
  expect(() => variablesOf(['A=\0'])).toThrow(/NUL/)
})

const machine: RunMachine = { platform: 'linux', uid: 0, hasProgram: () => true }
test('a machine that is not Linux, a caller who is not root, and missing programs are refused, each with a remedy', () => {
  expect(() => requireMachine(machine)).not.toThrow()
  const cases: readonly [Partial<RunMachine>, RegExp, RegExp][] = [
    [{ platform: 'darwin' }, /needs Linux, this is darwin/, /Linux machine/],
    [{ uid: 1000 }, /needs root/, /sudo/],
    [{ hasProgram: (name) => name !== 'systemd-nspawn' }, /needs systemd-nspawn$/, /install systemd-container/],
  ]
  for (const [change, message, remedy] of cases) {
    const error = errorOf(() => requireMachine({ ...machine, ...change }))
    expect(error).toMatchObject({ exitCode: exitCodes.failed, message: expect.stringMatching(message) as string })
    expect(error.remedy).toMatch(remedy)
  }
})

const good = { exists: true, hasSystemd: true, hasBus: true }

test('a missing base is refused with the command that makes it', () => {
  const error = errorOf(() => requireBase(defaultBase, true, { ...good, exists: false }))
  expect(error).toMatchObject({ exitCode: exitCodes.notFound })
  expect(error.remedy).toContain(`debootstrap`)
  expect(error.remedy).toContain(defaultBase)
  expect(errorOf(() => requireBase('/base', false, { ...good, exists: false })).remedy).toMatch(/^make it: .* \/base$/)
})

test('a base without systemd or bus, and this machine itself, are usage errors', () => {
  expect(() => requireBase('/base', false, good)).not.toThrow()
  const error = errorOf(() => requireBase('/base', false, { ...good, hasSystemd: false, hasBus: false }))
  expect(error.message).toBe('/base cannot be booted: it has no systemd and no D-Bus daemon')
  expect(error.remedy).toContain('install them there: unlike agents, package run speaks to systemd over the bus alone')
  expect(errorOf(() => requireBase('/base', false, { ...good, hasSystemd: false })).remedy).not.toContain('agents')
  expect(errorOf(() => requireBase('/', false, good))).toMatchObject({ exitCode: exitCodes.usage })
})

test('an act is a word and its name, with the end of the output below, and nothing that a terminal would obey', () => {
  expect(actText({ name: 'apply', outcome: 'passed', detail: '' })).toBe('passed      apply\n')
  const detail = `${Array.from({ length: 30 }, (_, index) => `line ${index}`).join('\n')}\u001b[31mred\n`
  const lines = actText({ name: 'apply', outcome: 'failed', detail }).split('\n')
  expect(lines.slice(0, 3)).toEqual(['failed      apply', '    …', '    line 10'])
  expect(lines.at(-2)).toBe('    line 29red')
})

test('the end has what is left behind and the verdict as text, of one stage under its name', () => {
  const report: RunReport = {
    package: 'p',
    version: '2.0.0',
    from: '1.0.0',
    isOk: false,
    hasUninstall: true,
    acts: [
      { name: 'a', outcome: 'warning', detail: '' },
      { name: 'b', outcome: 'not-killed', detail: '' },
    ],
    leftBehind: [{ kind: 'file', name: '/etc/x', change: 'added' }],
    ignored: [{ kind: 'unit', name: 'y.timer', change: 'added' }],
  }
  expect(endText(report)).toBe(
    '    added    file /etc/x\n' +
      'life of p 2.0.0, upgraded from 1.0.0: failed, 1 warning, 1 stage too short to be killed, ' +
      '1 left behind, 1 ignored\n',
  )
  const clean = { ...report, isOk: true, acts: [], leftBehind: [], hasUninstall: false }
  expect(endText({ ...clean, ignored: [], only: 'config' })).toBe('config of p 2.0.0, upgraded from 1.0.0: passed\n')
  expect(endText(clean)).toContain('no uninstall stage: what the package leaves behind was not checked\n')
})
