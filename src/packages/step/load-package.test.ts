import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { temporaryHost, writeBelow } from '../../../test/kit/files/temporary-folder.ts'
import { systemRandom } from '../../daemon/platform/system-clock.ts'
import { createHostRoot, type HostRoot } from '../../host/fs/host-root.ts'
import {
  executableKind,
  loadPackage,
  missingConfigFiles,
  missingInterpreter,
  stepPaths,
  whyNotExecutable,
} from './load-package.ts'

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

describe('what the kernel would do with a file', () => {
  test.each<[string, string, object]>([
    ['a shell script', '#!/bin/bash\necho', { kind: 'script', interpreter: '/bin/bash', argument: '' }],
    ['blanks and an argument', '#! /bin/sh  -e x \n', { kind: 'script', interpreter: '/bin/sh', argument: '-e x' }],
    ['a first line without end', '#!/bin/sh', { kind: 'script', interpreter: '/bin/sh', argument: '' }],
    ['an ELF file', '\u007fELF\u0002', { kind: 'elf' }],
  ])('the first bytes decide how the kernel executes a file: %s', (_, content, kind) => {
    expect(executableKind(Buffer.from(content, 'latin1'))).toEqual(kind)
  })

  test.each<[string, string, string]>([
    ['no shebang', 'echo hello', 'starts with neither #! nor an ELF header'],
    ['an empty file', '', 'is empty'],
    ['a byte order mark', '\u00ef\u00bb\u00bf#!/bin/sh\n', 'after a byte order mark'],
    ['Windows line ends', '#!/bin/bash\r\necho', 'Windows line endings'],
    ['a relative interpreter', '#!bash\n', 'interpreter "bash", which is not an absolute path'],
    ['no interpreter', '#!\n', 'interpreter ""'],
    ['an endless first line', `#!/${'x'.repeat(300)}`, 'longer than 256 bytes'],
  ])('the kernel cannot execute a file with these first bytes: %s', (_, content, why) => {
    const kind = executableKind(Buffer.from(content, 'latin1').subarray(0, 256))
    expect(kind.kind === 'not-executable' && kind.why).toContain(why)
  })
})

describe('whether the host has the interpreter', () => {
  let folder: string
  let host: HostRoot
  const put = async (path: string, mode: number): Promise<void> => {
    await mkdir(dirname(join(folder, path)), { recursive: true })
    await writeFile(join(folder, path), '')
    await chmod(join(folder, path), mode)
  }
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'interpreter-'))
    host = createHostRoot(folder, systemRandom)
    await put('usr/bin/bash', 0o755)
    await put('usr/bin/env', 0o755)
    await put('usr/bin/notes', 0o644)
    await put('opt/bin/python3', 0o755)
    await mkdir(join(folder, 'usr/bin/folder'))
    await symlink('/usr/bin', join(folder, 'bin'))
  })
  afterAll(async () => {
    await rm(folder, { recursive: true })
  })

  test.each<[string, string | undefined]>([
    ['#!/bin/bash', undefined], // through the host's link, inside the host
    ['#!/bin/zsh', 'has the interpreter /bin/zsh, which is not on this host'],
    ['#!/usr/bin/notes', 'has the interpreter /usr/bin/notes, which is not on this host'],
    ['#!/usr/bin/folder', 'has the interpreter /usr/bin/folder'],
    ['#!/usr/bin/bash/x', 'has the interpreter /usr/bin/bash/x'],
    ['#!/usr/bin/env bash', undefined],
    ['#!/usr/bin/env python3', undefined],
    ['#!/usr/bin/env ruby', 'asks env for ruby, which is not on this host (PATH /usr/bin:/opt/bin)'],
    ['#!/usr/bin/env /opt/bin/python3', undefined],
    ['#!/usr/bin/env /opt/bin/python2', 'asks env for /opt/bin/python2, which is not on this host'],
    ['#!/usr/bin/env bash -e', 'asks env for a program called "bash -e"; several words need env -S'],
    ['#!/usr/bin/env -S bash -e', undefined],
    ['#!/usr/bin/env -S A=b ruby -w', 'asks env for ruby'],
    ['#!/usr/bin/env --split-string=ruby -w', 'asks env for ruby'],
    ['#!/usr/bin/env -i', undefined], // options that are not parsed
    ['#!/usr/bin/env -S -i bash', undefined],
    ['\u007fELF', undefined],
  ])('the interpreter is looked for on the host: %s', async (head, why) => {
    const missing = await missingInterpreter(host, executableKind(Buffer.from(head, 'latin1')), '/usr/bin:/opt/bin')
    if (why === undefined) expect(missing).toBeUndefined()
    else expect(missing).toContain(why)
  })
})
