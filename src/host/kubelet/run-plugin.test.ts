import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Variant } from 'dbus-next/lib/variant.js'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startFakeSystemd } from '../../../test/support/fake-systemd.ts'
import { systemClock, systemRandom } from '../../daemon/platform/system-clock.ts'
import { createHostRoot } from '../fs/host-root.ts'
import { type PluginRequest, runPlugin, sweepPluginFiles } from './run-plugin.ts'

const secrets = ['hunter2', 'swordfish']
const request: PluginRequest = {
  name: 'own',
  program: '/opt/own',
  args: ['--of', 'the config'],
  kubelet: { environment: { HTTPS_PROXY: 'proxy', SECRET: 'of the kubelet' }, environmentFiles: [['/etc/k', true]] },
  environment: { SECRET: 'swordfish' },
  input: 'the request with hunter2',
}
const { signal } = new AbortController()

let folder: string
let systemd: Awaited<ReturnType<typeof startFakeSystemd>>
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'plugin-'))
  systemd = await startFakeSystemd()
})
afterEach(async () => {
  await systemd[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true })
})

type Properties = ReadonlyMap<string, unknown>

/** Carries out the unit: `plugin` has its properties, and says how it ends. */
function carriesOut(plugin: (properties: Properties) => { readonly exitCode: number }): void {
  systemd.bus.answers('StartTransientUnit', ({ message }) => {
    const [unit, , properties] = message.body as [string, string, [string, Variant][]]
    const { exitCode } = plugin(new Map(properties.map(([name, { value }]) => [name, value])))
    const result = exitCode === 0 ? 'success' : 'exit-code'
    systemd.hostUnits.set(unit, { activeState: 'inactive', result, execMainCode: 1, execMainStatus: exitCode })
    setImmediate(() => systemd.jobRemoved(unit))
    return { signature: 'o', body: ['/job/1'] }
  })
}

const files = () => join(folder, 'run/skyhook/credential-providers')
const root = () => createHostRoot(folder, systemRandom)
const run = async (asked = request) => {
  const host = { root: root(), connection: systemd.connection, clock: systemClock, random: systemRandom }
  return await runPlugin(host, asked, signal)
}
const write = (properties: Properties, property: string, text: string): void =>
  writeFileSync(join(folder, String(properties.get(property))), text)
const read = (path: unknown): string => readFileSync(join(folder, String(path)), 'utf8')

test('a plugin reads and writes files of root alone, and none of their words is in the properties', async () => {
  let shown = ''
  carriesOut((properties) => {
    shown = JSON.stringify([...properties], (_, value) => (typeof value === 'bigint' ? String(value) : value))
    expect(statSync(files()).mode & 0o777).toBe(0o700)
    const modes = readdirSync(files()).map((name) => statSync(join(files(), name)).mode & 0o777)
    expect(modes).toEqual([0o600, 0o600, 0o600, 0o600])
    expect(read(properties.get('StandardInputFile'))).toBe('the request with hunter2')
    const environmentFiles = properties.get('EnvironmentFiles') as [string, boolean][]
    expect(environmentFiles[0]).toEqual(['/etc/k', true])
    const variables = read(environmentFiles[1]?.[0])
    expect(variables).toContain('HTTPS_PROXY="proxy"')
    expect(variables).toContain('SECRET="swordfish"') // the plugin's own wins
    write(properties, 'StandardOutputFileToAppend', 'the answer')
    write(properties, 'StandardErrorFileToAppend', 'chatter')
    return { exitCode: 0 }
  })
  expect(await run()).toBe('the answer')
  expect(shown).toContain('the config')
  for (const secret of secrets) expect(shown).not.toContain(secret)
  expect(readdirSync(files())).toEqual([])
})

test('a plugin that fails leaves what it said to root alone, until it succeeds', async () => {
  carriesOut((properties) => {
    write(properties, 'StandardOutputFileToAppend', 'half an answer with hunter2')
    write(properties, 'StandardErrorFileToAppend', 'no role for hunter2')
    return { exitCode: 7 }
  })
  const message = 'it ended with exit code 7; see /run/skyhook/credential-providers/own.err on the host'
  await expect(run()).rejects.toThrow(new RegExp(`^${message}$`))
  expect(readdirSync(files())).toEqual(['own.err'])
  expect(statSync(join(files(), 'own.err')).mode & 0o777).toBe(0o600)
  expect(readFileSync(join(files(), 'own.err'), 'utf8')).toBe('no role for hunter2')
  carriesOut(() => ({ exitCode: 0 }))
  await run()
  expect(readdirSync(files())).toEqual([])
})

test.each([
  ['its exit code is one of systemd', () => ({ exitCode: 203 }), 'it did not start: 203/EXEC'],
  [
    'its answer is endless',
    (properties: Properties) => {
      write(properties, 'StandardOutputFileToAppend', 'x'.repeat(300_000))
      return { exitCode: 0 }
    },
    'its answer has more than 262144 bytes',
  ],
])('a plugin fails when %s, and leaves nothing', async (_, plugin, message) => {
  carriesOut(plugin)
  await expect(run()).rejects.toThrow(message)
  expect(readdirSync(files())).toEqual([])
})

test('a plugin does not run with a variable that the systemd of the host would drop', async () => {
  carriesOut(() => ({ exitCode: 0 }))
  systemd.setVersion('247.3-7+deb11u5')
  const withControl = { ...request, environment: { PEM: 'swordfish\r\n' } }
  const message = await run(withControl).catch(String)
  expect(message).toContain('environment: the value of PEM contains the control character U+000D')
  expect(message).not.toContain('swordfish')
  expect(systemd.bus.calledMembers()).not.toContain('StartTransientUnit')
  expect(readdirSync(files())).toEqual([])
  systemd.setVersion('248')
  await run(withControl)
  expect(systemd.bus.calledMembers()).toContain('StartTransientUnit')
})

test('a refusal of systemd is told without the name of the run, so that it is the same each time', async () => {
  systemd.bus.answers('StartTransientUnit', ({ message }) => {
    return { error: 'org.freedesktop.systemd1.LoadFailed', text: `Unit ${String(message.body[0])} is bad` }
  })
  await expect(run()).rejects.toThrow(/^systemd: Unit its unit is bad$/)
  expect(readdirSync(files())).toEqual([])
})

test('what the run of an agent that died has left is removed, and not what explains a failure', async () => {
  carriesOut(() => ({ exitCode: 0 }))
  await run()
  for (const name of ['own-1.run-out', 'own-1.run-env.0123456789ab.tmp', 'own.err'])
    writeFileSync(join(files(), name), 'hunter2')
  await sweepPluginFiles(root())
  expect(readdirSync(files())).toEqual(['own.err'])
})
