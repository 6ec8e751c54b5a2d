import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../files/temporary-folder.ts'
import { createHostRoot, type HostRoot } from '../../../src/host/fs/host-root.ts'
import { createSeededRandom } from '../virtual-clock.ts'
import { createDisk } from './disk.ts'
import { createSimulatedRoot } from './simulated-root.ts'

let mount: string
let roots: readonly [real: HostRoot, simulated: HostRoot]

const files: Readonly<Record<string, string>> = {
  '/etc/name': 'the host',
  '/store/run.sh': '#!/bin/sh\n',
  '/store/lib/data': '1234567890',
  '/copy/own': 'kept',
  '/copy/lib': 'a file where a folder belongs',
}
const links: Readonly<Record<string, string>> = {
  '/var/log': '/data/log',
  '/loop': '/loop',
  '/dangling': 'nothing/here',
  '/store/current': 'lib/data',
  '/up': '../../etc',
}
const folders = ['/data/log', '/var/lib', '/empty']

beforeEach(async () => {
  mount = temporaryFolder()
  const disk = createDisk({
    wallMs: () => 0,
    monotonicMs: () => 0,
    random: createSeededRandom(1),
    volatileFolders: [],
  })
  const simulated = createSimulatedRoot({ disk, random: createSeededRandom(1), passed: async () => undefined })
  roots = [createHostRoot(mount, createSeededRandom(1)), simulated]
  for (const path of [...folders, '/etc', '/store/lib', '/copy']) {
    mkdirSync(join(mount, path), { recursive: true, mode: 0o755 })
    await simulated.makeFolder(path, 0o755)
  }
  for (const [path, content] of Object.entries(files)) {
    writeFileSync(join(mount, path), content)
    chmodSync(join(mount, path), 0o644)
    await simulated.writeFile(path, content, 0o644)
  }
  for (const [path, target] of Object.entries(links)) {
    mkdirSync(join(mount, dirname(path)), { recursive: true })
    symlinkSync(target, join(mount, path))
    await simulated.replaceLink(path, target)
  }
})

/** What an operation answers, or the name and the first words of its error. */
async function outcomeOf(root: HostRoot, use: (root: HostRoot) => Promise<unknown>): Promise<unknown> {
  try {
    const answer = await use(root)
    if (typeof answer === 'string') return answer.replace(mount, '')
    return answer instanceof Buffer ? answer.toString() : Array.isArray(answer) ? answer.toSorted(byText) : answer
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    return { code, message: message.replace(mount, '').replace(/, .*/, '') }
  }
}

const byText = (one: unknown, other: unknown): number => (JSON.stringify(one) < JSON.stringify(other) ? -1 : 1)

const kindAndMode = async (root: HostRoot, path: string, how: 'stat' | 'lstat'): Promise<unknown> => {
  const stats = await root[how](path)
  return (
    stats && {
      isFile: stats.isFile(),
      isFolder: stats.isDirectory(),
      isLink: stats.isSymbolicLink(),
      mode: stats.isSymbolicLink() ? undefined : stats.mode & 0o7777,
      size: stats.isFile() ? stats.size : undefined,
    }
  )
}

const paths = [
  '/etc/name',
  '/etc/name/',
  '//etc/./../etc/name',
  '/etc',
  '/',
  '/missing',
  '/missing/below',
  '/etc/name/below',
  '/etc/name/below/more',
  '/var/log',
  '/var/log/new',
  '/var/log/../x',
  '/loop',
  '/loop/x',
  '/dangling',
  '/store/current',
  '/up/name',
  'relative',
  '/with\0nul',
]

