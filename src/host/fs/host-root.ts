/**
 * Files of the host, whose root is mounted somewhere in the agent's container.
 *
 * Invariant: no path leads out of that root. Symbolic links are followed as the host would follow them: the host's
 * `/var/log -> /data/log` means `/host/data/log` here, and `..` stops at the host's root.
 *
 * Node has no openat2(RESOLVE_IN_ROOT), so paths are resolved by hand and used afterwards. In between somebody could
 * put a link where a folder was. All folders used here belong to the host's root, so only root on the host could do
 * that, who has the agent's power already. The last component is opened without following links.
 */
import { constants, type Stats } from 'node:fs'
import { link, lstat, mkdir, open, readdir, readlink, rename, rm, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Random } from '../../schemas/clock.ts'
import { syncFolder, syncOpenFile } from './fsync.ts'

/** The kernel's own limit (MAXSYMLINKS). */
const maxSymlinks = 40

/** All paths are absolute paths of the host; errors are those of node:fs. */
export type HostRoot = {
  /**
   * Where a path of the host is for this process. Links are followed, the last component's only with `last: 'follow'`
   * (the default). Components that do not exist are taken as they are.
   */
  resolve(path: string, last?: 'follow' | 'keep'): Promise<string>
  readFile(path: string): Promise<Buffer>
  /** Replaces the file whole or not at all, on disk when it returns. A link in its place is replaced, not followed. */
  writeFileDurable(path: string, data: string | Uint8Array, mode: number): Promise<void>
  /** Replaces the file whole or not at all, without waiting for the disk: for files that a reboot may take. */
  writeFile(path: string, data: string | Uint8Array, mode: number): Promise<void>
  /**
   * Makes the folder with `mode` and what is missing above it with 0755, on disk when it returns; what exists keeps its
   * mode.
   */
  mkdirp(path: string, mode?: number): Promise<void>
  /** Removes a file, a link or a whole folder; nothing there is fine. Links inside are removed, not followed. */
  remove(path: string): Promise<void>
  readdir(path: string): Promise<string[]>
  /** Paths of everything below the folder, from it on; folders behind links are not entered. */
  readTree(path: string): Promise<string[]>
  /** Of what the path leads to; undefined when nothing is there. A file in place of a folder above it is an error. */
  stat(path: string): Promise<Stats | undefined>
  /** The same of the path itself, even if it is a link. */
  lstat(path: string): Promise<Stats | undefined>
  /** Gives a file another name; rejects with EEXIST where the name is taken. */
  link(path: string, newPath: string): Promise<void>
  rename(from: string, to: string): Promise<void>
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
      const target = await linkTarget(`${root}/${resolvedParts.join('/')}`)
      if (target === undefined) continue
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
    const temporary = `${target}.${random.hex(6)}${temporarySuffix}`
    const file = await open(
      temporary,
      constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
      mode,
    )
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
      await unlink(temporary).catch(() => {}) // gone already when the rename succeeded
      throw error
    }
    if (durable) await syncFolder(dirname(target))
  }

  return {
    resolve,
    async readFile(path) {
      const file = await open(await resolve(path), constants.O_RDONLY | constants.O_NOFOLLOW)
      try {
        return await file.readFile()
      } finally {
        await file.close()
      }
    },
    writeFileDurable: (path, data, mode) => replace(path, data, mode, true),
    writeFile: (path, data, mode) => replace(path, data, mode, false),
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
    async remove(path) {
      await rm(await resolve(path, 'keep'), { recursive: true, force: true })
    },
    async readdir(path) {
      return await readdir(await resolve(path))
    },
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
    async stat(path) {
      return await lstat(await resolve(path)).catch(undefinedIfAbsent)
    },
    async lstat(path) {
      return await lstat(await resolve(path, 'keep')).catch(undefinedIfAbsent)
    },
    async link(path, newPath) {
      await link(await resolve(path, 'keep'), await resolve(newPath, 'keep'))
    },
    async rename(from, to) {
      await rename(await resolve(from, 'keep'), await resolve(to, 'keep'))
    },
  }
}

/** What ends the names of files that are not whole yet. After a crash they may be removed. */
export const temporarySuffix = '.tmp'
/** Of a file that this or `copyFileAtomic` of src/packages was writing; a package's own files may end in .tmp, too. */
export const isTemporary = (path: string): boolean => /\.[0-9a-f]{12}\.tmp$/.test(path)

async function linkTarget(path: string): Promise<string | undefined> {
  const stats = await lstat(path).catch(undefinedIfAbsent)
  return stats?.isSymbolicLink() ? await readlink(path) : undefined
}

function undefinedIfAbsent(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  return undefined
}
