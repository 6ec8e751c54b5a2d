import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { createSeededRandom } from '../../../test/kit/virtual-clock.ts'
import { createHostRoot, createLocalRoot, type HostRoot } from './host-root.ts'
import { isTemporary } from './temporary.ts'

let outside: string
let mount: string
let root: HostRoot
beforeEach(() => {
  outside = temporaryFolder()
  mount = join(outside, 'host')
  for (const folder of ['data/log', 'etc', 'var/lib']) mkdirSync(join(mount, folder), { recursive: true })
  symlinkSync('/data/log', join(mount, 'var/log')) // leaves the root unless it is read as the host reads it
  writeFileSync(join(mount, 'etc/name'), 'the host')
  writeFileSync(join(outside, 'secret'), 'not the host')
  root = createHostRoot(mount, createSeededRandom(1))
})

const resolveWithin = async (path: string, last?: 'follow' | 'keep') =>
  (await root.resolve(path, last)).slice(mount.length)

describe('a path of the host', () => {
  test.each([
    ['/etc/name', '/etc/name'],
    ['/var/log/skyhook', '/data/log/skyhook'],
    ['/var/log/../x', '/data/x'], // the folder above the link's target, as the kernel has it
    ['/../../etc/./name', '/etc/name'],
    ['/nothing/here', '/nothing/here'],
    ['//etc///name/', '/etc/name'],
    ['/', '/'],
  ])('the host path %s resolves to %s', async (path, target) => expect(await resolveWithin(path)).toBe(target))

  test.each([
    ['../../../../secret', '/secret'],
    ['/../secret', '/secret'],
    ['../etc/name', '/etc/name'],
    ['/etc/../../../secret', '/secret'],
    ['/etc/link', '/etc/name'],
  ])('a path through a link to %s stays inside the root', async (target, leadsTo) => {
    symlinkSync('name', join(mount, 'etc/link'))
    symlinkSync(target, join(mount, 'data/link'))
    expect(await resolveWithin('/data/link')).toBe(leadsTo)
    if (leadsTo === '/secret') await expect(root.readFile('/data/link')).rejects.toThrow('ENOENT')
    else expect((await root.readFile('/data/link')).toString()).toBe('the host')
  })

  test('resolving can keep a link in the last component', async () => {
    symlinkSync('/data/log', join(mount, 'data/log/again'))
    expect(await resolveWithin('/var/log', 'keep')).toBe('/var/log')
    expect(await resolveWithin('/var/log/again', 'keep')).toBe('/data/log/again')
  })

  test('a circle of links is refused', async () => {
    symlinkSync('b', join(mount, 'etc/a'))
    symlinkSync('a', join(mount, 'etc/b'))
    await expect(root.resolve('/etc/a')).rejects.toMatchObject({ code: 'ELOOP' })
  })

  test('a relative path is refused', async () => {
    await expect(root.resolve('etc')).rejects.toThrow('not an absolute path')
    await expect(root.resolve('/a\0b')).rejects.toThrow('is not a path')
  })

  test('no combination of links leads outside the root', async () => {
    const name = fc.constantFrom('a', 'b', 'c', '..', '.')
    const target = fc
      .tuple(fc.constantFrom('', '/', '../', '/../../'), fc.array(name, { maxLength: 4 }))
      .map(([start, names]) => `${start}${names.join('/')}` || '.')
    await fc.assert(
      fc.asyncProperty(
        fc.array(target, { minLength: 3, maxLength: 3 }),
        fc.array(name, { minLength: 1, maxLength: 6 }),
        async (targets, path) => {
          const tree = mkdtempSync(join(mount, 'tree-'))
          mkdirSync(join(tree, 'a/b'), { recursive: true })
          for (const [index, place] of ['b', 'a/c', 'a/b/c'].entries())
            symlinkSync(targets[index] as string, join(tree, place))
          const resolved = await createHostRoot(tree, createSeededRandom(1))
            .resolve(`/${path.join('/')}`)
            .catch((error: NodeJS.ErrnoException) => error.code)
          expect(resolved === 'ELOOP' || resolved?.startsWith(`${tree}/`)).toBe(true)
          expect(resolved).not.toContain('..')
        },
      ),
      { numRuns: 200 },
    )
  })
})

