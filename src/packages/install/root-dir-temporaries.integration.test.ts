import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryHost, writeBelow } from '../../../test/kit/files/temporary-folder.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { installRootDir, sweepRootDirs, uninstallRootDir } from './root-dir.ts'
import { rootDirRecordFile } from './root-dir-record.ts'

const store = '/store/abc'
const record = rootDirRecordFile('demo', 'tuning')

let folder: string
let host: HostRoot
beforeEach(() => ({ folder, host } = temporaryHost()))

const put = (path: string, content: string): void => writeBelow(folder, path, content)
const below = (path: string): string[] => readdirSync(join(folder, path)).sort()

describe('after an agent was killed in the middle of a copy', () => {
  /** Copies in another process, which is killed when the first file is on disk but not yet renamed. */
  async function installAndDie(): Promise<void> {
    const program = `
      import { installRootDir } from ${JSON.stringify(join(import.meta.dirname, 'root-dir.ts'))}
      import { createHostRoot } from ${JSON.stringify(join(import.meta.dirname, '../../host/fs/host-root.ts'))}
      import { randomBytes } from 'node:crypto'
      const random = { number: Math.random, hex: (bytes) => randomBytes(bytes).toString('hex') }
      globalThis[Symbol.for('skyhookd.failpoint')] = (name) => {
        if (name === 'fsync:host') process.kill(process.pid, 'SIGKILL')
      }
      await installRootDir(createHostRoot(${JSON.stringify(folder)}, random), ${JSON.stringify(store)}, ${JSON.stringify(record)})`
    const signal = await new Promise((resolve) =>
      execFile(process.execPath, ['--input-type=module', '-e', program], (error) => resolve(error?.signal)),
    )
    expect(signal).toBe('SIGKILL')
    expect(below('etc').filter((name) => name.endsWith('.tmp'))).toHaveLength(1)
  }

  beforeEach(async () => {
    mkdirSync(join(folder, 'etc'))
    put(`${store}/root_dir/etc/a.conf`, 'a')
    symlinkSync('a.conf', join(folder, store, 'root_dir/etc/b.conf'))
    await installAndDie()
    put('etc/of-the-host.0123456789ab.tmp', 'not ours')
  })

  test.each<[string, () => Promise<unknown>, readonly string[]]>([
    ['the next start', async () => await sweepRootDirs(host), []],
    ['the next copy', async () => await installRootDir(host, store, record), ['a.conf', 'b.conf']],
    ['the uninstall', async () => await uninstallRootDir(host, record), []],
  ])('%s removes its temporary file and no other', async (_, recover, files) => {
    await recover()
    expect(below('etc')).toEqual([...files, 'of-the-host.0123456789ab.tmp'])
  })

  test('the next start removes a temporary link, too', async () => {
    const { temporaryToken } = JSON.parse(readFileSync(join(folder, record), 'utf8')) as { temporaryToken: string }
    symlinkSync('a.conf', join(folder, `etc/b.conf.${temporaryToken}.tmp`))
    await sweepRootDirs(host)
    expect(below('etc')).toEqual(['of-the-host.0123456789ab.tmp'])
  })

  test('the next start removes the temporary file of a record', async () => {
    put(`${record}.0123456789ab.tmp`, '{')
    await sweepRootDirs(host)
    expect(existsSync(join(folder, record))).toBe(true)
    expect(below(dirname(record))).toEqual(['tuning.json'])
  })
})
