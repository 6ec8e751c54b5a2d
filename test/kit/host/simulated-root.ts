/** A `HostRoot` over a simulated disk: what one agent does with the files of its host. */
import { hash } from 'node:crypto'
import { dirname, join } from 'node:path'
import { ignoreNotFound } from '../../../src/host/fs/errors.ts'
import { kindOf } from '../../../src/host/fs/fsync.ts'
import type { HostRoot } from '../../../src/host/fs/host-root.ts'
import { namingTarget, newTemporaryToken, temporaryName } from '../../../src/host/fs/temporary.ts'
import type { TreeEntry } from '../../../src/host/fs/tree.ts'
import type { Random } from '../../../src/schemas/clock.ts'
import { copyTree, syncTree } from './disk-trees.ts'
import type { Disk } from './disk.ts'
import type { Place } from './places.ts'
import { errno, type FileNode, type FolderNode, statsOf } from './inodes.ts'

/**
 * `passed` is told of each sync by the name of its failpoint; nothing of the operation happens after it until its
 * promise resolves.
 */
export type RootPorts = {
  readonly disk: Disk
  readonly random: Random
  readonly passed: (failpoint: string) => Promise<void>
}

export function createSimulatedRoot({ disk, random, passed }: RootPorts): HostRoot {
  const entryOf = (path: string): Place => disk.locate(path, 'keep')
  const hashOf = (data: Buffer): string => hash('sha256', data)

  const syncFolder = async (path: string): Promise<void> => {
    const place = disk.locate(path)
    disk.list(place)
    disk.syncFolder(place.node as FolderNode, place.path)
    await passed(`fsync:${kindOf(path)}/`)
  }

  async function replace(path: string, data: Buffer, options: ReplaceOptions): Promise<void> {
    const target = entryOf(path)
    const temporary = entryOf(temporaryName(target.path, options.token ?? newTemporaryToken(random)))
    try {
      const file = disk.create(temporary, options.mode)
      disk.write(file, data, temporary.path, options.mtimeMs)
      if (options.isDurable) {
        disk.syncFile(file, temporary.path)
        await passed(`fsync:${kindOf(target.path)}`)
      }
      disk.rename(entryOf(temporary.path), entryOf(target.path))
    } catch (error) {
      try {
        disk.remove(entryOf(temporary.path))
      } catch {
        // never made, renamed already, or the disk takes nothing any more
      }
      throw namingTarget(error, temporary.path, target.path)
    }
    if (options.isDurable && options.token === undefined) await syncFolder(dirname(target.path))
  }

  /** Makes the folder and what is missing above it; returns the topmost that it made. */
  function makeFolders(path: string, mode: number): string | undefined {
    const place = disk.locate(path)
    if (place.node?.kind === 'folder') return undefined
    if (place.node !== undefined) throw errno('EEXIST', 'mkdir', place.path)
    const first = place.path === '/' ? undefined : makeFolders(dirname(place.path), mode)
    disk.makeFolder(disk.locate(place.path), mode)
    return first ?? place.path
  }

  function remove(path: string): void {
    const place = entryOf(path)
    if (place.parent?.kind === 'file') throw errno('ENOTDIR', 'lstat', place.path)
    if (place.node !== undefined) disk.remove(place)
  }

  const list = (path: string): string[] =>
    disk
      .list(disk.locate(path))
      .map(([name]) => name)
      .sort()

  function readTree(folder: string, prefix: string): string[] {
    return disk.list(disk.locate(folder)).flatMap(([name, node]) => {
      const path = join(prefix, name)
      return node.kind === 'folder' ? [path, ...readTree(`${folder}/${name}`, path)] : [path]
    })
  }

  function describe(folder: string, prefix: string): TreeEntry[] {
    const entries = disk.list(disk.locate(folder)).sort(([a], [b]) => (a < b ? -1 : 1))
    return entries.flatMap(([name, node]): TreeEntry[] => {
      const path = `${prefix}/${name}`
      if (node.kind === 'link') return [{ kind: 'link', path, target: node.target }]
      const { mode } = node
      if (node.kind === 'file') return [{ kind: 'file', path, mode, sha256: hashOf(node.data) }]
      return [{ kind: 'folder', path, mode }, ...describe(`${folder}/${name}`, path)]
    })
  }

  /** Undefined where nothing is, as HostRoot has it. */
  function whereExists<T>(path: string, last: 'follow' | 'keep', read: (place: Place) => T): T | undefined {
    try {
      const place = disk.locate(path, last)
      return place.node && read(place)
    } catch (error) {
      return ignoreNotFound(error)
    }
  }

  const replaceLink = (path: string, target: string, token = newTemporaryToken(random)): void => {
    const place = entryOf(path)
    if (place.node?.kind === 'link' && place.node.target === target) return
    const temporary = entryOf(temporaryName(place.path, token))
    try {
      disk.symlink(temporary, target)
      disk.rename(entryOf(temporary.path), place)
    } catch (error) {
      remove(temporary.path)
      throw namingTarget(error, temporary.path, place.path)
    }
  }

  const root: HostRoot = {
    resolve: async (path, last) => disk.locate(path, last).path,
    realPath: async (path) => disk.locate(path).path,
    readFile: async (path) => disk.read(disk.locate(path)),
    readText: async (path) => whereExists(path, 'follow', (place) => disk.read(place).toString()),
    async readPart(path, part, bytes) {
      const data = disk.read(disk.locate(path))
      return part === 'start' ? data.subarray(0, bytes) : data.subarray(Math.max(0, data.length - bytes))
    },
    async readFrom(path, offset, bytes) {
      const data = disk.read(disk.locate(path))
      return { bytes: data.subarray(offset, offset + bytes), sizeBytes: data.length }
    },
    async replaceBytes(path, { from, to }, bytes) {
      const place = disk.locate(path)
      const data = disk.read(place)
      disk.write(place.node as FileNode, Buffer.concat([data.subarray(0, from), bytes, data.subarray(to)]), place.path)
    },
    sha256: async (path) => hashOf(disk.read(disk.locate(path))),
    newTemporaryToken: () => newTemporaryToken(random),
    writeFileDurable: (path, data, mode) => replace(path, Buffer.from(data), { mode, isDurable: true }),
    writeFile: (path, data, mode) => replace(path, Buffer.from(data), { mode, isDurable: false }),
    async createFile(path, mode) {
      const place = entryOf(path)
      if (place.node !== undefined) return false
      disk.create(place, mode)
      return true
    },
    async copyFileDurable(from, to, mode, token = newTemporaryToken(random)) {
      await replace(to, disk.read(disk.locate(from)), { mode, isDurable: true, token })
    },
    readLink: async (path) =>
      whereExists(path, 'keep', ({ node }) => (node?.kind === 'link' ? node.target : undefined)),
    replaceLink: async (path, target, token) => replaceLink(path, target, token),
    link: async (path, newPath) => disk.link(entryOf(path), entryOf(newPath)),
    rename: async (from, to) => disk.rename(entryOf(from), entryOf(to)),
    async mkdirp(path, mode = 0o755) {
      const target = disk.locate(path).path
      const created = [makeFolders(dirname(target), 0o755), makeFolders(target, mode)]
      const firstCreated = created.find((folder) => folder !== undefined)
      if (firstCreated === undefined) return
      for (let folder = target; folder.length >= firstCreated.length; folder = dirname(folder))
        await syncFolder(dirname(folder))
    },
    makeFolder: async (path, mode) => void makeFolders(path, mode),
    async makeUniqueFolder(prefix, mode) {
      const place = entryOf(`${prefix}${random.hex(3)}`)
      disk.makeFolder(place, mode)
      return place.path
    },
    remove: async (path) => remove(path),
    async removeEmptyFolder(path) {
      const place = whereExists(path, 'follow', (place) => place)
      if (place?.node?.kind === 'folder' && place.node.entries.size === 0) disk.remove(place)
    },
    readdir: async (path) => list(path),
    list: async (path) => whereExists(path, 'follow', () => list(path)),
    readTree: async (path) => readTree(path, ''),
    async describeTree(path) {
      return disk.locate(path).node?.kind === 'folder' ? describe(path, '') : undefined
    },
    copyTree: async (from, to, copy) => copyTree(disk, from, to, copy),
    syncTree: async (path, excludedNames) => await syncTree(disk, path, excludedNames, passed),
    syncFolder,
    async stat(path) {
      const { node } = disk.locate(path)
      return node && statsOf(node)
    },
    lstat: async (path) => whereExists(path, 'keep', ({ node }) => node && statsOf(node)),
  }
  return root
}

type ReplaceOptions = {
  readonly mode: number
  readonly isDurable: boolean
  /** Of a copy, whose caller syncs the folder. */
  readonly token?: string | undefined
  readonly mtimeMs?: number
}
