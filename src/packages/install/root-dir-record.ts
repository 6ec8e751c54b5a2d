/**
 * The record of what a package put into the host's root; written before the files are, and again when all are there.
 */
import type { HostRoot } from '../../host/fs/host-root.ts'

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
  /** Of the content whose copy started last. */
  readonly hash: string
  /** False: that copy may be incomplete. */
  readonly isComplete: boolean
  /** Of the names of that copy's temporary files, which are beside `files` (host/fs/temporary.ts). */
  readonly temporaryToken?: string
  readonly files: readonly RecordedFile[]
  /** Folders that the package made. */
  readonly folders: readonly string[]
}

/** The record of a copy that is about to start; it keeps the files of earlier versions. */
export function newRootDirRecord(
  hash: string,
  { files, folders }: Pick<RootDirRecord, 'files' | 'folders'>,
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
  }
}

/** Undefined when there is none. The file is written whole or not at all, so an unreadable one is an error. */
export async function readRootDirRecord(host: HostRoot, path: string): Promise<RootDirRecord | undefined> {
  const text = await host.readText(path)
  if (text === undefined) return undefined
  const record = JSON.parse(text) as Omit<RootDirRecord, 'v'> & { readonly v: number }
  if (record.v !== 1) throw new Error(`${path} is of version ${record.v}; this agent reads version 1`)
  return { ...record, v: 1 }
}

export async function writeRootDirRecord(host: HostRoot, path: string, record: RootDirRecord): Promise<void> {
  await host.mkdirp(path.slice(0, path.lastIndexOf('/')), 0o700)
  await host.writeFileDurable(path, JSON.stringify(record), 0o600)
}