describe('files', () => {
  test('a written file is replaced whole, with its mode, and leaves no temporary file', async () => {
    const umask = process.umask(0o077)
    onTestFinished(() => void process.umask(umask)) // other files share the process
    await root.writeFileDurable('/var/log/file', 'first, and longer', 0o644)
    await root.writeFileDurable('/var/log/file', 'second', 0o755)
    expect(readFileSync(join(mount, 'data/log/file'), 'utf8')).toBe('second')
    expect(statSync(join(mount, 'data/log/file')).mode & 0o777).toBe(0o755)
    expect(readdirSync(join(mount, 'data/log'))).toEqual(['file'])
  })

  test('writing replaces a link in the place of the file, not its target', async () => {
    symlinkSync(join(outside, 'secret'), join(mount, 'etc/link'))
    await root.writeFile('/etc/link', 'ours', 0o600)
    expect(readFileSync(join(outside, 'secret'), 'utf8')).toBe('not the host')
    expect(readFileSync(join(mount, 'etc/link'), 'utf8')).toBe('ours')
  })

  test('a failed write leaves no temporary file', async () => {
    mkdirSync(join(mount, 'etc/folder/inside'), { recursive: true })
    await expect(root.writeFileDurable('/etc/folder', 'x', 0o600)).rejects.toThrow('EISDIR')
    await expect(root.writeFileDurable('/nothing/file', 'x', 0o600)).rejects.toMatchObject({ code: 'ENOENT' })
    expect(readdirSync(join(mount, 'etc')).toSorted()).toEqual(['folder', 'name'])
  })

  test('removing a file or folder spares the targets of links', async () => {
    mkdirSync(join(mount, 'var/lib/gone'))
    symlinkSync('/etc', join(mount, 'var/lib/gone/link'))
    await root.remove('/var/lib/gone')
    await root.remove('/var/lib/gone')
    await root.remove('/var/log')
    expect(existsSync(join(mount, 'etc/name'))).toBe(true)
    expect(existsSync(join(mount, 'data/log'))).toBe(true)
    expect(readdirSync(join(mount, 'var'))).toEqual(['lib'])
  })

  test('stat, readdir and rename work on paths of the host', async () => {
    expect(await root.stat('/nothing')).toBeUndefined()
    expect((await root.stat('/var/log'))?.isDirectory()).toBe(true)
    chmodSync(join(mount, 'etc/name'), 0o700)
    expect((await root.stat('/etc/name'))?.mode).toBe(0o100700)
    expect(await root.readdir('/var')).toEqual(expect.arrayContaining(['lib', 'log']))
    await root.rename('/etc/name', '/var/log/moved')
    expect(readFileSync(join(mount, 'data/log/moved'), 'utf8')).toBe('the host')
  })
})

test('what fails twice fails in the same words, which name no temporary file', async () => {
  mkdirSync(join(mount, 'etc/folder'))
  const attempts: Readonly<Record<string, (path: string) => Promise<void>>> = {
    writeFileDurable: (path) => root.writeFileDurable(path, 'x', 0o600),
    writeFile: (path) => root.writeFile(path, 'x', 0o600),
    copyFileDurable: (path) => root.copyFileDurable('/etc/name', path, 0o600),
    replaceLink: (path) => root.replaceLink(path, 'name'),
  }
  for (const attempt of Object.values(attempts))
    for (const path of ['/missing/name', '/etc/folder']) {
      const failureOf = async (): Promise<unknown> => await attempt(path).catch(({ message }: Error) => message)
      const first = await failureOf()
      expect(first).toMatch(/^(ENOENT|EISDIR): /)
      expect(first).not.toContain('.tmp')
      expect(await failureOf()).toBe(first)
    }
})

test('names of the greatest length are written, replaced, copied and linked, and errors name them', async () => {
  const names = ['a', 'b'].map((end) => `${'x'.repeat(254)}${end}`)
  for (const name of names) {
    await root.writeFile(`/etc/${name}`, 'old', 0o600)
    await root.writeFileDurable(`/etc/${name}`, name, 0o600)
    await root.copyFileDurable(`/etc/${name}`, `/data/${name}`, 0o600, '0123456789ab')
    await root.replaceLink(`/data/log/${name}`, name, '0123456789ab')
    expect(readFileSync(join(mount, 'data', name), 'utf8')).toBe(name)
    expect(readlinkSync(join(mount, 'data/log', name))).toBe(name)
    await expect(root.writeFile(`/missing/${name}`, 'x', 0o600)).rejects.toThrow(`/missing/${name}'`)
  }
  expect(readdirSync(join(mount, 'data')).filter(isTemporary)).toEqual([])
})

describe('folders', () => {
  test('folders are made through links, and existing ones keep their mode', async () => {
    chmodSync(join(mount, 'data/log'), 0o711)
    await root.mkdirp('/var/log/a/b', 0o700)
    await root.mkdirp('/var/log/a/b', 0o755)
    expect(statSync(join(mount, 'data/log')).mode & 0o777).toBe(0o711)
    expect(statSync(join(mount, 'data/log/a')).mode & 0o777).toBe(0o755)
    expect(statSync(join(mount, 'data/log/a/b')).mode & 0o777).toBe(0o700)
    expect(readlinkSync(join(mount, 'var/log'))).toBe('/data/log')
  })

  test('a folder is made where a dangling link points, inside the root', async () => {
    symlinkSync('/srv/logs', join(mount, 'var/dangling'))
    await root.mkdirp('/var/dangling/x')
    expect(statSync(join(mount, 'srv/logs/x')).isDirectory()).toBe(true)
  })
})

