import { chmod, lstat, mkdir, readFile, readdir, readlink, rm, stat, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder, temporaryHost, writeBelow } from '../../../test/kit/files/temporary-folder.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { installRootDir, uninstallRootDir } from './root-dir.ts'
import { rootDirRecordFile } from './root-dir-record.ts'

const store = '/store/abc'
const record = rootDirRecordFile('demo', 'tuning')

let folder: string
let host: HostRoot

beforeEach(() => ({ folder, host } = temporaryHost()))

const put = (path: string, content: string, mode?: number): void => writeBelow(folder, path, content, mode)
const putInPackage = (path: string, content: string, mode?: number): void =>
  put(`${store}/root_dir/${path}`, content, mode)
const read = async (path: string): Promise<string> => (await readFile(join(folder, path))).toString()
const modeOf = async (path: string): Promise<string> => ((await stat(join(folder, path))).mode & 0o7777).toString(8)
const exists = async (path: string): Promise<boolean> =>
  (await lstat(join(folder, path)).catch(() => undefined)) !== undefined
const install = () => installRootDir(host, store, record)

test('a package without root_dir installs and uninstalls nothing', async () => {
  expect(await install()).toEqual({ outcome: 'absent' })
  expect(await uninstallRootDir(host, record)).toEqual([])
})

describe('installing', () => {
  test('installing writes files, folders and links with their modes', async () => {
    putInPackage('etc/demo.d/a.conf', 'a', 0o600)
    putInPackage('usr/local/bin/tool', 'x', 0o755)
    await symlink('tool', join(folder, store, 'root_dir/usr/local/bin/alias'))
    await chmod(join(folder, store, 'root_dir/etc/demo.d'), 0o750)
    expect(await install()).toEqual({ outcome: 'copied', files: 3, disputes: [] })
    expect(await read('etc/demo.d/a.conf')).toBe('a')
    expect(await modeOf('etc/demo.d/a.conf')).toBe('600')
    expect(await modeOf('etc/demo.d')).toBe('750')
    expect(await modeOf('usr/local/bin/tool')).toBe('755')
    expect(await readlink(join(folder, 'usr/local/bin/alias'))).toBe('tool')
  })

  test('installing keeps the mode of existing folders, the root included', async () => {
    await mkdir(join(folder, 'tmp'))
    await chmod(join(folder, 'tmp'), 0o1777)
    await chmod(folder, 0o755)
    putInPackage('tmp/x', 'x')
    await chmod(join(folder, store, 'root_dir'), 0o700)
    await install()
    expect(await modeOf('tmp')).toBe('1777')
    expect(await modeOf('')).toBe('755')
  })

  test('the same content is installed once, and later edits stay', async () => {
    putInPackage('etc/a.conf', 'a')
    await install()
    put('etc/a.conf', 'by hand')
    expect(await install()).toEqual({ outcome: 'unchanged' })
    expect(await read('etc/a.conf')).toBe('by hand')
    putInPackage('etc/a.conf', 'b')
    expect(await install()).toMatchObject({ outcome: 'copied' })
    expect(await read('etc/a.conf')).toBe('b')
  })

  test('installing follows links of the host inside the host only', async () => {
    const outside = temporaryFolder()
    await mkdir(join(folder, 'usr/bin'), { recursive: true })
    await symlink('usr/bin', join(folder, 'bin'))
    await symlink(outside, join(folder, 'abs'))
    await symlink('../../../../../../../../../../etc', join(folder, 'up'))
    await symlink('/run/stub.conf', join(folder, 'resolv.conf'))
    for (const path of ['bin/tool', 'abs/x', 'up/y', 'resolv.conf']) putInPackage(path, path)
    await install()
    expect(await read('usr/bin/tool')).toBe('bin/tool')
    expect(await readdir(outside)).toEqual([])
    expect(await read(`${outside}/x`)).toBe('abs/x') // the same path, inside
    expect(await read('etc/y')).toBe('up/y')
    expect(await readlink(join(folder, 'resolv.conf'))).toBe('/run/stub.conf')
    expect(await read('run/stub.conf')).toBe('resolv.conf')
  })

  test('a conflict between file and folder is refused before anything is written', async () => {
    putInPackage('a', 'a')
    putInPackage('etc', 'file')
    putInPackage('var/x/y', 'y')
    put('etc/passwd', '')
    put('var/x', 'file')
    expect(await install()).toEqual({
      outcome: 'conflict',
      problems: [
        'root_dir/etc is a file, but the host has a folder there',
        'root_dir/var/x is a folder, but the host has a file there',
      ],
    })
    expect(await exists('a')).toBe(false)
    expect(await exists(record)).toBe(false)
  })
})

