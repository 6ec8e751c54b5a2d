/**
 * Files of the host, whose root is mounted somewhere in the agent's container.
 *
 * Invariant: no path leads out of that root. Symbolic links are followed as the host would follow them: the host's
 * `/var/log -> /data/log` means `/host/data/log` here, and `..` stops at the host's root.
 *
 * Node has no openat2(RESOLVE_IN_ROOT), so paths are resolved by hand and used afterwards. Meanwhile someone could
 * put a link where a folder was. All folders used here belong to the host's root, so only root on the host could do
 * that, who has the agent's power already. The last component is opened without following links.
 */
import { constants, type Stats } from 'node:fs'
import {
  link,
  lstat,
  mkdir,
  mkdtemp,
  chmod,
  open,
  readdir,
  readlink,
  rename,
  rm,
  rmdir,
  unlink,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Random } from '../../schemas/clock.ts'
import { copyTree, syncTree, type TreeCopy } from './copy-tree.ts'
import { copyFile, readFrom, readPart, sha256OfFile } from './file-content.ts'
import { syncFolder, syncOpenFile } from './fsync.ts'
import { readLink, replaceLink } from './links.ts'
import { ignoreNotFound } from './missing.ts'
import { namingTarget, newTemporaryToken, temporaryName } from './temporary.ts'
import { describeTree, type TreeEntry } from './tree.ts'

/** The kernel's own limit (MAXSYMLINKS). */
const maxSymlinks = 40