test('the root can be that of the process', async () => {
  expect(await createHostRoot('/', createSeededRandom(1)).resolve('/proc/self/..')).toBe('/proc')
})

describe('links of other users', () => {
  // a folder that everybody may write stands for another user: the tests need not be root
  beforeEach(() => {
    mkdirSync(join(mount, 'shared'))
    chmodSync(join(mount, 'shared'), 0o1777)
    symlinkSync('../etc', join(mount, 'shared/folder'))
    symlinkSync('../etc/name', join(mount, 'shared/file'))
  })

  test.each<[string, (path: string) => Promise<unknown>]>([
    ['readFile', async (path) => await root.readFile(path)],
    ['readPart', async (path) => await root.readPart(path, 'end', 9)],
    ['sha256', async (path) => await root.sha256(path)],
    ['realPath', async (path) => await root.realPath(path)],
    ['resolve', async (path) => await root.resolve(path)],
    ['stat', async (path) => await root.stat(path)],
    ['list', async (path) => await root.list(path)],
    ['describeTree', async (path) => await root.describeTree(path)],
    ['syncFolder', async (path) => await root.syncFolder(path)],
    ['mkdirp', async (path) => await root.mkdirp(path)],
    ['copyFileDurable from', async (path) => await root.copyFileDurable(path, '/etc/copy', 0o644)],
    ['removeEmptyFolder', async (path) => await root.removeEmptyFolder(path)],
  ])('%s refuses what such a link leads to, and names the link', async (_, use) => {
    for (const path of ['/shared/file', '/shared/folder/name'])
      await expect(use(path)).rejects.toThrow(
        /^\/shared\/(file|folder) is a link that other users of the host can make/,
      )
  })

  test.each<[string, (path: string) => Promise<unknown>]>([
    ['writeFile', async (path) => await root.writeFile(path, 'x', 0o600)],
    ['copyFileDurable', async (path) => await root.copyFileDurable('/etc/name', path, 0o644)],
    ['replaceLink', async (path) => await root.replaceLink(path, 'x')],
    ['remove', async (path) => await root.remove(path)],
  ])('%s acts on such a link itself and refuses one on the way', async (_, use) => {
    await use('/shared/file')
    expect(readFileSync(join(mount, 'etc/name'), 'utf8')).toBe('the host')
    await expect(use('/shared/folder/name')).rejects.toThrow('other users of the host can make')
  })

  test('links of the host itself are followed beside them', async () => {
    symlinkSync('../shared', join(mount, 'etc/down'))
    await root.writeFile('/etc/down/new', 'x', 0o600)
    expect(readFileSync(join(mount, 'shared/new'), 'utf8')).toBe('x')
  })

  test('a tool of a person follows them', async () => {
    expect((await createLocalRoot(createSeededRandom(1), mount).readFile('/shared/folder/name')).toString()).toBe(
      'the host',
    )
  })
})

test('nothing stays open after hundreds of walks', async () => {
  const isOfRoot = (descriptor: string): boolean => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith(mount)
    } catch {
      return false // the one that listed them
    }
  }
  const open = (): readonly string[] => readdirSync('/proc/self/fd').filter(isOfRoot)
  const before = open()
  for (let round = 0; round < 100; round++) {
    await root.readText('/var/log/../../etc/name')
    await root.stat('/nothing/here')
    await root.readFile('/var/log/nothing').catch(() => undefined)
  }
  expect(open()).toEqual(before)
})

test('bytes of a file are replaced by fewer while a program appends to it', async () => {
  writeFileSync(join(mount, 'etc/log'), `head${'-'.repeat(1_000_000)}tail`)
  const writer = openSync(join(mount, 'etc/log'), 'a')
  await root.replaceBytes('/etc/log', { from: 4, to: 1_000_004 }, Buffer.from('…'))
  writeSync(writer, ', more')
  closeSync(writer)
  expect(readFileSync(join(mount, 'etc/log'), 'utf8')).toBe('head…tail, more')
})

test('bytes of a file that has another name stay', async () => {
  linkSync(join(mount, 'etc/name'), join(mount, 'etc/other'))
  await expect(root.replaceBytes('/etc/other', { from: 0, to: 4 }, Buffer.from('x'))).rejects.toThrow('2 names')
  expect(readFileSync(join(mount, 'etc/name'), 'utf8')).toBe('the host')
})
