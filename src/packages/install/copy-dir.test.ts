import {
  chmod,
  lstat,
  mkdir,
  readFile,
  readdir,
  readlink,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryHost, writeBelow } from '../../../test/kit/files/temporary-folder.ts'
import { onFailpoint } from '../../../test/kit/on-failpoint.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { collectCopyDirs, ensureCopyDir, type CopyDirInputs } from './copy-dir.ts'

const store = '/var/lib/skyhook/.agent/images/abc'
const dir = '/var/lib/skyhook/demo/tuning-1.0.0-u-1'

let folder: string
let host: HostRoot

beforeEach(async () => {
  ;({ folder, host } = temporaryHost())
  put(`${store}/config.json`, '{}')
  put(`${store}/skyhook_dir/run.sh`, '#!/bin/sh\n')
  put(`${store}/skyhook_dir/lib/common.sh`, 'x=1\n')
  await symlink('lib/common.sh', join(folder, store, 'skyhook_dir/link.sh'))
  put(`${store}/.hidden`, 'h')
})

const put = (path: string, content: string, mode?: number): void => writeBelow(folder, path, content, mode)
const read = async (path: string): Promise<string> => (await readFile(join(folder, dir, path))).toString()
const modeOf = async (path: string): Promise<string> =>
  ((await stat(join(folder, dir, path))).mode & 0o7777).toString(8)
const identity = async (path: string): Promise<bigint> => (await lstat(join(folder, dir, path), { bigint: true })).ino
const visible = async (path: string): Promise<string[]> =>
  (await readdir(join(folder, dir, path))).filter((name) => !name.startsWith('..')).sort()

async function ensure(change: Partial<CopyDirInputs> = {}): Promise<void> {
  const ensured = await ensureCopyDir({
    host,
    nowMs: 0,
    store,
    digest: 'sha256:1',
    copyDir: dir,
    stepPaths: ['run.sh'],
    configMap: {},
    nodeMetadata: { labels: '{}', annotations: '{}', packages: '{}' },
    ...change,
  })
  expect(ensured).toEqual({ outcome: 'ready' })
}

test('a key of the greatest length becomes a file, and changes', async () => {
  const key = 'k'.repeat(253)
  for (const content of ['one', 'two']) {
    await ensure({ configMap: { [key]: content } })
    expect(await read(`configmaps/${key}`)).toBe(content)
  }
})

describe('the content of the image', () => {
  test('the copy dir gets the whole package: hidden files, links as links, steps executable', async () => {
    put(`${store}/skyhook_dir/tool`, 'x', 0o4777)
    await ensure()
    expect(await read('skyhook_dir/run.sh')).toBe('#!/bin/sh\n')
    expect(await read('.hidden')).toBe('h')
    expect(await readlink(join(folder, dir, 'skyhook_dir/link.sh'))).toBe('lib/common.sh')
    expect(await modeOf('skyhook_dir/run.sh')).toBe('755')
    expect(await modeOf('skyhook_dir/lib/common.sh')).toBe('644')
    expect(await modeOf('skyhook_dir/tool')).toBe('755') // only root may write it; it runs as its caller
  })

  test('unchanged content is not written again', async () => {
    await ensure()
    const before = await Promise.all(
      ['skyhook_dir/run.sh', '.skyhookd.json', 'node-metadata/labels.json'].map(identity),
    )
    await ensure()
    expect(
      await Promise.all(['skyhook_dir/run.sh', '.skyhookd.json', 'node-metadata/labels.json'].map(identity)),
    ).toEqual(before)
  })

  test('the start of a stage restores files that a step changed and keeps those it added', async () => {
    await ensure()
    put(`${dir}/skyhook_dir/run.sh`, '#!/bin/bash\nexit 1\n', 0o600)
    await rm(join(folder, dir, 'skyhook_dir/lib'), { recursive: true })
    await symlink('/etc', join(folder, dir, 'skyhook_dir/lib'))
    put(`${dir}/downloaded.tar`, 'data')
    await ensure({ repair: false })
    expect(await read('skyhook_dir/run.sh')).toContain('exit 1')
    await ensure()
    expect(await read('skyhook_dir/run.sh')).toBe('#!/bin/sh\n')
    expect(await modeOf('skyhook_dir/run.sh')).toBe('755')
    expect(await read('skyhook_dir/lib/common.sh')).toBe('x=1\n')
    expect(await read('downloaded.tar')).toBe('data')
    await expect(lstat(join(folder, 'etc'))).rejects.toThrow('ENOENT') // nothing was written through the step's link
  })

  test('lost execute bits are restored', async () => {
    await ensure()
    await chmod(join(folder, dir, 'skyhook_dir/run.sh'), 0o640)
    await ensure()
    expect(await modeOf('skyhook_dir/run.sh')).toBe('755')
  })

  test('a running script keeps the file it started with', async () => {
    await ensure()
    const before = await identity('skyhook_dir/run.sh')
    put(`${store}/skyhook_dir/run.sh`, '#!/bin/sh\necho 2\n')
    await ensure({ digest: 'sha256:2' })
    expect(await read('skyhook_dir/run.sh')).toContain('echo 2')
    expect(await identity('skyhook_dir/run.sh')).not.toBe(before)
  })
})

