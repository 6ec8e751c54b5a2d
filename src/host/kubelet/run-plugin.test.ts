import type { Variant } from 'dbus-next/lib/variant.js'
import { beforeEach, expect, test } from 'vitest'
import { createHostFiles, type HostFiles } from '../../../test/kit/files/host-files.ts'
import { connectSystemd, type SystemdConnection } from '../../../test/kit/host/systemd-connection.ts'
import { createSeededRandom } from '../../../test/kit/virtual-clock.ts'
import { BusError } from '../dbus/errors.ts'
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

let systemd: SystemdConnection
let host: HostFiles
beforeEach(() => {
  systemd = connectSystemd()
  host = createHostFiles(systemd.clock)
})

type Properties = ReadonlyMap<string, unknown>

/** Carries out the unit: `plugin` has its properties, and says how it ends. */
function carriesOut(plugin: (properties: Properties) => { readonly exitCode: number }): void {
  systemd.answers('StartTransientUnit', ({ body }) => {
    const [unit, , properties] = body as [string, string, [string, Variant][]]
    const { exitCode } = plugin(new Map(properties.map(([name, { value }]) => [name, value])))
    const result = exitCode === 0 ? 'success' : 'exit-code'
    systemd.setUnit(unit, { activeState: 'inactive', result, execMainCode: 1, execMainStatus: exitCode })
    systemd.jobRemoved(unit)
    return ['/job/1']
  })
}

const folder = '/run/skyhook/credential-providers'
const files = (): string[] => host.list(folder)
const run = async (asked = request) => {
  const { connection, clock } = systemd
  const random = createSeededRandom(1)
  return await systemd.settled(runPlugin({ root: host.root, connection, clock, random }, asked, signal))
}
const write = (properties: Properties, property: string, text: string): void =>
  host.write(String(properties.get(property)), text, 0o600)
const read = (path: unknown): string => host.read(String(path))

test('a plugin reads and writes files of root alone, and none of their words is in the properties', async () => {
  let shown = ''
  carriesOut((properties) => {
    shown = JSON.stringify([...properties], (_, value) => (typeof value === 'bigint' ? String(value) : value))
    expect(host.modeOf(folder)).toBe(0o700)
    const modes = files().map((name) => host.modeOf(`${folder}/${name}`))
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
  expect(files()).toEqual([])
})

test('a plugin whose unit is gone at its end, without a reference, has succeeded if its job has', async () => {
  const endsAs = (jobResult: string) =>
    systemd.answers('StartTransientUnit', ({ body }) => {
      const [unit, , properties] = body as [string, string, [string, Variant][]]
      write(new Map(properties.map(([name, { value }]) => [name, value])), 'StandardOutputFileToAppend', 'the answer')
      systemd.jobRemoved(unit, jobResult)
      return ['/job/1']
    })
  endsAs('done')
  expect(await run()).toBe('the answer')
  endsAs('failed')
  await expect(run()).rejects.toThrow('it failed (job failed)')
})

test('a plugin that fails leaves what it said to root alone, until it succeeds', async () => {
  carriesOut((properties) => {
    write(properties, 'StandardOutputFileToAppend', 'half an answer with hunter2')
    write(properties, 'StandardErrorFileToAppend', 'no role for hunter2')
    return { exitCode: 7 }
  })
  const message = 'it ended with exit code 7; see /run/skyhook/credential-providers/own.err on the host'
  await expect(run()).rejects.toThrow(new RegExp(`^${message}$`))
  expect(files()).toEqual(['own.err'])
  expect(host.modeOf(`${folder}/own.err`)).toBe(0o600)
  expect(read(`${folder}/own.err`)).toBe('no role for hunter2')
  carriesOut(() => ({ exitCode: 0 }))
  await run()
  expect(files()).toEqual([])
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
  expect(files()).toEqual([])
})

test('a plugin does not run with a variable that the systemd of the host would drop', async () => {
  carriesOut(() => ({ exitCode: 0 }))
  systemd.setVersion('247.3-7+deb11u5')
  const withControl = { ...request, environment: { PEM: 'swordfish\r\n' } }
  const message = await run(withControl).catch(String)
  expect(message).toContain('environment: the value of PEM contains the control character U+000D')
  expect(message).not.toContain('swordfish')
  expect(systemd.calledMembers()).not.toContain('StartTransientUnit')
  expect(files()).toEqual([])
  systemd.setVersion('248')
  await run(withControl)
  expect(systemd.calledMembers()).toContain('StartTransientUnit')
})

test('a refusal of systemd is reported without the name of the run, so that the message is the same each time', async () => {
  systemd.answers('StartTransientUnit', ({ body }) => {
    throw new BusError('org.freedesktop.systemd1.LoadFailed', `Unit ${String(body[0])} is bad`)
  })
  await expect(run()).rejects.toThrow(/^systemd: Unit its unit is bad$/)
  expect(files()).toEqual([])
})

test('what the run of an agent that died has left is removed, and not what explains a failure', async () => {
  carriesOut(() => ({ exitCode: 0 }))
  await run()
  for (const name of ['own-1.run-out', 'own-1.run-env.0123456789ab.tmp', 'own.err'])
    host.write(`${folder}/${name}`, 'hunter2')
  await sweepPluginFiles(host.root)
  expect(files()).toEqual(['own.err'])
})
