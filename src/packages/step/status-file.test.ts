import { mkdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { temporaryHost } from '../../../test/kit/files/temporary-folder.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { packagesWithStatus, readPackageStatus, statusSignature } from './status-file.ts'

const folders = { copyDirRoot: '/var/lib/skyhook', agentLogRoot: '/var/log/skyhook' }
const status = { v: 1, package: 'tool', bootId: 'boot', message: 'well', requests: { run: false, interrupt: true } }
let folder: string
let host: HostRoot
let file: string
beforeEach(async () => {
  ;({ folder, host } = temporaryHost())
  await mkdir(join(folder, 'var/lib/skyhook/s/status'), { recursive: true })
  file = join(folder, 'var/lib/skyhook/s/status/tool.json')
})
const read = async (name = 'tool') => await readPackageStatus(host, folders, 's', name)

test('a status file is read, and its signature changes when it is written again', async () => {
  expect(await statusSignature(host, folders, 's', 'tool')).toBeUndefined()
  await writeFile(file, JSON.stringify(status))
  const before = await statusSignature(host, folders, 's', 'tool')
  expect(await read()).toEqual({
    state: 'read',
    status: { bootId: 'boot', message: 'well', requests: status.requests },
    writtenAtMs: (await stat(file)).mtimeMs,
  })
  await writeFile(file, JSON.stringify({ ...status, message: 'better' }))
  expect(await statusSignature(host, folders, 's', 'tool')).not.toBe(before)
  await writeFile(join(folder, 'var/lib/skyhook/s/status/other.json.new'), '')
  expect(await packagesWithStatus(host, folders, 's')).toEqual(['tool'])
  expect(await packagesWithStatus(host, folders, 't')).toEqual([])
})

test.each<[string, () => Promise<void>, string]>([
  ['is missing', async () => undefined, 'is missing; the package has to write it in config'],
  ['has no end', async () => await writeFile(file, ' '.repeat(70_000)), 'has 70000 bytes, more than 65536'],
  ['is not JSON', async () => await writeFile(file, 'well'), 'cannot be used: not valid JSON'],
  ['is a folder', async () => await mkdir(file), 'is not a regular file'],
  ['leads nowhere', async () => await symlink('tool.json', file), 'cannot be read: ELOOP'],
  [
    'is not below a folder',
    async () => {
      await rm(join(folder, 'var/lib/skyhook/s/status'), { recursive: true })
      await writeFile(join(folder, 'var/lib/skyhook/s/status'), '')
    },
    'cannot be read: ENOTDIR',
  ],
])('a status file that %s is reported with its path', async (_, prepare, why) => {
  await prepare()
  expect(await read()).toEqual({
    state: 'unusable',
    why: expect.stringContaining(`/var/lib/skyhook/s/status/tool.json ${why}`) as string,
  })
})

test('a status file is read only inside the status folder of the host', async () => {
  await writeFile(join(folder, 'outside.json'), JSON.stringify(status))
  await symlink(join(folder, 'outside.json'), file)
  // as the host would follow it
  expect(await read()).toMatchObject({ why: expect.stringContaining('is missing') as string })
  expect(await read('../../../../../outside')).toMatchObject({
    why: expect.stringContaining('cannot be a file name') as string,
  })
})
