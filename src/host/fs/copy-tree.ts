/**
 * One folder made like another: folders, regular files, links as links. Both paths are this process's, not the host's.
 */
import { chmod, lstat, mkdir, readdir, readlink, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Random } from '../../schemas/clock.ts'
import { copyFile, haveSameContent } from './file-content.ts'
import { syncFile, syncFolder } from './fsync.ts'
import { readLink, replaceLink } from './links.ts'
import { ignoreNotFound } from './missing.ts'
import { newTemporaryToken } from './temporary.ts'

export type TreeCopy = {
  /** Take a file of the same size and time for the same; else contents are compared. */
  readonly trustTimes: boolean
  /** Paths below the folder of files that get all execute bits. */
  readonly executables: ReadonlySet<string>
  /** Paths below the folder that are not copied. */
  readonly excludedPaths: ReadonlySet<string>
}

/**
 * Nobody but root may write what root will execute; set-user-id bits do not travel. The umask of the operator's copy
 * (022) has the same effect.
 */
const modeMask = 0o755

/** A Date holds whole milliseconds, and the system call gets it as a fraction of seconds. */
const mtimeToleranceMs = 2

/**
 * Files are replaced whole: a running script keeps reading the one it started with. What only `to` has stays. Does not
 * wait for the disk, see `syncTree`. True when anything was changed.
 */
export async function copyTree(from: string, to: string, copy: TreeCopy, random: Random): Promise<boolean> {
  let hasChanged = false
  const copyFolder = async (folder: string): Promise<void> => {
    for (const entry of await readdir(join(from, folder), { withFileTypes: true })) {
      const path = join(folder, entry.name)
      if (copy.excludedPaths.has(path)) continue
      const [source, target] = [join(from, path), join(to, path)]
      if (entry.isDirectory()) {
        if (await ensureFolder(source, target)) hasChanged = true
        await copyFolder(path)
      } else if (entry.isFile()) await ensureFile(source, target, copy.executables.has(path))
      else if (entry.isSymbolicLink()) await ensureLink(source, target)
    }
  }
  const ensureFile = async (source: string, target: string, isExecutable: boolean): Promise<void> => {
    const stats = await lstat(source)
    const mode = (stats.mode & modeMask) | (isExecutable ? 0o111 : 0)
    const existing = await lstat(target).catch(ignoreNotFound)
    if (existing?.isDirectory()) await rm(target, { recursive: true })
    if (existing?.isFile()) {
      const hasSameTime = existing.size === stats.size && Math.abs(existing.mtimeMs - stats.mtimeMs) < mtimeToleranceMs
      if (copy.trustTimes ? hasSameTime : await haveSameContent(source, target)) {
        if ((existing.mode & 0o7777) !== mode) {
          hasChanged = true
          await chmod(target, mode)
        }
        if (hasSameTime) return
      }
    }
    hasChanged = true
    await copyFile(source, target, { mode, durable: false, mtime: stats.mtime }, newTemporaryToken(random))
  }
  const ensureLink = async (source: string, target: string): Promise<void> => {
    const existing = await lstat(target).catch(ignoreNotFound)
    const linkTarget = await readlink(source)
    if ((await readLink(target)) === linkTarget) return
    hasChanged = true
    if (existing?.isDirectory()) await rm(target, { recursive: true })
    await replaceLink(target, linkTarget, newTemporaryToken(random))
  }
  await copyFolder('')
  return hasChanged
}

/** True when it was not there. */
async function ensureFolder(from: string, to: string): Promise<boolean> {
  const existing = await lstat(to).catch(ignoreNotFound)
  if (existing?.isDirectory()) return false
  if (existing !== undefined) await rm(to) // a link too: the folder behind it is not ours to fill
  await mkdir(to, { mode: (await lstat(from)).mode & modeMask })
  return true
}

/** Waits until the folder with everything in it is on disk, but entries of these names. Links are in their folders. */
export async function syncTree(folder: string, excludedNames: readonly string[] = []): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (excludedNames.includes(entry.name)) continue
    if (entry.isDirectory()) await syncTree(path)
    else if (entry.isFile()) await syncFile(path)
  }
  await syncFolder(folder)
}
