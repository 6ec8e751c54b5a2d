/**
 * The record of what a package installed into the host's root. It is written before the files, and again when all files
 * exist. A path in several records belongs to all of them: the last uninstall removes it.
 */
import { posix } from 'node:path'
import type { HostRoot } from '../../host/fs/host-root.ts'
import { agentFolder } from '../../host/fs/journal-file.ts'
import { isTemporary } from '../../host/fs/temporary.ts'

export const recordsFolder = `${agentFolder}/root-files`

/** Host path of the record of one package of one Skyhook. */
export function rootDirRecordFile(skyhook: string, packageName: string): string {
  return `${recordsFolder}/${skyhook}/${packageName}.json`
}

/** `path` on the host, links resolved. A file has `sha256`, a link `target`. */
export type RecordedFile = {
  readonly path: string
  /** The host had a file there before this package: an uninstall cannot restore it, and leaves the file. */
  readonly wasThere: boolean
  readonly sha256?: string
  readonly target?: string
}

export type RootDirRecord = {
  readonly v: 1
  /** Hash of the content whose copy started last. */
  readonly hash: string
  /** False: that copy may be incomplete. */
  readonly isComplete: boolean
  /** Part of the names of that copy's temporary files, which are beside `files` (host/fs/temporary.ts). */
  readonly temporaryToken?: string
  readonly files: readonly RecordedFile[]
  /** Folders that the package created. */
  readonly folders: readonly string[]
  /** Folders of the package that existed before it. Records of agents before shared ownership lack them. */
  readonly foundFolders?: readonly string[]
}

/** The record of a copy that is about to start; it keeps the files of earlier versions. */
export function newRootDirRecord(
  hash: string,
  { files, folders, foundFolders = [] }: Pick<RootDirRecord, 'files' | 'folders' | 'foundFolders'>,
  previous: RootDirRecord | undefined,
  temporaryToken: string,
): RootDirRecord {
  const merged = new Map([...(previous?.files ?? []), ...files].map((file) => [file.path, file]))
  return {
    v: 1,
    hash,
    isComplete: false,
    temporaryToken,
    files: [...merged.values()],
    folders: [...new Set([...(previous?.folders ?? []), ...folders])],
    foundFolders: [...new Set([...(previous?.foundFolders ?? []), ...foundFolders])],
  }
}

/** Undefined if there is no record. The file is written atomically, so an unreadable file is an error. */
export async function readRootDirRecord(host: HostRoot, path: string): Promise<RootDirRecord | undefined> {
  const text = await host.readText(path)
  if (text === undefined) return undefined
  const record = JSON.parse(text) as Omit<RootDirRecord, 'v'> & { readonly v: number }
  if (record.v !== 1) throw new Error(`${path} is of version ${record.v}; this agent reads version 1`)
  return { ...record, v: 1 }
}

export async function writeRootDirRecord(host: HostRoot, path: string, record: RootDirRecord): Promise<void> {
  await host.mkdirp(recordsFolder, 0o700)
  await host.mkdirp(posix.dirname(path), 0o700)
  await host.writeFileDurable(path, JSON.stringify(record), 0o600)
}

/** A record and its owner, as `SKYHOOK/PACKAGE`. */
export type OwnedRecord = { readonly file: string; readonly owner: string; readonly record: RootDirRecord }

/** Paths of all records on the host. */
export async function listRootDirRecords(host: HostRoot): Promise<readonly string[]> {
  const files: string[] = []
  for (const skyhook of (await host.list(recordsFolder)) ?? [])
    for (const name of (await host.list(`${recordsFolder}/${skyhook}`)) ?? [])
      files.push(`${recordsFolder}/${skyhook}/${name}`)
  return files
}

/** The records of all packages, except the one in `exceptFile`. */
export async function readRootDirRecords(host: HostRoot, exceptFile?: string): Promise<readonly OwnedRecord[]> {
  const found: OwnedRecord[] = []
  for (const file of await listRootDirRecords(host)) {
    if (file === exceptFile || isTemporary(file)) continue
    const record = await readRootDirRecord(host, file)
    if (record) found.push({ file, owner: file.slice(recordsFolder.length + 1).replace(/\.json$/, ''), record })
  }
  return found
}

/** The record `heir`, which also owns from now on what `left` created and both list. */
export function withHeritage(heir: RootDirRecord, left: RootDirRecord): RootDirRecord {
  const made = new Set(left.files.filter(({ wasThere }) => !wasThere).map(({ path }) => path))
  const used = new Set([...heir.folders, ...(heir.foundFolders ?? [])])
  for (const { path } of heir.files)
    for (let folder = posix.dirname(path); !used.has(folder) && folder !== '/'; folder = posix.dirname(folder))
      used.add(folder)
  return {
    ...heir,
    files: heir.files.map((file) => (made.has(file.path) ? { ...file, wasThere: false } : file)),
    folders: [...new Set([...heir.folders, ...left.folders.filter((folder) => used.has(folder))])],
  }
}

/** Paths that both records list with different content. */
export function disputedPaths(one: Pick<RootDirRecord, 'files'>, other: Pick<RootDirRecord, 'files'>): string[] {
  const contents = new Map(other.files.map((file) => [file.path, contentOf(file)]))
  return one.files.flatMap((file) => {
    const content = contents.get(file.path)
    return content === undefined || content === contentOf(file) ? [] : [file.path]
  })
}

const contentOf = ({ sha256, target }: RecordedFile): string => (sha256 === undefined ? `link ${target}` : sha256)
