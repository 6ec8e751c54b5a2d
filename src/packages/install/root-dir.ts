/**
 * `root_dir/` of a package: files for the host's root itself. Each content is copied once. Every path is recorded
 * before it is written, so that an uninstall removes exactly what the package installed.
 *
 * A complete record means that all files are on disk. The files may be on another file system than the record, or on
 * one that reorders writes. Therefore each folder with a changed name is synced before the record.
 *
 * Existing folders keep their mode (the operator applies the package's mode to `/` and `/tmp`). Links are copied as
 * links. Links of the host are followed only inside the host, and only if root owns them. Other users may change the
 * folders meanwhile: a path that they replaced belongs to them.
 */
import { createHash } from 'node:crypto'
import type { Stats } from 'node:fs'
import { posix } from 'node:path'
import { ignoreNotFound } from '../../host/fs/errors.ts'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { isTemporary, temporaryName } from '../../host/fs/temporary.ts'
import type { TreeEntry } from '../../host/fs/tree.ts'
import { ignoreUntrusted, UntrustedLinkError } from '../../host/fs/trust.ts'
import { withLock } from '../keyed-mutex.ts'
import {
  disputedPaths,
  listRootDirRecords,
  newRootDirRecord,
  type RecordedFile,
  type RootDirRecord,
  readRootDirRecord,
  readRootDirRecords,
  recordsFolder,
  withHeritage,
  writeRootDirRecord,
} from './root-dir-record.ts'

export type InstalledRootDir =
  | { readonly outcome: 'absent' } // the package has no root_dir
  | { readonly outcome: 'unchanged' }
  | { readonly outcome: 'copied'; readonly files: number; readonly disputes: readonly Dispute[] }
  /** It was installed before; these paths were missing. */
  | { readonly outcome: 'restored'; readonly paths: readonly string[]; readonly disputes: readonly Dispute[] }
  /**
   * Sentences: the host has a folder where the package has a file, or a file where it has a folder, or another user's
   * link.
   */
  | { readonly outcome: 'conflict'; readonly problems: readonly string[] }

/**
 * Paths that another package (`SKYHOOK/PACKAGE`) has with different content: the host has the content installed last.
 */
export type Dispute = { readonly owner: string; readonly paths: readonly string[] }

/**
 * Copies `<packageDir>/root_dir` (host path) over the host's root, durably. Safe to repeat after a crash at any point.
 * If the content was installed before, missing files are restored and changed files stay changed. Files of an earlier
 * version that this version lacks stay until the uninstall. Rejects with the disk's error.
 */
export async function installRootDir(
  host: HostRoot,
  packageDir: string,
  recordFile: string,
): Promise<InstalledRootDir> {
  return await withLock(host, recordsFolder, async () => {
    try {
      return await install(host, packageDir, recordFile)
    } catch (error) {
      // a link that was created after the plan
      if (error instanceof UntrustedLinkError) return { outcome: 'conflict', problems: [error.message] }
      throw error
    }
  })
}

async function install(host: HostRoot, packageDir: string, recordFile: string): Promise<InstalledRootDir> {
  const source = `${packageDir}/root_dir`
  const entries = await host.describeTree(source)
  if (entries === undefined) return { outcome: 'absent' }

  const previous = await readRootDirRecord(host, recordFile)
  const hash = createHash('sha256').update(JSON.stringify(entries)).digest('hex')
  const isInstalled = previous?.isComplete === true && previous.hash === hash
  if (isInstalled && (await areAllThere(host, entries))) return { outcome: 'unchanged' }
  await removeTemporaries(host, previous)
  const plan = await planCopy(host, entries, previous)
  const steps = isInstalled ? plan.steps.filter(({ isMissing }) => isMissing) : plan.steps
  if (isInstalled && steps.length === 0) return { outcome: 'unchanged' }
  if (!isInstalled && plan.problems.length > 0) return { outcome: 'conflict', problems: plan.problems }

  const token = host.newTemporaryToken()
  const record = newRootDirRecord(hash, plan, previous, token)
  await writeRootDirRecord(host, recordFile, record)
  for (const step of steps) await write(host, source, step, token)
  await syncNames(host, [...plan.files.map(({ path }) => path), ...record.folders])
  await writeRootDirRecord(host, recordFile, { ...record, isComplete: true })
  const disputes = await disputesOf(host, recordFile, plan)
  if (isInstalled) return { outcome: 'restored', paths: steps.map(({ path }) => path), disputes }
  return { outcome: 'copied', files: plan.files.length, disputes }
}