describe('after a power cut', () => {
  test('the marker is written after all content is on disk', async () => {
    const syncedNames: string[] = []
    const unsubscribe = onFailpoint((name) => void syncedNames.push(name))
    await ensure({ configMap: { 'a.sh': 'one' } })
    unsubscribe()
    const entries = await readdir(join(folder, dir), { recursive: true, withFileTypes: true })
    const excludedFolder = /\/(node-metadata|\.\.data)$/ // not synced; a link to a listed folder
    const files = entries.filter((entry) => entry.isFile() && !excludedFolder.test(entry.parentPath)) // the marker, too
    expect(syncedNames.filter((name) => !name.endsWith('/'))).toHaveLength(files.length)
  })

  const repairs: readonly (readonly [what: string, change: () => Promise<unknown> | void])[] = [
    ['a file', () => put(`${dir}/skyhook_dir/run.sh`, 'changed')],
    ['a mode', () => chmod(join(folder, dir, 'skyhook_dir/run.sh'), 0o600)],
    ['a link', () => rm(join(folder, dir, 'skyhook_dir/link.sh'))],
    ['a folder', () => rm(join(folder, dir, 'skyhook_dir/lib'), { recursive: true })],
    ['the content of a key', () => writeFile(join(folder, dir, 'configmaps/a.sh'), 'through the link')],
    ['the link of a key', () => rm(join(folder, dir, 'configmaps/a.sh'))],
    ['an old key', () => symlink('..data/old', join(folder, dir, 'configmaps/old'))],
  ]
  test.each(repairs)('a repair of %s is on disk before the stage continues', async (_, change) => {
    const configMap = { 'a.sh': 'one' }
    let syncs = 0
    const watchedHost: HostRoot = { ...host, syncTree: async (...args) => (syncs++, await host.syncTree(...args)) }
    await ensure({ host: watchedHost, configMap })
    await ensure({ host: watchedHost, configMap })
    expect(syncs).toBe(1) // nothing was changed
    await change()
    await ensure({ host: watchedHost, configMap })
    expect(syncs).toBe(2)
  })

  test('a file that an older agent did not sync is repaired although its size and time match', async () => {
    await ensure()
    const { mtime } = await stat(join(folder, dir, 'skyhook_dir/run.sh'))
    put(`${dir}/skyhook_dir/run.sh`, '\0\0\0\0\0\0\0\0\0\0')
    await utimes(join(folder, dir, 'skyhook_dir/run.sh'), mtime, mtime)
    await ensure({ repair: false })
    expect(await read('skyhook_dir/run.sh')).not.toContain('#!') // the file was on disk, so this cannot happen
    const marker = JSON.parse(await read('.skyhookd.json')) as object
    put(`${dir}/.skyhookd.json`, JSON.stringify({ ...marker, v: 1, bootId: 'boot' }))
    await ensure({ repair: false })
    expect(await read('skyhook_dir/run.sh')).toBe('#!/bin/sh\n')
  })

  test.each(['', '{"v":1', 'null'])('a marker with the content %j does not count', async (content) => {
    await ensure({ configMap: { 'a.sh': 'one' } })
    put(`${dir}/.skyhookd.json`, content)
    await truncate(join(folder, dir, 'skyhook_dir/lib/common.sh'))
    put(`${dir}/configmaps/a.sh`, '')
    await ensure({ repair: false, configMap: { 'a.sh': 'one' } })
    expect(await read('skyhook_dir/lib/common.sh')).toBe('x=1\n')
    expect(await read('configmaps/a.sh')).toBe('one')
  })
})

