/** Waiting for the disk. Only these functions do it, because each passes a failpoint named by the kind of file. */
import { closeSync, constants, fsyncSync, openSync } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { failpoint } from './failpoint.ts'

const openFolderFlags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW
const openFileFlags = constants.O_RDONLY | constants.O_NOFOLLOW

/** Content written through `file`, known as `path`, is on disk when it returns. */
export async function syncOpenFile(file: FileHandle, path: string): Promise<void> {
  await file.sync()
  failpoint(`fsync:${kindOf(path)}`)
}

/** The same for a file that another process wrote. `at` is its location for this process. */
export async function syncFile(at: string, path: string): Promise<void> {
  const file = await open(at, openFileFlags)
  try {
    await syncOpenFile(file, path)
  } finally {
    await file.close()
  }
}

/** Names in the folder are on disk when it returns: files created, renamed or removed there. */
export async function syncFolder(at: string, path: string): Promise<void> {
  const folder = await open(at, openFolderFlags)
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
  failpoint(`fsync:${kindOf(path)}/`)
}

/** File or folder, at once: for the child that unpacks and does nothing else. */
export function syncPathSync(path: string): void {
  const fd = openSync(path, openFileFlags)
  try {
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  failpoint(`fsync:${kindOf(path)}`)
}

/**
 * `journal`, `history` and the like; `skyhook` for the rest below the agent's folders, `host` for files of the host.
 */
export function kindOf(path: string): string {
  const agentFile = /\/\.agent(?:\/([^/]+))?/.exec(path)
  if (agentFile) return (agentFile[1] ?? 'agent').replace(/\.json(\..*)?$/, '')
  const publishedKind = /\/(flags|history|interrupts|configmaps|node-metadata|steps)(?:\/|$)/.exec(path)?.[1]
  return publishedKind ?? (path.includes('/skyhook') ? 'skyhook' : 'host')
}
