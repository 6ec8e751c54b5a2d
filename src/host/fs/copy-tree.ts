/**
 * One folder made like another: folders, regular files, links as links. Both paths are this process's, not the host's.
 */
import { lstat, mkdir, readdir, readlink, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Random } from '../../schemas/clock.ts'
import { ignoreNotFound } from './errors.ts'
import { copyFile, haveSameContent, readLink, replaceLink } from './file-content.ts'
import { syncFile, syncFolder } from './fsync.ts'
import { newTemporaryToken } from './temporary.ts'
import { removeTree } from './tree.ts'
import type { Walk } from './walk.ts'

export type TreeCopy = {
  /** Treat a file of the same size and time as equal; otherwise compare contents. */
  readonly trustTimes: boolean
  /** Paths below the folder of files that get all execute bits. */
  readonly executables: ReadonlySet<string>
  /** Paths below the folder that are not copied. */
  readonly excludedPaths: ReadonlySet<string>
}

/**
 * Only root may write what root will execute; set-user-id bits are not copied. The umask of the operator's copy (022)
 * has the same effect.
 */
const modeMask = 0o755

/** A Date holds whole milliseconds, and the system call gets it as a fraction of seconds. */
const mtimeToleranceMs = 2

/**
 * Files are replaced whole: a running script keeps reading the one it started with. Files that only `to` has stay. Does
 * not wait for the disk, see `syncTree`. True when anything was changed.
 */
export async function copyTree(
  from: string,
  to: string,
  copy: TreeCopy,
  { inFolder, random }: { readonly inFolder: Walk['inFolder']; readonly random: Random },
): Promise<boolean> {
  let hasChanged = false
  const copyFolder = async (sourceFolder: string, targetFolder: string, prefix: string): Promise<void> => {
    for (const entry of await readdir(sourceFolder, { withFileTypes: true })) {
      const path = join(prefix, entry.name)
      if (copy.excludedPaths.has(path)) continue
      const [source, target] = [`${sourceFolder}/${entry.name}`, `${targetFolder}/${entry.name}`]
      if (entry.isDirectory()) {
        if (await ensureFolder(source, target)) hasChanged = true
        await inFolder(source, (below) => inFolder(target, (targetBelow) => copyFolder(below, targetBelow, path)))
      } else if (entry.isFile()) await ensureFile(source, target, copy.executables.has(path))
      else if (entry.isSymbolicLink()) await ensureLink(source, target)
    }
  }
  const ensureFile = async (source: string, target: string, isExecutable: boolean): Promise<void> => {
    const stats = await lstat(source)
    const mode = (stats.mode & modeMask) | (isExecutable ? 0o111 : 0)
    const existing = await lstat(target).catch(ignoreNotFound)
    if (existing?.isDirectory()) await removeTree(target, inFolder)
    if (existing?.isFile() && (existing.mode & 0o7777) === mode) {
      const hasSameTime = existing.size === stats.size && Math.abs(existing.mtimeMs - stats.mtimeMs) < mtimeToleranceMs
      if (hasSameTime && (copy.trustTimes || (await haveSameContent(source, target)))) return
    }
    hasChanged = true
    await copyFile(source, target, { mode, mtime: stats.mtime }, newTemporaryToken(random))
  }
  const ensureLink = async (source: string, target: string): Promise<void> => {
    const existing = await lstat(target).catch(ignoreNotFound)
    const linkTarget = await readlink(source)
    if ((await readLink(target)) === linkTarget) return
    hasChanged = true
    if (existing?.isDirectory()) await removeTree(target, inFolder)
    await replaceLink(target, linkTarget, newTemporaryToken(random))
  }
  /** True when it was not there. */
  const ensureFolder = async (source: string, target: string): Promise<boolean> => {
    const existing = await lstat(target).catch(ignoreNotFound)
    if (existing?.isDirectory()) return false
    if (existing !== undefined) await unlink(target) // a link too: the folder behind it is not ours to fill
    await mkdir(target, { mode: (await lstat(source)).mode & modeMask })
    return true
  }
  await inFolder(from, (source) => inFolder(to, (target) => copyFolder(source, target, '')))
  return hasChanged
}

/**
 * Waits until the folder with everything in it is on disk, except entries of these names. Links are synced with their
 * folders. `path` is its path on the host.
 */
export async function syncTree(
  at: string,
  path: string,
  inFolder: Walk['inFolder'],
  excludedNames: readonly string[] = [],
): Promise<void> {
  await inFolder(at, async (folder) => {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const { name } = entry
      if (excludedNames.includes(name)) continue
      if (entry.isDirectory()) await syncTree(`${folder}/${name}`, `${path}/${name}`, inFolder)
      else if (entry.isFile()) await syncFile(`${folder}/${name}`, `${path}/${name}`)
    }
  })
  await syncFolder(at, path)
}