describe('configuration', () => {
  const configMap = { 'apply.sh': 'echo 1', 'data.txt': 'd' }

  test('configuration is laid out as the kubelet mounts a ConfigMap', async () => {
    await ensure({ configMap })
    expect(await visible('configmaps')).toEqual(['apply.sh', 'data.txt'])
    expect(await read('configmaps/apply.sh')).toBe('echo 1')
    expect(await readlink(join(folder, dir, 'configmaps/apply.sh'))).toBe('..data/apply.sh')
    expect(await readlink(join(folder, dir, 'configmaps/..data'))).toMatch(/^\.\.\d{4}_\d\d_\d\d_\d\d_\d\d_\d\d\.\w+$/)
    expect(await modeOf('configmaps/apply.sh')).toBe('644')
  })

  test('configuration changes all at once, and removed keys vanish', async () => {
    await ensure({ configMap })
    const before = await readlink(join(folder, dir, 'configmaps/..data'))
    await ensure({ configMap: { 'apply.sh': 'echo 2', 'new.sh': 'n' }, repair: false })
    expect(await readlink(join(folder, dir, 'configmaps/..data'))).not.toBe(before)
    expect(await visible('configmaps')).toEqual(['apply.sh', 'new.sh'])
    expect(await read('configmaps/apply.sh')).toBe('echo 2')
    expect(await readdir(join(folder, dir, 'configmaps'))).not.toContain(before)
  })

  test('unchanged configuration is left alone', async () => {
    await ensure({ configMap })
    const before = await readlink(join(folder, dir, 'configmaps/..data'))
    await ensure({ configMap: { 'data.txt': 'd', 'apply.sh': 'echo 1' } })
    expect(await readlink(join(folder, dir, 'configmaps/..data'))).toBe(before)
  })

  test('files a step wrote beside the configuration stay, and an overwritten key is restored', async () => {
    await ensure({ configMap })
    put(`${dir}/configmaps/tuned_profile`, 'made by a step')
    await writeFile(join(folder, dir, 'configmaps/apply.sh'), 'through the link')
    await rm(join(folder, dir, 'configmaps/data.txt'))
    put(`${dir}/configmaps/data.txt`, 'instead of the link')
    await ensure({ configMap })
    expect(await read('configmaps/tuned_profile')).toBe('made by a step')
    expect(await read('configmaps/apply.sh')).toBe('echo 1')
    expect(await read('configmaps/data.txt')).toBe('d')
    await ensure({ configMap: { ...configMap, tuned_profile: 'now a key' } })
    expect(await read('configmaps/tuned_profile')).toBe('now a key')
  })

  describe('over files of the image', () => {
    beforeEach(async () => {
      put(`${store}/configmaps/default.conf`, 'of the image')
      put(`${store}/configmaps/data.txt`, 'of the image')
      put(`${store}/configmaps/profiles/one.conf`, 'of the image')
    })

    test('keys are laid over files of the image, and a key replaces a file of the same name', async () => {
      await ensure({ configMap })
      expect(await visible('configmaps')).toEqual(['apply.sh', 'data.txt', 'default.conf', 'profiles'])
      expect(await read('configmaps/default.conf')).toBe('of the image')
      expect(await read('configmaps/profiles/one.conf')).toBe('of the image')
      expect(await read('configmaps/data.txt')).toBe('d')
      expect(await readlink(join(folder, dir, 'configmaps/data.txt'))).toBe('..data/data.txt')
    })

    test.each([true, false])(
      'a file of the image comes back when its key is removed, with or without repair (%j)',
      async (repair) => {
        await ensure({ configMap })
        await ensure({ configMap: { 'apply.sh': 'echo 1' }, repair })
        expect(await read('configmaps/data.txt')).toBe('of the image')
        expect(await visible('configmaps')).toEqual(['apply.sh', 'data.txt', 'default.conf', 'profiles'])
        await ensure({ configMap: {}, repair })
        expect(await readdir(join(folder, dir, 'configmaps'))).toEqual(['data.txt', 'default.conf', 'profiles'])
      },
    )

    test('a key covers a folder of the image, which comes back', async () => {
      await ensure({ configMap: { profiles: 'a file' } })
      expect(await read('configmaps/profiles')).toBe('a file')
      await ensure({ configMap: {} })
      expect(await read('configmaps/profiles/one.conf')).toBe('of the image')
    })

    test('a copy dir of an agent that hid them has them with the next stage', async () => {
      await ensure({ configMap })
      for (const name of ['default.conf', 'profiles'])
        await rm(join(folder, dir, 'configmaps', name), { recursive: true })
      await ensure({ configMap })
      expect(await visible('configmaps')).toEqual(['apply.sh', 'data.txt', 'default.conf', 'profiles'])
    })

    test('nothing changes when all is right, and what a step changed is put back', async () => {
      await ensure({ configMap })
      const before = await Promise.all(['configmaps/data.txt', 'configmaps/default.conf'].map(identity))
      await ensure({ configMap })
      expect(await Promise.all(['configmaps/data.txt', 'configmaps/default.conf'].map(identity))).toEqual(before)
      put(`${dir}/configmaps/default.conf`, 'changed by a step')
      await ensure({ configMap })
      expect(await read('configmaps/default.conf')).toBe('of the image')
    })

    test('data folders that came into the image with a mounted ConfigMap do not replace those of the keys', async () => {
      put(`${store}/configmaps/..2024_05_10_10_00_00.123/old.sh`, 'o')
      await symlink('..2024_05_10_10_00_00.123', join(folder, store, 'configmaps/..data'))
      await ensure({ configMap })
      await ensure({ configMap })
      expect(await read('configmaps/apply.sh')).toBe('echo 1')
      expect(await visible('configmaps')).toEqual(['apply.sh', 'data.txt', 'default.conf', 'profiles'])
    })
  })

  test('configuration of the operator is taken over', async () => {
    put(`${dir}/configmaps/..2024_05_10_10_00_00.123/old.sh`, 'o')
    put(`${dir}/configmaps/..2024_05_11_10_00_00.123/old.sh`, 'o')
    await symlink('..2024_05_11_10_00_00.123', join(folder, dir, 'configmaps/..data'))
    await symlink('..data/old.sh', join(folder, dir, 'configmaps/old.sh'))
    await ensure({ configMap })
    expect(await visible('configmaps')).toEqual(['apply.sh', 'data.txt'])
    expect((await readdir(join(folder, dir, 'configmaps'))).filter((name) => name.startsWith('..')).length).toBe(2)
  })

  test.each(['', '.', '..', '..data', 'a/b', 'ä'])('the key %j cannot be a file', async (key) => {
    const ensured = await ensureCopyDir({
      host,
      nowMs: 0,
      store,
      digest: 'd',
      copyDir: dir,
      stepPaths: [],
      configMap: { [key]: '' },
      nodeMetadata: { labels: '', annotations: '', packages: '' },
    })
    expect(ensured).toEqual({
      outcome: 'invalid',
      problems: [`configMap key ${JSON.stringify(key)} cannot be the name of a file`],
    })
  })

  test('a configuration key may start with a dot', async () => {
    await ensure({ configMap: { '.env': 'A=1' } })
    expect(await read('configmaps/.env')).toBe('A=1')
  })
})