type Use = (root: HostRoot, path: string) => Promise<unknown>
const readings: Readonly<Record<string, Use>> = {
  resolve: (root, path) => root.resolve(path),
  'resolve the entry': (root, path) => root.resolve(path, 'keep'),
  realPath: (root, path) => root.realPath(path),
  readFile: (root, path) => root.readFile(path),
  readText: (root, path) => root.readText(path),
  'readPart, start': (root, path) => root.readPart(path, 'start', 4),
  'readPart, end': (root, path) => root.readPart(path, 'end', 3),
  readFrom: async (root, path) => [await root.readFrom(path, 2, 3), await root.readFrom(path, 99, 3)],
  sha256: (root, path) => root.sha256(path),
  readLink: (root, path) => root.readLink(path),
  readdir: (root, path) => root.readdir(path),
  list: (root, path) => root.list(path),
  readTree: (root, path) => root.readTree(path),
  describeTree: (root, path) => root.describeTree(path),
  syncTree: (root, path) => root.syncTree(path, []),
  syncFolder: (root, path) => root.syncFolder(path),
  stat: (root, path) => kindAndMode(root, path, 'stat'),
  lstat: (root, path) => kindAndMode(root, path, 'lstat'),
}
const changes: Readonly<Record<string, Use>> = {
  writeFileDurable: (root, path) => root.writeFileDurable(path, 'new', 0o600),
  writeFile: (root, path) => root.writeFile(path, 'new', 0o777),
  createFile: (root, path) => root.createFile(path, 0o600),
  replaceBytes: (root, path) => root.replaceBytes(path, { from: 1, to: 4 }, Buffer.from('-')),
  'copyFileDurable from': (root, path) => root.copyFileDurable(path, '/etc/copied', 0o640),
  'copyFileDurable to': (root, path) => root.copyFileDurable('/etc/name', path, 0o640),
  replaceLink: (root, path) => root.replaceLink(path, 'name'),
  'link from': (root, path) => root.link(path, '/etc/linked'),
  'link to': (root, path) => root.link('/etc/name', path),
  'rename from': (root, path) => root.rename(path, '/empty/renamed'),
  'rename to': (root, path) => root.rename('/store/lib', path),
  'rename a file to': (root, path) => root.rename('/copy/own', path),
  mkdirp: (root, path) => root.mkdirp(path, 0o700),
  makeFolder: (root, path) => root.makeFolder(path, 0o700),
  remove: (root, path) => root.remove(path),
  removeEmptyFolder: (root, path) => root.removeEmptyFolder(path),
}

describe('a simulated disk answers as a real one', () => {
  // the modes of the roots themselves differ, and each refuses in its own words to replace its root
  const below = paths.filter((path) => path !== '/')

  for (const [name, use] of Object.entries(readings))
    test(`${name} has the same outcome for every kind of path`, async () => {
      const outcomes = async (root: HostRoot): Promise<unknown> =>
        await Promise.all(below.map(async (path) => [path, await outcomeOf(root, (root) => use(root, path))]))
      expect(await outcomes(roots[1])).toEqual(await outcomes(roots[0]))
    })

  for (const [name, use] of Object.entries(changes))
    test.each(below)(`${name} %j has the same outcome and leaves the same tree`, async (path) => {
      const [real, simulated] = await Promise.all(
        roots.map(async (root) => [
          await outcomeOf(root, (root) => use(root, path)),
          await outcomeOf(root, (root) => root.describeTree('/')),
        ]),
      )
      expect(simulated).toEqual(real)
    })

  test.each([
    { trustTimes: true, executables: new Set(['run.sh']), excludedPaths: new Set<string>() },
    { trustTimes: false, executables: new Set<string>(), excludedPaths: new Set(['lib']) },
  ])('a tree that is copied, changed and copied again is the same: %j', async (copy) => {
    const trees = await Promise.all(
      roots.map(async (root) => {
        const seen: unknown[] = []
        for (const change of [() => undefined, () => root.writeFile('/copy/run.sh', 'changed', 0o600)]) {
          await change()
          seen.push(await root.copyTree('/store', '/copy', copy))
          seen.push(await root.copyTree('/store', '/copy', copy)) // nothing is left to do
          seen.push(await root.describeTree('/copy'))
        }
        return seen
      }),
    )
    expect(trees[1]).toEqual(trees[0])
  })

  test('a unique folder has the prefix, the mode, and another name each time', async () => {
    for (const root of roots) {
      const made = [await root.makeUniqueFolder('/etc/x.', 0o711), await root.makeUniqueFolder('/etc/x.', 0o711)]
      expect(new Set(made).size).toBe(2)
      expect(made.every((path) => path.startsWith('/etc/x.'))).toBe(true)
      expect(await kindAndMode(root, made[0] ?? '', 'stat')).toMatchObject({ isFolder: true, mode: 0o711 })
    }
  })
})