describe('uninstalling', () => {
  test('uninstalling removes unchanged files and the folders made for them', async () => {
    await mkdir(join(folder, 'etc'))
    putInPackage('etc/demo.d/sub/a.conf', 'a')
    putInPackage('opt/x', 'x')
    await symlink('a.conf', join(folder, store, 'root_dir/etc/demo.d/sub/b.conf'))
    await install()
    expect(await uninstallRootDir(host, record)).toEqual([])
    expect(await readdir(join(folder, 'etc'))).toEqual([])
    expect(await exists('opt')).toBe(false)
    expect(await exists(record)).toBe(false)
  })

  test('uninstalling keeps changed files, files that were there before, and folders in use', async () => {
    put('etc/motd', 'of the host')
    putInPackage('etc/motd', 'of the package')
    putInPackage('opt/demo/changed', 'a')
    putInPackage('opt/demo/linked', 'a')
    putInPackage('opt/demo/gone', 'a')
    putInPackage('opt/demo/ours', 'a')
    await install()
    put('opt/demo/changed', 'b')
    await rm(join(folder, 'opt/demo/linked'))
    await symlink('changed', join(folder, 'opt/demo/linked'))
    await rm(join(folder, 'opt/demo/gone'))
    put('opt/demo/foreign', 'f')
    expect(await uninstallRootDir(host, record)).toEqual([
      { path: '/etc/motd', why: 'was there before' },
      { path: '/opt/demo/changed', why: 'changed' },
      { path: '/opt/demo/linked', why: 'changed' },
    ])
    expect((await readdir(join(folder, 'opt/demo'))).sort()).toEqual(['changed', 'foreign', 'linked'])
    expect(await read('etc/motd')).toBe('of the package')
  })

  test('uninstalling removes the files of earlier versions', async () => {
    putInPackage('opt/one', '1')
    await install()
    await rm(join(folder, store, 'root_dir/opt/one'))
    putInPackage('opt/two', '2')
    await install()
    expect(await read('opt/one')).toBe('1')
    await uninstallRootDir(host, record)
    expect(await exists('opt')).toBe(false)
  })

  test('uninstalling copes with a folder that was replaced by a file', async () => {
    putInPackage('opt/demo/a', 'a')
    await install()
    await rm(join(folder, 'opt/demo'), { recursive: true })
    put('opt/demo', 'file')
    expect(await uninstallRootDir(host, record)).toEqual([])
    expect(await read('opt/demo')).toBe('file')
  })
})

describe('a file of several packages', () => {
  const otherStore = '/store/def'
  const otherRecord = rootDirRecordFile('other', 'tuning')
  const installOther = () => installRootDir(host, otherStore, otherRecord)
  const uninstall = () => uninstallRootDir(host, record)
  const uninstallOther = () => uninstallRootDir(host, otherRecord)
  const ofBoth = (path: string, content = 'of both'): void => {
    put(`${store}/root_dir/${path}`, content)
    put(`${otherStore}/root_dir/${path}`, content)
  }

  test.each([
    ['installed it first', uninstall, uninstallOther],
    ['installed it last', uninstallOther, uninstall],
  ])('a file stays when the package that %s is uninstalled, and goes with the other one', async (_, first, second) => {
    ofBoth('etc/shared.d/shared.conf')
    await install()
    await installOther()
    expect(await first()).toEqual([
      expect.objectContaining({ path: '/etc/shared.d/shared.conf', why: 'of another package' }),
    ])
    expect(await read('etc/shared.d/shared.conf')).toBe('of both')
    expect(await second()).toEqual([])
    expect(await exists('etc')).toBe(false)
  })

  test('an empty folder of both stays, too', async () => {
    for (const one of [store, otherStore]) await mkdir(join(folder, one, 'root_dir/srv/empty'), { recursive: true })
    await install()
    await installOther()
    await uninstall()
    expect(await exists('srv/empty')).toBe(true)
    await uninstallOther()
    expect(await exists('srv')).toBe(false)
  })

  test('a file of an earlier version stays while another package has it', async () => {
    ofBoth('etc/old.conf')
    await install()
    await installOther()
    await rm(join(folder, store, 'root_dir/etc/old.conf'))
    putInPackage('etc/new.conf', 'new')
    await install()
    await uninstall()
    expect(await readdir(join(folder, 'etc'))).toEqual(['old.conf'])
  })

  test('what the host had before any of them stays to the end', async () => {
    put('etc/motd', 'of the host')
    ofBoth('etc/motd')
    await install()
    await installOther()
    await uninstall()
    expect(await uninstallOther()).toEqual([{ path: '/etc/motd', why: 'was there before' }])
  })

  test('the package that is installed second gets a report of contents that differ', async () => {
    ofBoth('etc/same.conf')
    ofBoth('etc/shared.conf')
    put(`${otherStore}/root_dir/etc/shared.conf`, 'of the other')
    expect(await install()).toEqual({ outcome: 'copied', files: 2, disputes: [] })
    expect(await installOther()).toEqual({
      outcome: 'copied',
      files: 2,
      disputes: [{ owner: ['demo', 'tuning'].join('/'), paths: ['/etc/shared.conf'] }],
    })
    expect(await install()).toEqual({ outcome: 'unchanged' })
    expect(await read('etc/shared.conf')).toBe('of the other')
  })

  test('an uninstall that ended in the middle hands over once', async () => {
    ofBoth('etc/a.conf')
    putInPackage('etc/b.conf', 'b')
    await install()
    await installOther()
    const broken: HostRoot = { ...host, remove: async () => await Promise.reject(new Error('EIO')) }
    await expect(uninstallRootDir(broken, record)).rejects.toThrow('EIO')
    await uninstall()
    expect(await readdir(join(folder, 'etc'))).toEqual(['a.conf'])
    expect(await uninstallOther()).toEqual([])
    expect(await exists('etc')).toBe(false)
  })
})

