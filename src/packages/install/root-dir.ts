/**
 * `root_dir/` of a package: files for the host's root itself. Copied once per content; what was written is on record
 * before it is written, so that an uninstall removes what is ours and nothing else.
 *
 * Folders that exist keep their mode (the operator stamps the package's on `/` and `/tmp`), links are copied as links,
 * and links of the host are followed inside the host only.
 */
import { lstat, mkdir, readlink, rmdir } from 'node:fs/promises'
import { posix } from 'node:path'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { copyFileAtomic, sha256OfFile } from './file-content.ts'
import { withLock } from './keyed-mutex.ts'
import type { HostFolders } from '../layout.ts'
import { ensureLink } from './links.ts'
import { ignoreNotFound } from '../../host/fs/missing.ts'
import {
  newRootDirRecord,
  readRootDirRecord,
  writeRootDirRecord,
  type RecordedFile,
  type RootDirRecord,
} from './root-dir-record.ts'
import { readTree, type TreeEntry } from './root-dir-tree.ts'

export type InstalledRootDir =
  | { readonly outcome: 'absent' } // the package has none
  | { readonly outcome: 'unchanged' }
  | { readonly outcome: 'copied'; readonly files: number }
  /** Sentences: the host has a folder where the package has a file, or the reverse. Nothing was written. */
  | { readonly outcome: 'conflict'; readonly problems: readonly string[] }

/** Where the record of one package of one Skyhook lies on the host. */
export function rootDirRecordFile(folders: HostFolders, skyhook: string, packageName: string): string {
  return `${folders.copyDirRoot}/.agent/root-files/${skyhook}/${packageName}.json`
}

/**
 * Copies `<packageDir>/root_dir` (host path) over the host's root, durably. Safe to repeat after a crash at any point.
 * Files of an earlier version that this one lacks stay until the uninstall. Rejects with the disk's error.
 */
export async function installRootDir(
  host: HostRoot,
  packageDir: string,
  recordFile: string,
): Promise<InstalledRootDir> {
  return await withLock(host, recordFile, async () => await install(host, packageDir, recordFile))
}

async function install(host: HostRoot, packageDir: string, recordFile: string): Promise<InstalledRootDir> {
  const tree = await readTree(await host.resolve(`${packageDir}/root_dir`))
  if (tree === undefined) return { outcome: 'absent' }

  const previous = await readRootDirRecord(host, recordFile)
  if (previous?.isComplete === true && previous.hash === tree.hash) return { outcome: 'unchanged' }

  const plan = await planCopy(host, tree.entries, previous)
  if (plan.problems.length > 0) return { outcome: 'conflict', problems: plan.problems }

  const record = newRootDirRecord(tree.hash, plan, previous)
  await writeRootDirRecord(host, recordFile, record)
  for (const { entry, path } of plan.steps) await write(host, entry, path)
  await writeRootDirRecord(host, recordFile, { ...record, isComplete: true })
  return { outcome: 'copied', files: plan.files.length }
}

export type KeptFile = { readonly path: string; readonly why: 'changed' | 'was there before' }

/** Removes what is still as the package left it, and folders that are empty then; returns what stays. Idempotent. */
export async function uninstallRootDir(host: HostRoot, recordFile: string): Promise<KeptFile[]> {
  return await withLock(host, recordFile, async () => await uninstall(host, recordFile))
}

async function uninstall(host: HostRoot, recordFile: string): Promise<KeptFile[]> {
  const record = await readRootDirRecord(host, recordFile)
  if (record === undefined) return []
  const keptFiles: KeptFile[] = []
  for (const file of record.files) {
    if ((await host.stat(posix.dirname(file.path)).catch(ignoreNotFound)) === undefined) continue
    const realPath = await host.resolve(file.path, 'keep')
    if ((await lstat(realPath).catch(ignoreNotFound)) === undefined) continue
    if (file.wasThere) keptFiles.push({ path: file.path, why: 'was there before' })
    else if (await isUnmodified(realPath, file)) await host.remove(file.path)
    else keptFiles.push({ path: file.path, why: 'changed' })
  }
  for (const folder of record.folders.toSorted((a, b) => b.length - a.length)) {
    await rmdir(await host.resolve(folder)).catch(ignoreNotEmpty) // deeper ones first
  }
  await host.remove(recordFile)
  return keptFiles
}

