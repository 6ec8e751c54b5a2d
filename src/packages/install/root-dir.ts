/**
 * `root_dir/` of a package: files for the host's root itself. Copied once per content; what was written is on record
 * before it is written, so that an uninstall removes what is ours and nothing else.
 *
 * A record that is complete means that all of it is on disk. The files may be on another file system than the record,
 * or on one that does not write changes in their order: each folder with a changed name is synced before the record.
 *
 * Folders that exist keep their mode (the operator stamps the package's on `/` and `/tmp`), links are copied as links,
 * and links of the host are followed inside the host only.
 */
import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { agentFolder } from '../../host/fs/journal-file.ts'
import { ignoreNotFound } from '../../host/fs/missing.ts'
import { isTemporary, temporaryName } from '../../host/fs/temporary.ts'
import type { TreeEntry } from '../../host/fs/tree.ts'
import { withLock } from '../keyed-mutex.ts'
import {
  newRootDirRecord,
  readRootDirRecord,
  writeRootDirRecord,
  type RecordedFile,
  type RootDirRecord,
} from './root-dir-record.ts'

export type InstalledRootDir =
  | { readonly outcome: 'absent' } // the package has none
  | { readonly outcome: 'unchanged' }
  | { readonly outcome: 'copied'; readonly files: number }
  /** Sentences: the host has a folder where the package has a file, or the reverse. Nothing was written. */
  | { readonly outcome: 'conflict'; readonly problems: readonly string[] }

const recordsFolder = `${agentFolder}/root-files`

/** Where the record of one package of one Skyhook lies on the host. */
export function rootDirRecordFile(skyhook: string, packageName: string): string {
  return `${recordsFolder}/${skyhook}/${packageName}.json`
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
  const source = `${packageDir}/root_dir`
  const entries = await host.describeTree(source)
  if (entries === undefined) return { outcome: 'absent' }

  const previous = await readRootDirRecord(host, recordFile)
  const hash = createHash('sha256').update(JSON.stringify(entries)).digest('hex')
  if (previous?.isComplete === true && previous.hash === hash) return { outcome: 'unchanged' }

  await removeTemporaries(host, previous)
  const plan = await planCopy(host, entries, previous)
  if (plan.problems.length > 0) return { outcome: 'conflict', problems: plan.problems }

  const token = host.newTemporaryToken()
  const record = newRootDirRecord(hash, plan, previous, token)
  await writeRootDirRecord(host, recordFile, record)
  for (const { entry, path } of plan.steps) await write(host, source, entry, path, token)
  const links = plan.files.flatMap(({ path, target }) => (target === undefined ? [] : [path]))
  await syncNames(host, [...links, ...record.folders]) // files are synced with their names
  await writeRootDirRecord(host, recordFile, { ...record, isComplete: true })
  return { outcome: 'copied', files: plan.files.length }
}

export type KeptFile = { readonly path: string; readonly why: 'changed' | 'was there before' }

/**
 * Removes what is still as the package left it, and folders that are empty then, durably; returns what stays.
 * Idempotent.
 */
export async function uninstallRootDir(host: HostRoot, recordFile: string): Promise<KeptFile[]> {
  return await withLock(host, recordFile, async () => await uninstall(host, recordFile))
}

async function uninstall(host: HostRoot, recordFile: string): Promise<KeptFile[]> {
  const record = await readRootDirRecord(host, recordFile)
  if (record === undefined) return []
  await removeTemporaries(host, record)
  // Nobody may take for installed what is removed in part.
  if (record.isComplete) await writeRootDirRecord(host, recordFile, { ...record, isComplete: false })
  const keptFiles: KeptFile[] = []
  for (const file of record.files) {
    if ((await host.lstat(file.path)) === undefined) continue
    if (file.wasThere) keptFiles.push({ path: file.path, why: 'was there before' })
    else if (await isUnmodified(host, file)) await host.remove(file.path)
    else keptFiles.push({ path: file.path, why: 'changed' })
  }
  for (const folder of record.folders.toSorted((a, b) => b.length - a.length)) {
    await host.removeEmptyFolder(folder) // deeper ones first
  }
  await syncNames(host, [...record.files.map(({ path }) => path), ...record.folders])
  await host.remove(recordFile)
  await syncNames(host, [recordFile])
  return keptFiles
}

/** At the start of an agent: removes what a previous one left beside the host's files when it was killed. */
export async function sweepRootDirs(host: HostRoot): Promise<void> {
  for (const skyhook of (await host.list(recordsFolder)) ?? []) {
    for (const name of (await host.list(`${recordsFolder}/${skyhook}`)) ?? []) {
      const file = `${recordsFolder}/${skyhook}/${name}`
      if (isTemporary(file)) await host.remove(file)
      else await withLock(host, file, async () => await removeTemporaries(host, await readRootDirRecord(host, file)))
    }
  }
}

/** Only of a copy that did not end: nobody else can have made a file with its token. */
async function removeTemporaries(host: HostRoot, record: RootDirRecord | undefined): Promise<void> {
  const { temporaryToken, isComplete, files } = record ?? { isComplete: true, files: [] }
  if (isComplete || temporaryToken === undefined) return
  const paths = files.map(({ path }) => path)
  for (const path of paths) await host.remove(temporaryName(path, temporaryToken))
  await syncNames(host, paths) // the record that knows the token is about to be replaced
}

/** Waits until it is on disk which of these paths exist, whoever made or removed them. */
async function syncNames(host: HostRoot, paths: readonly string[]): Promise<void> {
  const folders = new Set<string>()
  for (const parent of new Set(paths.map((path) => posix.dirname(path)))) folders.add(await nearestFolder(host, parent))
  for (const folder of folders) await host.syncFolder(folder)
}

/** The folder itself; where it is gone, the first one above it that is not. */
async function nearestFolder(host: HostRoot, path: string): Promise<string> {
  const folder = await host.realPath(path).catch(ignoreNotFound)
  if (folder !== undefined && (await host.lstat(folder))?.isDirectory()) return folder
  return await nearestFolder(host, posix.dirname(folder ?? path))
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
    // A link at the end is followed for folders and files, so that /etc/resolv.conf stays one; never out of the
    // host.
    const path = entry.kind === 'link' ? entry.path : await host.realPath(entry.path)
    const existing = await host.lstat(path)
    if (entry.kind === 'folder') {
      if (existing === undefined) {
        plan.folders.push(path)
        plan.steps.push({ entry, path })
      } else if (!existing.isDirectory()) {
        blockedPath = entry.path
        plan.problems.push(`root_dir${entry.path} is a folder, but the host has a file there`)
      }
      continue
    }
    if (existing?.isDirectory()) {
      plan.problems.push(`root_dir${entry.path} is a ${entry.kind}, but the host has a folder there`)
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

async function write(host: HostRoot, source: string, entry: TreeEntry, path: string, token: string): Promise<void> {
  await host.mkdirp(posix.dirname(path)) // missing only behind a dangling link of the host
  switch (entry.kind) {
    case 'folder':
      return await host.makeFolder(path, entry.mode)
    case 'file':
      return await host.copyFileDurable(`${source}${entry.path}`, path, entry.mode, token)
    case 'link':
      return await host.replaceLink(path, entry.target, token)
  }
}

async function isUnmodified(host: HostRoot, { path, target, sha256 }: RecordedFile): Promise<boolean> {
  if (target !== undefined) return (await host.readLink(path)) === target
  return (await host.lstat(path))?.isFile() === true && (await host.sha256(path)) === sha256
}
