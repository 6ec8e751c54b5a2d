/**
 * Files of the host, whose root is mounted somewhere in the agent's container.
 *
 * Invariant: no path leads out of that root. Symbolic links are followed as the host would follow them: the host's
 * `/var/log -> /data/log` means `/host/data/log` here, and `..` stops at the host's root.
 *
 * Some folders belong to other users of the host, who change them meanwhile. Every operation runs in a folder that was
 * reached without their links (walk.ts), and on the last component itself, never on the target of a link there.
 */
import { constants, type Stats } from 'node:fs'
import { link, lstat, mkdir, mkdtemp, open, readdir, rename, rmdir } from 'node:fs/promises'
import { posix } from 'node:path'
import type { Random } from '../../schemas/clock.ts'
import { copyTree, syncTree, type TreeCopy } from './copy-tree.ts'
import { ignoreNotFound, undefinedIfAbsent } from './errors.ts'
import {
  copyFile,
  readFlags,
  readFrom,
  readLink,
  readPart,
  replaceBytes,
  replaceFile,
  replaceLink,
  sha256OfFile,
} from './file-content.ts'
import { syncFolder, syncOpenFile } from './fsync.ts'
import { newTemporaryToken } from './temporary.ts'
import { describeTree, readTree, removeTree, type TreeEntry } from './tree.ts'
import { createPlainWalk, createTrustedWalk, type Last, type Place, type Walk } from './walk.ts'

/** All paths are absolute paths of the host; errors are those of node:fs, and UntrustedLinkError (trust.ts). */
export type HostRoot = {
  /**
   * Where a path of the host is for this process. Links are followed, the last component's only with `last: 'follow'`
   * (the default). Components that do not exist are kept as they are. Only for folders that root alone can write:
   * elsewhere the answer may be outdated when it is used.
   */
  resolve(path: string, last?: Last): Promise<string>
  /** The target of this path, as a path of the host. */
  realPath(path: string): Promise<string>
  readFile(path: string): Promise<Buffer>
  /** The same as text; undefined when there is no such file. */
  readText(path: string): Promise<string | undefined>
  /** At most `bytes` bytes of a file: the first ones, or the last ones. */
  readPart(path: string, part: 'start' | 'end', bytes: number): Promise<Buffer>
  /** At most `bytes` bytes from `offset` on, and how long the whole file is at that moment. */
  readFrom(path: string, offset: number, bytes: number): Promise<{ readonly bytes: Buffer; readonly sizeBytes: number }>
  /**
   * Replaces the bytes from `from` up to `to` by fewer others while a program may append to the file. What it appends
   * during the replacement may be lost. Does not wait for the disk.
   */
  replaceBytes(path: string, range: { readonly from: number; readonly to: number }, bytes: Buffer): Promise<void>
  /** Hash of a file's content, in hex. */
  sha256(path: string): Promise<string>
  /** A new token for temporary names (temporary.ts): of several copies that are swept together after a crash. */
  newTemporaryToken(): string
  /** Replaces the file whole or not at all, on disk when it returns. A link in its place is replaced, not followed. */
  writeFileDurable(path: string, data: string | Uint8Array, mode: number): Promise<void>
  /** Replaces the file whole or not at all, without waiting for the disk: for files that a reboot may lose. */
  writeFile(path: string, data: string | Uint8Array, mode: number): Promise<void>
  /** Creates an empty file. False: the name is taken. */
  createFile(path: string, mode: number): Promise<boolean>
  /**
   * Replaces `to` by a copy of `from`, whole or not at all. Its content is on disk when it returns, its name after
   * `syncFolder`. With `temporaryToken` the caller knows the temporary name.
   */
  copyFileDurable(from: string, to: string, mode: number, temporaryToken?: string): Promise<void>
  /** The target of a symbolic link; undefined for everything else and for a missing path. */
  readLink(path: string): Promise<string | undefined>
  /**
   * Makes `path` a link to `target`, replacing a file or link; rejects with EISDIR where a folder is. Does not wait for
   * the disk.
   */
  replaceLink(path: string, target: string, temporaryToken?: string): Promise<void>
  /** Gives a file another name; rejects with EEXIST where the name is taken. */
  link(path: string, newPath: string): Promise<void>
  rename(from: string, to: string): Promise<void>
  /**
   * Makes the folder with `mode` and what is missing above it with 0755, on disk when it returns; what exists keeps its
   * mode.
   */
  mkdirp(path: string, mode?: number): Promise<void>
  /** Makes the folder and what is missing above it, without waiting for the disk. */
  makeFolder(path: string, mode: number): Promise<void>
  /** Makes a folder with a new name, and returns its path, which starts with `prefix`. */
  makeUniqueFolder(prefix: string, mode: number): Promise<string>
  /** Removes a file, a link or a whole folder, if it exists. Links inside are removed, not followed. */
  remove(path: string): Promise<void>
  /** Removes a folder if it is empty and not in use. */
  removeEmptyFolder(path: string): Promise<void>
  readdir(path: string): Promise<string[]>
  /** The same; undefined when there is no such folder. */
  list(path: string): Promise<string[] | undefined>
  /** Paths of everything below the folder, from it on; folders behind links are not entered. */
  readTree(path: string): Promise<string[]>
  /** The same with kind, mode and hash of the content; undefined when there is no such folder. */
  describeTree(path: string): Promise<TreeEntry[] | undefined>
  /**
   * Makes one folder like another; entries that only `to` has stay. Does not wait for the disk. True: it changed
   * anything.
   */
  copyTree(from: string, to: string, copy: TreeCopy): Promise<boolean>
  /** Waits until the folder with everything in it is on disk, except entries of these names. */
  syncTree(path: string, excludedNames: readonly string[]): Promise<void>
  /** Waits until the names in the folder are on disk. */
  syncFolder(path: string): Promise<void>
  /** Of what the path leads to; undefined when nothing is there. A file in place of a folder above it is an error. */
  stat(path: string): Promise<Stats | undefined>
  /** Of the path itself, even if it is a link; undefined when nothing can be there. */
  lstat(path: string): Promise<Stats | undefined>
}