type CopyPlan = Pick<RootDirRecord, 'files' | 'folders'> & {
  readonly problems: readonly string[]
  readonly steps: readonly { readonly entry: TreeEntry; readonly path: string }[]
}

/** What each entry would do to the host; nothing is written yet. */
async function planCopy(
  host: HostRoot,
  entries: readonly TreeEntry[],
  previous: RootDirRecord | undefined,
): Promise<CopyPlan> {
  const recordedFiles = new Map(previous?.files.map((file) => [file.path, file]))
  let blockedPath = '' // a folder of the package that the host has a file for: what is below it says nothing new
  const plan = {
    files: [] as RecordedFile[],
    folders: [] as string[],
    problems: [] as string[],
    steps: [] as { entry: TreeEntry; path: string }[],
  }
  for (const entry of entries) {
    if (blockedPath !== '' && entry.path.startsWith(`${blockedPath}/`)) continue
    // A link at the end is followed for folders and files, so that /etc/resolv.conf goes on being one; never out of the
    // host.
    const path = entry.kind === 'link' ? entry.path : await hostPath(host, entry.path)
    const existing = await lstat(await host.resolve(path, 'keep')).catch(ignoreNotFound)
    if (entry.kind === 'folder') {
      if (existing === undefined) {
        plan.folders.push(path)
        plan.steps.push({ entry, path })
      } else if (!existing.isDirectory()) {
        blockedPath = entry.path
        plan.problems.push(`root_dir${entry.path} is a folder, and the host has a file there`)
      }
      continue
    }
    if (existing?.isDirectory()) {
      plan.problems.push(`root_dir${entry.path} is a ${entry.kind}, and the host has a folder there`)
      continue
    }
    const wasThere = recordedFiles.get(path)?.wasThere ?? existing !== undefined
    plan.files.push({
      path,
      wasThere,
      ...(entry.kind === 'file' ? { sha256: entry.sha256 } : { target: entry.target }),
    })
    plan.steps.push({ entry, path })
  }
  return plan
}

/** The path on the host that a path leads to, links resolved. */
async function hostPath(host: HostRoot, path: string): Promise<string> {
  return posix.join('/', posix.relative(await host.resolve('/'), await host.resolve(path)))
}

async function write(host: HostRoot, entry: TreeEntry, path: string): Promise<void> {
  await host.mkdirp(posix.dirname(path)) // missing only behind a dangling link of the host
  const realPath = await host.resolve(path, 'keep')
  switch (entry.kind) {
    case 'folder':
      await mkdir(realPath, { mode: entry.mode }).catch(ignoreAlreadyExists)
      break
    case 'file':
      await copyFileAtomic(entry.source, realPath, { mode: entry.mode, durable: true })
      break
    case 'link':
      await ensureLink(realPath, entry.target)
      break
  }
}

async function isUnmodified(realPath: string, file: RecordedFile): Promise<boolean> {
  const stats = await lstat(realPath)
  if (file.target !== undefined) return stats.isSymbolicLink() && (await readlink(realPath)) === file.target
  return stats.isFile() && (await sha256OfFile(realPath)) === file.sha256
}

function ignoreAlreadyExists(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
}

function ignoreNotEmpty(error: unknown): void {
  const { code = '' } = error as NodeJS.ErrnoException
  if (!['ENOTEMPTY', 'EEXIST', 'ENOENT', 'ENOTDIR', 'EBUSY'].includes(code)) throw error
}
