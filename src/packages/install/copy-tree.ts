/**
 * One folder made like another: folders, regular files, links as links. Both paths are this process's, not the host's.
 */
import { chmod, lstat, mkdir, readdir, readlink, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { syncFile, syncFolder } from '../../host/fs/fsync.ts'
import { copyFileAtomic, haveSameContent } from './file-content.ts'
import { ensureLink } from './links.ts'
import { ignoreNotFound } from '../../host/fs/missing.ts'

export type TreeCopy = {
  readonly from: string
  readonly to: string
  /** Take a file of the same size and time for the same; else contents are compared. */
  readonly trustTimes: boolean
  /** Paths below `from` of files that get all execute bits. */
  readonly executables: ReadonlySet<string>
  /** Paths below `from` that are not copied. */
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
 * Files are replaced whole: a script that runs goes on reading the one it began with. What only `to` has, stays. Does
 * not wait for the disk, see `syncTree`.
 */
export async function copyTree(copy: TreeCopy): Promise<void> {
  for (const entry of await readdir(copy.from, { withFileTypes: true })) {
    const from = join(copy.from, entry.name)
    const to = join(copy.to, entry.name)
    if (copy.excludedPaths.has(from)) continue
    if (entry.isDirectory()) {
      await ensureFolder(from, to)
      await copyTree({ ...copy, from, to })
    } else if (entry.isFile()) await ensureFile(copy, from, to)
    else if (entry.isSymbolicLink()) await ensureLink(to, await readlink(from))
  }
}

async function ensureFolder(from: string, to: string): Promise<void> {
  const existing = await lstat(to).catch(ignoreNotFound)
  if (existing?.isDirectory()) return
  if (existing !== undefined) await rm(to) // a link too: the folder behind it is not ours to fill
  await mkdir(to, { mode: (await lstat(from)).mode & modeMask })
}

async function ensureFile({ trustTimes, executables }: TreeCopy, from: string, to: string): Promise<void> {
  const source = await lstat(from)
  const mode = (source.mode & modeMask) | (executables.has(from) ? 0o111 : 0)
  const existing = await lstat(to).catch(ignoreNotFound)
  if (existing?.isDirectory()) await rm(to, { recursive: true })
  if (existing?.isFile()) {
    const hasSameTime = existing.size === source.size && Math.abs(existing.mtimeMs - source.mtimeMs) < mtimeToleranceMs
    if (trustTimes ? hasSameTime : await haveSameContent(from, to)) {
      if ((existing.mode & 0o7777) !== mode) await chmod(to, mode)
      if (hasSameTime) return
    }
  }
  await copyFileAtomic(from, to, { mode, durable: false, mtime: source.mtime })
}

/**
 * A folder with everything in it is on disk when this returns; folders of these names are left out, links live in their
 * folders.
 */
export async function syncTree(folder: string, excludedPaths: ReadonlySet<string> = new Set()): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (excludedPaths.has(path)) continue
    if (entry.isDirectory()) await syncTree(path)
    else if (entry.isFile()) await syncFile(path)
  }
  await syncFolder(folder)
}
