import { chmod, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryHost, writeBelow } from '../../../test/kit/files/temporary-folder.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { loadPackage, missingConfigFiles, stepPaths, whyNotExecutable } from './load-package.ts'

const store = '/var/lib/skyhook/.agent/images/abc'
const step = {
  name: 's',
  path: 'run.sh',
  arguments: [],
  returncodes: [0],
  on_host: true,
  idempotence: false,
  upgrade_step: false,
}
const document = (paths: readonly string[], change: object = {}): string =>
  JSON.stringify({
    schema_version: 'v1',
    package_name: 'probe',
    package_version: '1.0.0',
    expected_config_files: [],
    modes: { apply: paths.map((path) => ({ ...step, path })), 'apply-check': [step] },
    ...change,
  })

let folder: string
let host: HostRoot

beforeEach(async () => {
  ;({ folder, host } = temporaryHost())
  put('skyhook_dir/run.sh', '#!/bin/sh\n')
})

const put = (path: string, content: string): void => writeBelow(join(folder, store), path, content)
const messageOf = async (): Promise<string> => {
  const loaded = await loadPackage(host, store)
  return loaded.outcome === 'invalid' ? loaded.message : loaded.outcome
}

test('a package with all its files is ready, with a hash of each', async () => {
  put('config.json', document(['run.sh', 'sub/b', './run.sh']))
  put('sub/b', '')
  put('skyhook_dir/sub/b', '\u007fELF')
  const loaded = await loadPackage(host, store)
  expect(loaded).toMatchObject({ outcome: 'ready', config: { packageName: 'probe' } })
  expect(loaded.outcome === 'ready' && Object.fromEntries(loaded.contentHashes)).toEqual({
    'run.sh': 'a8076d3d28d21e02012b20eaf7dbf75409a6277134439025f282e368e3305abf',
    './run.sh': 'a8076d3d28d21e02012b20eaf7dbf75409a6277134439025f282e368e3305abf',
    'sub/b': expect.stringMatching(/^[0-9a-f]{64}$/),
  })
})

test('each step file has the pointer of its first use', () => {
  const config = { packageName: 'p', packageVersion: '1.0.0', expectedConfigFiles: [], modes: {} }
  const use = (path: string) => ({
    ...step,
    path,
    onHost: true,
    env: {},
    idempotence: 'step' as const,
    upgradeStep: false,
  })
  expect([...stepPaths({ ...config, modes: { apply: [use('a')], 'apply-check': [use('b'), use('a')] } })]).toEqual([
    ['a', '/modes/apply/0/path'],
    ['b', '/modes/apply-check/0/path'],
  ])
})

describe('config.json', () => {
  test('a missing config.json is invalid', async () => {
    expect(await messageOf()).toBe('config.json: is missing: the image has no /skyhook-package/config.json')
  })

  test('a config.json that is a folder or a link is invalid', async () => {
    await mkdir(join(folder, store, 'config.json'))
    expect(await messageOf()).toBe('config.json: is not a regular file')
    await rm(join(folder, store, 'config.json'), { recursive: true })
    await symlink('/etc/passwd', join(folder, store, 'config.json'))
    expect(await messageOf()).toBe('config.json: is not a regular file')
  })

  test('a config.json that is not JSON is invalid', async () => {
    put('config.json', '{')
    expect(await messageOf()).toContain('config.json: is not JSON:')
  })

  test('an oversized config.json is invalid', async () => {
    put('config.json', ' '.repeat((4 << 20) + 1))
    expect(await messageOf()).toContain('at most 4194304 are read')
  })
})

