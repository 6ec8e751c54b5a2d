import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { temporaryHost, writeBelow } from '../../../test/kit/files/temporary-folder.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { installRootDir, uninstallRootDir } from './root-dir.ts'
import { rootDirRecordFile } from './root-dir-record.ts'

const store = '/store/abc'
const record = rootDirRecordFile('demo', 'tuning')

let folder: string
let host: HostRoot
beforeEach(() => ({ folder, host } = temporaryHost()))

const put = (path: string, content: string): void => writeBelow(folder, path, content)
const below = (path: string): string[] => readdirSync(join(folder, path)).sort()

test('a link and a file of root_dir leave what the host has under their names with .tmp alone', async () => {
  put('srv/data.tmp/precious', 'of the host')
  put('srv/file.tmp', 'of the host')
  mkdirSync(join(folder, store, 'root_dir/srv'), { recursive: true })
  symlinkSync('/data', join(folder, store, 'root_dir/srv/data'))
  put(`${store}/root_dir/srv/file`, 'of the package')
  await installRootDir(host, store, record)
  await uninstallRootDir(host, record)
  expect(below('srv')).toEqual(['data.tmp', 'file.tmp'])
  expect(readFileSync(join(folder, 'srv/data.tmp/precious'), 'utf8')).toBe('of the host')
})

test('a folder that appears where root_dir has a link is not removed for it', async () => {
  put('srv/data/precious', 'of the host')
  await expect(host.replaceLink('/srv/data', '/data')).rejects.toThrow('EISDIR')
  expect(below('srv/data')).toEqual(['precious'])
  expect(below('srv')).toEqual(['data'])
})