/** `mountPoint` is where the host's `/` is for this process, for example `/host`. */
export function createHostRoot(mountPoint: string, random: Random): HostRoot {
  const root = prefixOf(mountPoint)
  return createRoot(root, createTrustedWalk(root), random)
}

/** The files of this machine for a person's tool, on any system: links of all users are followed. */
export function createLocalRoot(random: Random, mountPoint = '/'): HostRoot {
  const root = prefixOf(mountPoint)
  return createRoot(root, createPlainWalk(root), random)
}

const prefixOf = (mountPoint: string): string => (mountPoint === '/' ? '' : mountPoint.replace(/\/+$/, ''))

function createRoot(root: string, walk: Walk, random: Random): HostRoot {
  const { inFolder } = walk

  /** Does something to one entry of a folder that stays open meanwhile. */
  async function at<T>(path: string, last: Last, use: (place: Place) => Promise<T>): Promise<T> {
    const place = await walk.to(path, last)
    try {
      if (place.missing) throw place.missing
      return await use(place)
    } catch (error) {
      throw place.named(error)
    } finally {
      await place.close()
    }
  }

  /** The entry itself, not what it leads to. */
  const atEntry = async <T>(path: string, use: (entry: string, place: Place) => Promise<T>): Promise<T> =>
    await at(path, 'keep', (place) => use(place.at, place))
  const atTarget = async <T>(path: string, use: (target: string, place: Place) => Promise<T>): Promise<T> =>
    await at(path, 'follow', (place) => use(place.at, place))
  const atBoth = async (from: string, to: string, use: (from: string, to: string) => Promise<void>): Promise<void> =>
    await atEntry(from, async (fromEntry) => await atEntry(to, async (toEntry) => await use(fromEntry, toEntry)))

  async function placeOf(path: string, last: Last): Promise<string> {
    const place = await walk.to(path, last)
    await place.close()
    return place.path
  }

  const syncFolderOf = async (place: Place): Promise<void> =>
    await syncFolder(`${posix.dirname(place.at)}/.`, posix.dirname(place.path))

  async function replace(path: string, data: string | Uint8Array, mode: number, durable: boolean): Promise<void> {
    await atEntry(path, async (entry, place) => {
      await replaceFile(entry, newTemporaryToken(random), async (file) => {
        await file.writeFile(data)
        await file.chmod(mode) // the umask may have taken bits away
        if (durable) await syncOpenFile(file, place.path)
      })
      if (durable) await syncFolderOf(place)
    })
  }

  async function readFile(path: string): Promise<Buffer> {
    return await atTarget(path, async (target) => {
      const file = await open(target, readFlags)
      try {
        return await file.readFile()
      } finally {
        await file.close()
      }
    })
  }

  /** Makes the folder and what is missing above it; returns the topmost that it made. */
  async function makeFolders(path: string, mode: number): Promise<string | undefined> {
    const folder = await placeOf(path, 'follow')
    try {
      await atEntry(folder, async (entry) => await mkdir(entry, { mode }))
      return folder
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'EEXIST' && (await lstatEntry(folder)).isDirectory()) return undefined
      if (code !== 'ENOENT' || folder === '/') throw error
    }
    const first = await makeFolders(posix.dirname(folder), mode)
    return (await makeFolders(folder, mode)) === undefined ? first : (first ?? folder)
  }

  const listFolder = async (path: string): Promise<string[]> =>
    await atTarget(path, async (target) => await inFolder(target, async (folder) => await readdir(folder)))
  const statTarget = async (path: string): Promise<Stats | undefined> =>
    await atTarget(path, async (target) => await lstat(target)).catch(undefinedIfAbsent)
  const lstatEntry = async (path: string): Promise<Stats> => await atEntry(path, async (entry) => await lstat(entry))

  return {
    resolve: async (path, last = 'follow') => `${root}${await placeOf(path, last)}`,
    realPath: async (path) => await placeOf(path, 'follow'),
    readFile,
    readText: async (path) => (await readFile(path).catch(ignoreNotFound))?.toString(),
    readPart: async (path, part, bytes) => await atTarget(path, (target) => readPart(target, part, bytes)),
    readFrom: async (path, offset, bytes) => await atTarget(path, (target) => readFrom(target, offset, bytes)),
    replaceBytes: async (path, range, bytes) => await atTarget(path, (target) => replaceBytes(target, range, bytes)),
    sha256: async (path) => await atTarget(path, sha256OfFile),
    newTemporaryToken: () => newTemporaryToken(random),
    writeFileDurable: (path, data, mode) => replace(path, data, mode, true),
    writeFile: (path, data, mode) => replace(path, data, mode, false),
    async createFile(path, mode) {
      try {
        await atEntry(path, async (entry) => await (await open(entry, 'wx', mode)).close())
        return true
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
        throw error
      }
    },
    async copyFileDurable(from, to, mode, temporaryToken = newTemporaryToken(random)) {
      await atTarget(from, async (source) => {
        await atEntry(to, async (entry, place) => {
          await copyFile(source, entry, { mode, sync: (copy) => syncOpenFile(copy, place.path) }, temporaryToken)
        })
      })
    },
    readLink: async (path) => await atEntry(path, readLink).catch(ignoreNotFound),
    async replaceLink(path, target, temporaryToken = newTemporaryToken(random)) {
      await atEntry(path, async (entry) => await replaceLink(entry, target, temporaryToken))
    },
    link: async (path, newPath) => await atBoth(path, newPath, link),
    rename: async (from, to) => await atBoth(from, to, rename),
    async mkdirp(path, mode = 0o755) {
      if ((await statTarget(path))?.isDirectory()) return
      const target = await placeOf(path, 'follow')
      const created = [await makeFolders(posix.dirname(target), 0o755), await makeFolders(target, mode)]
      const firstCreated = created.find((folder) => folder !== undefined)
      if (firstCreated === undefined) return
      for (let folder = target; folder.length >= firstCreated.length; folder = posix.dirname(folder))
        await atEntry(folder, async (_, place) => await syncFolderOf(place))
    },
    makeFolder: async (path, mode) => void (await makeFolders(path, mode)),
    async makeUniqueFolder(prefix, mode) {
      return await atEntry(prefix, async (entry, place) => {
        const made = await mkdtemp(entry)
        const folder = await open(made, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
        try {
          await folder.chmod(mode)
        } finally {
          await folder.close()
        }
        return `${place.path}${made.slice(entry.length)}`
      })
    },
    async remove(path) {
      await atEntry(path, async (entry) => await removeTree(entry, inFolder)).catch((error: NodeJS.ErrnoException) => {
        if (error.code !== 'ENOENT') throw error
      })
    },
    async removeEmptyFolder(path) {
      await atTarget(path, async (target) => await rmdir(target)).catch((error: NodeJS.ErrnoException) => {
        if (!['ENOTEMPTY', 'EEXIST', 'ENOENT', 'ENOTDIR', 'EBUSY'].includes(error.code ?? '')) throw error
      })
    },
    readdir: listFolder,
    list: async (path) => await listFolder(path).catch(ignoreNotFound),
    readTree: async (path) => await atTarget(path, (target) => readTree(target, inFolder)),
    describeTree: async (path) =>
      await atTarget(path, (target) => describeTree(target, inFolder)).catch(undefinedIfAbsent),
    async copyTree(from, to, copy) {
      return await atTarget(
        from,
        async (source) =>
          await atTarget(to, async (target) => await copyTree(source, target, copy, { inFolder, random })),
      )
    },
    async syncTree(path, excludedNames) {
      await atTarget(path, (target, place) => syncTree(target, place.path, inFolder, excludedNames))
    },
    syncFolder: async (path) => await atTarget(path, (target, place) => syncFolder(target, place.path)),
    stat: statTarget,
    lstat: async (path) => await lstatEntry(path).catch(ignoreNotFound),
  }
}
