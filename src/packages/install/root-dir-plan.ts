/** Plans what copying a `root_dir/` changes on the host. Writes nothing. */
import type { Stats } from 'node:fs'
import { posix } from 'node:path'
import type { HostRoot } from '../../host/fs/host-root.ts'
import type { TreeEntry } from '../../host/fs/tree.ts'
import { ignoreUntrusted, UntrustedLinkError } from '../../host/fs/trust.ts'
import type { RecordedFile, RootDirRecord } from './root-dir-record.ts'

export type CopyStep = { readonly entry: TreeEntry; readonly path: string; readonly isMissing: boolean }

export type CopyPlan = Pick<RootDirRecord, 'files' | 'folders' | 'foundFolders'> & {
  readonly problems: readonly string[]
  readonly steps: readonly CopyStep[]
}

/** What each entry changes, given the record of an earlier copy. */
export async function planCopy(
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
export async function areAllThere(host: HostRoot, entries: readonly TreeEntry[]): Promise<boolean> {
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