async function disputesOf(host: HostRoot, recordFile: string, plan: CopyPlan): Promise<readonly Dispute[]> {
  const others = await readRootDirRecords(host, recordFile)
  return others
    .map(({ owner, record }) => ({ owner, paths: disputedPaths(plan, record) }))
    .filter(({ paths }) => paths.length > 0)
}

export type KeptFile = {
  readonly path: string
  readonly why: 'changed' | 'was there before' | 'of another package'
  /** The owning package, as `SKYHOOK/PACKAGE`. */
  readonly owner?: string
}

/**
 * Durably removes files that are unchanged since the package installed them and that no other package has, and then
 * empty folders. Returns what stays. Idempotent.
 */
export async function uninstallRootDir(host: HostRoot, recordFile: string): Promise<KeptFile[]> {
  return await withLock(host, recordsFolder, async () => await uninstall(host, recordFile))
}

async function uninstall(host: HostRoot, recordFile: string): Promise<KeptFile[]> {
  const record = await readRootDirRecord(host, recordFile)
  if (record === undefined) return []
  await removeTemporaries(host, record)
  // A partly removed root_dir must not count as installed.
  if (record.isComplete) await writeRootDirRecord(host, recordFile, { ...record, isComplete: false })
  const owners = await passOn(host, recordFile, record)
  const keptFiles: KeptFile[] = []
  for (const file of record.files) {
    const { path } = file
    const owner = owners.get(path)
    if (owner !== undefined) keptFiles.push({ path, why: 'of another package', owner })
    else if ((await fateOf(host, file)) === 'removed') continue
    else keptFiles.push({ path, why: file.wasThere ? 'was there before' : 'changed' })
  }
  for (const folder of record.folders.toSorted((a, b) => b.length - a.length)) {
    if (!owners.has(folder)) await host.removeEmptyFolder(folder).catch(ignoreUntrusted) // deepest first
  }
  await syncNames(host, [...record.files.map(({ path }) => path), ...record.folders])
  await host.remove(recordFile)
  await syncNames(host, [recordFile])
  return keptFiles
}

async function fateOf(host: HostRoot, file: RecordedFile): Promise<'removed' | 'kept'> {
  try {
    if ((await host.lstat(file.path)) === undefined) return 'removed'
    if (file.wasThere || !(await isUnmodified(host, file))) return 'kept'
    await host.remove(file.path)
    return 'removed'
  } catch (error) {
    if (error instanceof UntrustedLinkError) return 'kept' // a user has replaced a folder by a link
    throw error
  }
}

/**
 * Transfers paths that other packages list, too, to these packages, and returns the new owner of each path. The
 * transfer is on disk before anything is removed, so a repeated uninstall finds the same owners.
 */
async function passOn(host: HostRoot, recordFile: string, record: RootDirRecord): Promise<ReadonlyMap<string, string>> {
  const owners = new Map<string, string>()
  for (const { file, owner, record: heir } of await readRootDirRecords(host, recordFile)) {
    const next = withHeritage(heir, record)
    if (JSON.stringify(next) !== JSON.stringify(heir)) await writeRootDirRecord(host, file, next)
    for (const path of [...next.files.map(({ path }) => path), ...next.folders]) owners.set(path, owner)
  }
  return owners
}

/** Runs at the start of an agent: removes temporary files that a killed agent left beside the host's files. */
export async function sweepRootDirs(host: HostRoot): Promise<void> {
  await withLock(host, recordsFolder, async () => {
    for (const file of await listRootDirRecords(host)) {
      if (isTemporary(file)) await host.remove(file)
      else await removeTemporaries(host, await readRootDirRecord(host, file))
    }
  })
}

/** Only those of a copy that did not end: no other program can have created a file with its token. */
async function removeTemporaries(host: HostRoot, record: RootDirRecord | undefined): Promise<void> {
  const { temporaryToken, isComplete, files } = record ?? { isComplete: true, files: [] }
  if (isComplete || temporaryToken === undefined) return
  const paths = files.map(({ path }) => path)
  for (const path of paths) await host.remove(temporaryName(path, temporaryToken)).catch(ignoreUntrusted)
  await syncNames(host, paths) // the record with the token is about to be replaced
}

