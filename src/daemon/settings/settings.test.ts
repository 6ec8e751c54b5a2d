import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { parseTaint, readSettings, type Settings } from './settings.ts'

const env = { NODE_NAME: 'n', POD_NAME: 'p', POD_NAMESPACE: 'ns' }

let folder: string
let path: string
beforeEach(() => {
  folder = temporaryFolder()
  path = join(folder, 'settings.json')
})

function read(file: unknown = {}, change: NodeJS.ProcessEnv = {}): Settings {
  writeFileSync(path, JSON.stringify(file))
  return readSettings({ ...env, ...change }, path)
}

test('an empty file gives the defaults', () => {
  expect(read()).toEqual({
    nodeName: 'n',
    podName: 'p',
    namespace: 'ns',
    fieldValues: { nodeName: 'n', namespace: 'ns', hostIp: '127.0.0.1' },
    hostRoot: '/host',
    copyDirRoot: '/var/lib/skyhook',
    agentLogRoot: '/var/log/skyhook',
    stepLogLimitBytes: 16 * 1024 ** 2,
    runtimeRequiredTaint: { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' },
    logLevel: 'info',
    metrics: { enabled: true, port: 9475 },
    health: { port: 336 },
    registries: [],
    imagePullSecrets: [],
    proxy: {},
    drain: { skipNamespaces: ['kube-system'], allowDelete: false },
    reapplyOnReboot: false,
    ignoreNodeWright: false,
    defaultBudget: {},
    estimatedNodeCount: 0,
  })
})

test('the file and the environment override the defaults', () => {
  const file = {
    copyDirRoot: '/data/skyhook/',
    runtimeRequiredTaint: 'k:NoExecute',
    metrics: { enabled: false, port: 1 },
    health: { port: 2 },
    proxy: { httpsProxy: 'http://proxy', noProxy: '' },
    drain: { skipNamespaces: [], allowDelete: true },
    reapplyOnReboot: true,
    ignoreNodeWright: true,
    defaults: { interruptionBudget: { percent: 5, maxCount: 20 } },
    estimatedNodeCount: 1_000,
  }
  expect(read(file, { HOST_IP: '10.0.0.1', SKYHOOKD_HOST_ROOT: '/' })).toMatchObject({
    fieldValues: { hostIp: '10.0.0.1' },
    hostRoot: '/',
    copyDirRoot: '/data/skyhook',
    runtimeRequiredTaint: { key: 'k', effect: 'NoExecute' },
    metrics: { enabled: false, port: 1 },
    health: { port: 2 },
    proxy: { httpsProxy: 'http://proxy' },
    drain: { skipNamespaces: [], allowDelete: true },
    reapplyOnReboot: true,
    ignoreNodeWright: true,
    defaultBudget: { percent: 5, maxCount: 20 },
    estimatedNodeCount: 1_000,
  })
})

test.each(['NODE_NAME', 'POD_NAME', 'POD_NAMESPACE'])('a missing %s is named', (name) => {
  expect(() => read({}, { [name]: undefined })).toThrow(`the environment variable ${name} is not set`)
})

test.each([
  [{ copyDirRoot: 5 }, 'copyDirRoot must be a string'],
  [{ copyDirRoot: 'var' }, 'copyDirRoot must be an absolute path'],
  [{ agentLogRoot: './log' }, 'agentLogRoot must be an absolute path'],
  [{ stepLogLimit: '100Ki' }, 'stepLogLimit must be a size of 1Mi or more'],
  [{ runtimeRequiredTaint: 'k=v' }, 'not of the form key=value:effect'],
  [
    { defaults: { interruptionBudget: { count: 1, percent: 5 } } },
    'settings.json: defaults.interruptionBudget has count',
  ],
  [[], 'is not a JSON object'],
])('%j is refused with the name of the setting', (file, message) => {
  expect(() => read(file)).toThrow(message)
})

test('a file that is missing is named with its origin', () => {
  expect(() => readSettings(env, join(folder, 'none'))).toThrow('the chart mounts it from the ConfigMap')
})

describe('a folder with a file for each setting', () => {
  /** As the kubelet mounts a ConfigMap. */
  function readMounted(data: Readonly<Record<string, string>>): Settings {
    const mount = join(folder, 'mount')
    mkdirSync(join(mount, '..1'), { recursive: true })
    symlinkSync('..1', join(mount, '..data'))
    for (const [key, text] of Object.entries(data)) {
      writeFileSync(join(mount, '..1', key), text)
      symlinkSync(join('..data', key), join(mount, key))
    }
    return readSettings(env, mount)
  }

  test('texts are taken as they are, and everything else is JSON', () => {
    const data = { stepLogLimit: '1048576', 'drain.allowDelete': 'true', imagePullSecrets: '["login"]' }
    expect(readMounted(data)).toMatchObject({
      stepLogLimitBytes: 2 ** 20,
      drain: { skipNamespaces: ['kube-system'], allowDelete: true },
      imagePullSecrets: ['login'],
    })
  })

  test('a value that is not JSON is refused with the name of the setting', () => {
    expect(() => readMounted({ imagePullSecrets: 'login' })).toThrow(/mount: imagePullSecrets must be JSON: /)
  })

  test('a folder without any setting is refused, with where settings come from', () => {
    expect(() => readMounted({ loglevel: 'debug' })).toThrow(/has no settings: the chart mounts it from the ConfigMap/)
  })
})

describe('a taint', () => {
  test.each([
    ['key=value:NoSchedule', { key: 'key', value: 'value', effect: 'NoSchedule' }],
    ['key:NoExecute', { key: 'key', effect: 'NoExecute' }],
    ['key=:PreferNoSchedule', { key: 'key', effect: 'PreferNoSchedule' }],
  ])('%s is read', (text, taint) => {
    expect(parseTaint(text)).toEqual(taint)
  })

  test.each(['key', 'key=value', ':NoSchedule', 'key=value:Never'])('%s is refused', (text) => {
    expect(() => parseTaint(text)).toThrow(text)
  })
})