describe('a step’s file', () => {
  test.each<[string, string, () => Promise<void> | void]>([
    ['is missing', 'config.json /modes/apply/0/path = "x.sh": is not in skyhook_dir/', () => {}],
    ['is a folder', '= "x.sh": is not a regular file', () => put('skyhook_dir/x.sh/y', '')],
    ['has no shebang', '= "x.sh": starts with neither #! nor an ELF header', () => put('skyhook_dir/x.sh', 'echo')],
    ['is empty', '= "x.sh": is empty', () => put('skyhook_dir/x.sh', '')],
    ['is a link to nothing', 'is not in skyhook_dir/', () => symlink('gone', join(folder, store, 'skyhook_dir/x.sh'))],
    [
      'leads out by an absolute link',
      'leads out of the package',
      () => symlink('/bin/sh', join(folder, store, 'skyhook_dir/x.sh')),
    ],
    [
      'leads out by a relative link',
      'leads out of the package',
      () => symlink(`${'../'.repeat(20)}bin/sh`, join(folder, store, 'skyhook_dir/x.sh')),
    ],
  ])('a step file that %s is invalid', async (_, message, make) => {
    await make()
    put('config.json', document(['x.sh']))
    expect(await messageOf()).toContain(message)
  })

  test('a step file may be a link inside the package', async () => {
    put('common/x.sh', '#!/bin/sh\n')
    await symlink('../common/x.sh', join(folder, store, 'skyhook_dir/x.sh'))
    put('config.json', document(['x.sh']))
    expect(await messageOf()).toBe('ready')
  })

  test('a step file below another file is missing', async () => {
    put('config.json', document(['run.sh/x']))
    expect(await messageOf()).toContain('is not in skyhook_dir/')
  })
})

test('all problems are reported, as many as fit into an Event', async () => {
  const paths = Array.from({ length: 40 }, (_, index) => `missing-${index}.sh`)
  put('config.json', document(paths))
  const loaded = await loadPackage(host, store)
  expect(loaded.outcome === 'invalid' && loaded.problems.length).toBe(40)
  const message = await messageOf()
  expect(message.length).toBeLessThan(1000)
  expect(message).toMatch(/missing-0\.sh".*missing-1\.sh".*; and \d+ more$/)
})

describe('right before the unit starts', () => {
  const script = '/opt/run.sh'
  beforeEach(async () => {
    await mkdir(join(folder, 'opt'))
    await mkdir(join(folder, 'bin'))
    await writeFile(join(folder, 'bin/sh'), '')
    await chmod(join(folder, 'bin/sh'), 0o755)
  })

  test.each<[string, string | undefined]>([
    ['#!/bin/sh\n', undefined],
    ['#!/bin/ksh\n', '/opt/run.sh has the interpreter /bin/ksh, which is not on this host'],
    ['echo\n', '/opt/run.sh starts with neither #! nor an ELF header'],
  ])('a script with the content %j is checked right before its unit starts', async (content, why) => {
    await writeFile(join(folder, script), content)
    const answer = await whyNotExecutable(host, script, '/bin')
    if (why === undefined) expect(answer).toBeUndefined()
    else expect(answer).toContain(why)
  })

  test('a script that is missing or not a file is reported right before its unit starts', async () => {
    expect(await whyNotExecutable(host, script, '/bin')).toBe('/opt/run.sh no longer exists')
    await mkdir(join(folder, script))
    expect(await whyNotExecutable(host, script, '/bin')).toBe('/opt/run.sh is not a regular file')
  })
})

test('expected configuration is required in every mode but uninstall', async () => {
  put('configmaps/present', '')
  const config = {
    packageName: 'p',
    packageVersion: '1.0.0',
    expectedConfigFiles: ['gone', 'present', 'gone'],
    modes: {},
  }
  expect(await missingConfigFiles(host, store, config, 'config-check')).toEqual(['gone'])
  expect(await missingConfigFiles(host, store, config, 'uninstall')).toEqual([])
  expect(await missingConfigFiles(host, store, config, 'uninstall-check')).toEqual([])
})

test('a configuration file that the package brings along is not expected from the spec', async () => {
  put('configmaps/own.conf', '')
  put('config.json', document(['run.sh'], { expected_config_files: ['own.conf', 'theirs.conf'] }))
  expect(await loadPackage(host, store)).toMatchObject({ config: { expectedConfigFiles: ['theirs.conf'] } })
})

test('the configuration files that a package ships itself are known', async () => {
  put('config.json', document(['run.sh']))
  expect(await loadPackage(host, store)).toMatchObject({ outcome: 'ready', ownConfigFiles: [] })
  put('configmaps/defaults.yaml', 'a: b')
  expect(await loadPackage(host, store)).toMatchObject({ outcome: 'ready', ownConfigFiles: ['defaults.yaml'] })
})