test('what is gone from the host is put back, and what was edited stays', async () => {
  putInPackage('etc/demo.d/a.conf', 'a')
  putInPackage('etc/demo.d/b.conf', 'b')
  await install()
  put('etc/demo.d/b.conf', 'by hand')
  await rm(join(folder, 'etc/demo.d/a.conf'))
  expect(await install()).toEqual({ outcome: 'restored', paths: ['/etc/demo.d/a.conf'], disputes: [] })
  expect([await read('etc/demo.d/a.conf'), await read('etc/demo.d/b.conf')]).toEqual(['a', 'by hand'])
  expect(await install()).toEqual({ outcome: 'unchanged' })
  await rm(join(folder, 'etc/demo.d/b.conf'))
  await install()
  expect(await uninstallRootDir(host, record)).toEqual([])
})

describe('links that other users can make', () => {
  beforeEach(async () => {
    await mkdir(join(folder, 'shared'))
    await chmod(join(folder, 'shared'), 0o1777)
    put('etc/precious', 'of the host')
  })

  test('installing refuses them with path and remedy, before anything is written', async () => {
    await symlink('../etc/precious', join(folder, 'shared/file'))
    await symlink('../etc', join(folder, 'shared/folder'))
    for (const path of ['shared/file', 'shared/folder/new', 'opt/a']) putInPackage(path, 'x')
    const why = 'is a link that other users of the host can make (its folder belongs to uid'
    expect(await install()).toEqual({
      outcome: 'conflict',
      problems: [
        expect.stringContaining(`root_dir/shared/file: /shared/file ${why}`) as string,
        expect.stringContaining(`root_dir/shared/folder: /shared/folder ${why}`) as string,
      ],
    })
    expect(await exists('opt')).toBe(false)
    expect(await readdir(join(folder, 'etc'))).toEqual(['precious'])
  })

  test('uninstalling leaves what is behind such a link, and ends', async () => {
    putInPackage('shared/folder/a', 'a')
    putInPackage('opt/a', 'a')
    await install()
    await rm(join(folder, 'shared/folder'), { recursive: true })
    put('etc/a', 'a')
    await symlink('../etc', join(folder, 'shared/folder'))
    expect(await uninstallRootDir(host, record)).toEqual([{ path: '/shared/folder/a', why: 'changed' }])
    expect(await readdir(join(folder, 'etc'))).toEqual(['a', 'precious'])
    expect(await exists('opt')).toBe(false)
  })
})

test('installing the next version during an uninstall keeps its files', async () => {
  for (let file = 0; file < 30; file++) putInPackage(`etc/demo/${file}.conf`, 'of both')
  await install()
  await Promise.all([uninstallRootDir(host, record), install()])
  expect(await readdir(join(folder, 'etc/demo'))).toHaveLength(30)
  expect(await uninstallRootDir(host, record)).toEqual([])
  expect(await exists('etc/demo')).toBe(false)
})

describe('a crash in the middle', () => {
  test.each([1, 2])(
    'after a crash at write %i of the record, the next run completes and knows its own files',
    async (crashAt) => {
      for (const name of ['a', 'b', 'c']) putInPackage(`opt/${name}`, name)
      put('opt/b', 'of the host')
      let writes = 0
      const crashingHost: HostRoot = {
        ...host,
        writeFileDurable: async (...args) => {
          if (++writes === crashAt) throw new Error('crash')
          await host.writeFileDurable(...args)
        },
      }
      await expect(installRootDir(crashingHost, store, record)).rejects.toThrow('crash')
      expect(await read('opt/b')).toBe(crashAt === 1 ? 'of the host' : 'b')
      expect(await install()).toMatchObject({ outcome: 'copied' })
      expect(await uninstallRootDir(host, record)).toEqual([{ path: '/opt/b', why: 'was there before' }])
      expect(await exists('opt/a')).toBe(false)
    },
  )
})