test('node metadata replaces the links of the operator by JSON files', async () => {
  put(`${dir}/node-metadata/..data/labels.json`, 'old')
  await symlink('..data/labels.json', join(folder, dir, 'node-metadata/labels.json'))
  put(`${store}/node-metadata/labels.json`, 'of the image')
  await ensure({ nodeMetadata: { labels: '{"a":"b"}', annotations: '{}', packages: '{"packages":{}}' } })
  expect(await read('node-metadata/labels.json')).toBe('{"a":"b"}')
  expect(await read('node-metadata/packages.json')).toBe('{"packages":{}}')
  expect((await lstat(join(folder, dir, 'node-metadata/labels.json'))).isSymbolicLink()).toBe(false)
})

test('a full disk is an error, and the next call completes the copy dir', async () => {
  let failures = 1
  const fullDiskHost: HostRoot = {
    ...host,
    writeFile: async (...args) => {
      if (failures-- > 0) throw Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' })
      await host.writeFile(...args)
    },
  }
  await expect(ensure({ host: fullDiskHost })).rejects.toThrow('ENOSPC')
  await ensure({ host: fullDiskHost })
  expect(await read('node-metadata/labels.json')).toBe('{}')
})

test('the copy dir may be behind a link of the host', async () => {
  await mkdir(join(folder, 'data'))
  await mkdir(join(folder, 'var/lib/skyhook/real'), { recursive: true })
  await symlink('/data', join(folder, 'var/lib/skyhook/demo'))
  await ensure()
  expect(await readdir(join(folder, 'data'))).toEqual(['tuning-1.0.0-u-1'])
})

test('unused copy dirs are collected, other folders stay', async () => {
  const uid = '8f1c1f6e-2f3b-4c6e-9a55-0123456789ab'
  const state = '/var/lib/skyhook/demo'
  for (const name of [
    'flags',
    'history',
    'interrupts',
    `a-1.0.0-${uid}-1`,
    `a-1.0.0-${uid}-2`,
    `b-1.0.0-rc-1-${uid}-2`,
    'notes-1-2',
  ])
    put(`${state}/${name}/x`, '')
  const folders = { copyDirRoot: '/var/lib/skyhook', agentLogRoot: '/var/log/skyhook' }
  const removed = await collectCopyDirs(host, folders, 'demo', (path) => path === `${state}/a-1.0.0-${uid}-2`)
  expect(removed.toSorted()).toEqual([`${state}/a-1.0.0-${uid}-1`, `${state}/b-1.0.0-rc-1-${uid}-2`])
  expect((await readdir(join(folder, state))).sort()).toEqual([
    `a-1.0.0-${uid}-2`,
    'flags',
    'history',
    'interrupts',
    'notes-1-2',
  ])
  expect(await collectCopyDirs(host, folders, 'never-seen', () => false)).toEqual([])
})