/** Waits until creation and removal of these paths are on disk, regardless of who created or removed them. */
async function syncNames(host: HostRoot, paths: readonly string[]): Promise<void> {
  const folders = new Set<string>()
  for (const parent of new Set(paths.map((path) => posix.dirname(path)))) folders.add(await nearestFolder(host, parent))
  for (const folder of folders) await host.syncFolder(folder)
}

/** The folder itself, or its nearest existing parent. */
async function nearestFolder(host: HostRoot, path: string): Promise<string> {
  const folder = await host.realPath(path).catch(ignoreNotFoundOrUntrusted)
  const stats = folder === undefined ? undefined : await host.lstat(folder).catch(ignoreUntrusted)
  if (folder !== undefined && stats?.isDirectory()) return folder
  return await nearestFolder(host, posix.dirname(folder ?? path))
}

const ignoreNotFoundOrUntrusted = (error: unknown): undefined =>
  error instanceof UntrustedLinkError ? undefined : ignoreNotFound(error)

async function write(host: HostRoot, source: string, step: CopyStep, token: string): Promise<void> {
  try {
    await writeEntry(host, source, step, token)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    await host.mkdirp(posix.dirname(step.path)) // creates the target folder of a dangling link of the host
    await writeEntry(host, source, step, token)
  }
}

async function writeEntry(host: HostRoot, source: string, { entry, path }: CopyStep, token: string): Promise<void> {
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

/** Plans what copying a `root_dir/` changes on the host. Writes nothing. */

type CopyStep = { readonly entry: TreeEntry; readonly path: string; readonly isMissing: boolean }

type CopyPlan = Pick<RootDirRecord, 'files' | 'folders' | 'foundFolders'> & {
  readonly problems: readonly string[]
  readonly steps: readonly CopyStep[]
}

/** What each entry changes, given the record of an earlier copy. */
async function planCopy(
  host: HostRoot,
  entries: readonly TreeEntry[],
  previous: RootDirRecord | undefined,
): Promise<CopyPlan> {
  const recordedFiles = new Map(previous?.files.map((file) => [file.path, file]))
  let blockedPath = '' // a folder of the package where the host has a file: entries below it add no information
  const plan = {
    files: [] as RecordedFile[],
    folders: [] as string[],
    foundFolders: [] as string[],
    problems: [] as string[],
    steps: [] as CopyStep[],
  }
  for (const entry of entries) {
    if (blockedPath !== '' && entry.path.startsWith(`${blockedPath}/`)) continue
    // A final link of root is followed for folders and files, so that /etc/resolv.conf stays a link; never out of the
    // host.
    const found = await lookAt(host, entry)
    if (found.outcome === 'untrusted') {
      blockedPath = entry.path
      plan.problems.push(`root_dir${entry.path}: ${found.why}`)
      continue
    }
    const { path, existing } = found
    if (entry.kind === 'folder') {
      if (existing === undefined) {
        plan.folders.push(path)
        plan.steps.push({ entry, path, isMissing: true })
      } else if (existing.isDirectory()) plan.foundFolders.push(path)
      else {
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
    plan.steps.push({ entry, path, isMissing: existing === undefined })
  }
  return plan
}

type Found =
  | { readonly outcome: 'found'; readonly path: string; readonly existing: Stats | undefined }
  | { readonly outcome: 'untrusted'; readonly why: string }

async function lookAt(host: HostRoot, entry: TreeEntry): Promise<Found> {
  try {
    const path = entry.kind === 'link' ? entry.path : await host.realPath(entry.path)
    return { outcome: 'found', path, existing: await host.lstat(path) }
  } catch (error) {
    if (error instanceof UntrustedLinkError) return { outcome: 'untrusted', why: error.message }
    throw error
  }
}

/** Whether a file of any kind exists on the host for each entry. Reads each folder once, not each file. */
async function areAllThere(host: HostRoot, entries: readonly TreeEntry[]): Promise<boolean> {
  const names = new Map<string, string[]>()
  for (const { path } of entries) {
    const folder = posix.dirname(path)
    const siblings = names.get(folder)
    if (siblings) siblings.push(posix.basename(path))
    else names.set(folder, [posix.basename(path)])
  }
  for (const [folder, expected] of names) {
    const found = new Set(await host.list(folder).catch(ignoreUntrusted))
    if (!expected.every((name) => found.has(name))) return false
  }
  return true
}