/** All paths are absolute paths of the host; errors are those of node:fs. */
export type HostRoot = {
  /**
   * Where a path of the host is for this process. Links are followed, the last component's only with `last: 'follow'`
   * (the default). Components that do not exist are taken as they are.
   */
  resolve(path: string, last?: 'follow' | 'keep'): Promise<string>
  /** The path that this path leads to, as the host names it. */
  realPath(path: string): Promise<string>
  readFile(path: string): Promise<Buffer>
  /** The same as text; undefined when there is no such file. */
  readText(path: string): Promise<string | undefined>
  /** At most `bytes` bytes of a file: the first ones, or the last ones. */
  readPart(path: string, part: 'start' | 'end', bytes: number): Promise<Buffer>
  /** At most `bytes` bytes from `offset` on, and how long the whole file is at that moment. */
  readFrom(path: string, offset: number, bytes: number): Promise<{ readonly bytes: Buffer; readonly sizeBytes: number }>
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
   * Replaces `to` by a copy of `from`, whole or not at all, on disk when it returns. With `temporaryToken` the caller
   * knows the temporary name.
   */
  copyFileDurable(from: string, to: string, mode: number, temporaryToken?: string): Promise<void>
  /** Where a symbolic link points to; undefined for everything else and where nothing is. */
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
  /** Removes a file, a link or a whole folder; nothing there is fine. Links inside are removed, not followed. */
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
  /** Makes one folder like another; what only `to` has stays. Does not wait for the disk. True: it changed anything. */
  copyTree(from: string, to: string, copy: TreeCopy): Promise<boolean>
  /** Waits until the folder with everything in it is on disk, but entries of these names. */
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
  const root = mountPoint === '/' ? '' : mountPoint.replace(/\/+$/, '')

  async function resolve(path: string, last: 'follow' | 'keep' = 'follow'): Promise<string> {
    if (!path.startsWith('/')) throw new Error(`${JSON.stringify(path)} is not an absolute path of the host`)
    if (path.includes('\0')) throw new Error(`${JSON.stringify(path)} is not a path`)
    const remaining = path.split('/').reverse()
    const resolvedParts: string[] = []
    let links = 0
    for (let name = remaining.pop(); name !== undefined; name = remaining.pop()) {
      if (name === '' || name === '.') continue
      if (name === '..') {
        resolvedParts.pop()
        continue
      }
      resolvedParts.push(name)
      if (last === 'keep' && remaining.every((rest) => rest === '' || rest === '.')) continue
      const component = `${root}/${resolvedParts.join('/')}`
      const stats = await lstat(component).catch(undefinedIfAbsent)
      if (!stats?.isSymbolicLink()) continue
      const target = await readlink(component)
      if (++links > maxSymlinks)
        throw Object.assign(new Error(`ELOOP: too many symbolic links, resolve '${path}'`), { code: 'ELOOP' })
      if (target.startsWith('/')) resolvedParts.length = 0
      else resolvedParts.pop()
      remaining.push(...target.split('/').reverse())
    }
    return `${root}/${resolvedParts.join('/')}`
  }

  async function replace(path: string, data: string | Uint8Array, mode: number, durable: boolean): Promise<void> {
    const target = await resolve(path, 'keep')
    const temporary = temporaryName(target, newTemporaryToken(random))
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW
    const file = await open(temporary, flags, mode).catch((error: unknown) => {
      throw namingTarget(error, temporary, target)
    })
    try {
      try {
        await file.writeFile(data)
        await file.chmod(mode) // the umask may have taken bits away
        if (durable) await syncOpenFile(file, target)
      } finally {
        await file.close()
      }
      await rename(temporary, target)
    } catch (error) {
      await unlink(temporary).catch(() => {}) // missing when the rename succeeded
      throw namingTarget(error, temporary, target)
    }
    if (durable) await syncFolder(dirname(target))
  }

  async function readFile(path: string): Promise<Buffer> {
    const file = await open(await resolve(path), constants.O_RDONLY | constants.O_NOFOLLOW)
    try {
      return await file.readFile()
    } finally {
      await file.close()
    }
  }

  const listFolder = async (path: string): Promise<string[]> => await readdir(await resolve(path))
  const lstatEntry = async (path: string): Promise<Stats> => await lstat(await entryOf(path))

  /** The entry itself, not what it leads to. */
  const entryOf = (path: string): Promise<string> => resolve(path, 'keep')

  return {
    resolve,
    async realPath(path) {
      return (await resolve(path)).slice(root.length)
    },
    readFile,
    readText: async (path) => (await readFile(path).catch(ignoreNotFound))?.toString(),
    readPart: async (path, part, bytes) => await readPart(await resolve(path), part, bytes),
    readFrom: async (path, offset, bytes) => await readFrom(await resolve(path), offset, bytes),
    sha256: async (path) => await sha256OfFile(await resolve(path)),
    newTemporaryToken: () => newTemporaryToken(random),
    writeFileDurable: (path, data, mode) => replace(path, data, mode, true),
    writeFile: (path, data, mode) => replace(path, data, mode, false),
    async createFile(path, mode) {
      try {
        const file = await open(await entryOf(path), 'wx', mode)
        await file.close()
        return true
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
        throw error
      }
    },
    async copyFileDurable(from, to, mode, temporaryToken = newTemporaryToken(random)) {
      await copyFile(await resolve(from), await entryOf(to), { mode, durable: true }, temporaryToken)
    },
    readLink: async (path) => await readLink(await entryOf(path)),
    async replaceLink(path, target, temporaryToken = newTemporaryToken(random)) {
      await replaceLink(await entryOf(path), target, temporaryToken)
    },
    link: async (path, newPath) => await link(await entryOf(path), await entryOf(newPath)),
    rename: async (from, to) => await rename(await entryOf(from), await entryOf(to)),
    async mkdirp(path, mode = 0o755) {
      const target = await resolve(path)
      const created = [
        await mkdir(dirname(target), { recursive: true, mode: 0o755 }),
        await mkdir(target, { recursive: true, mode }),
      ]
      const firstCreated = created.find((folder) => folder !== undefined)
      if (firstCreated === undefined) return
      for (let folder = target; folder.length >= firstCreated.length; folder = dirname(folder))
        await syncFolder(dirname(folder))
    },
    async makeFolder(path, mode) {
      await mkdir(await resolve(path), { recursive: true, mode })
    },
    async makeUniqueFolder(prefix, mode) {
      const folder = await mkdtemp(await entryOf(prefix))
      await chmod(folder, mode)
      return folder.slice(root.length)
    },
    remove: async (path) => await rm(await entryOf(path), { recursive: true, force: true }),
    async removeEmptyFolder(path) {
      await rmdir(await resolve(path)).catch((error: NodeJS.ErrnoException) => {
        if (!['ENOTEMPTY', 'EEXIST', 'ENOENT', 'ENOTDIR', 'EBUSY'].includes(error.code ?? '')) throw error
      })
    },
    readdir: listFolder,
    list: async (path) => await listFolder(path).catch(ignoreNotFound),
    async readTree(path) {
      const folder = await resolve(path)
      const found: string[] = []
      const walk = async (relativePath: string): Promise<void> => {
        for (const entry of await readdir(join(folder, relativePath), { withFileTypes: true })) {
          const path = join(relativePath, entry.name)
          found.push(path)
          if (entry.isDirectory()) await walk(path)
        }
      }
      await walk('')
      return found
    },
    describeTree: async (path) => await describeTree(await resolve(path)),
    copyTree: async (from, to, copy) => await copyTree(await resolve(from), await resolve(to), copy, random),
    syncTree: async (path, excludedNames) => await syncTree(await resolve(path), excludedNames),
    syncFolder: async (path) => await syncFolder(await resolve(path)),
    stat: async (path) => await lstat(await resolve(path)).catch(undefinedIfAbsent),
    lstat: async (path) => await lstatEntry(path).catch(ignoreNotFound),
  }
}

function undefinedIfAbsent(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  return undefined
}
