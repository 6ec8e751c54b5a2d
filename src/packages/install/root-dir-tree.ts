import { createHash } from 'node:crypto'
import { lstat, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256OfFile } from './file-content.ts'
import { ignoreNotFound } from '../../host/fs/missing.ts'

/** `path` begins with `/`: where the entry belongs on the host. `source` is a path of this process. */
export type TreeEntry =
  | { readonly kind: 'folder'; readonly path: string; readonly mode: number }
  | {
      readonly kind: 'file'
      readonly path: string
      readonly mode: number
      readonly sha256: string
      readonly source: string
    }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }

export type Tree = { readonly entries: readonly TreeEntry[]; readonly hash: string }

/**
 * Everything below `root`, folders before their content, with a hash over names, modes and contents; undefined without
 * one.
 */
export async function readTree(root: string): Promise<Tree | undefined> {
  const stats = await lstat(root).catch(ignoreNotFound)
  if (!stats?.isDirectory()) return undefined
  const entries: TreeEntry[] = []
  await collect(root, '', entries)
  const identities = entries.map((entry) => (entry.kind === 'file' ? { ...entry, source: undefined } : entry))
  return { entries, hash: createHash('sha256').update(JSON.stringify(identities)).digest('hex') }
}

async function collect(folder: string, prefix: string, entries: TreeEntry[]): Promise<void> {
  const found = await readdir(folder, { withFileTypes: true })
  for (const entry of found.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const source = join(folder, entry.name)
    const path = `${prefix}/${entry.name}`
    const mode = (await lstat(source)).mode & 0o7777
    if (entry.isSymbolicLink()) entries.push({ kind: 'link', path, target: await readlink(source) })
    else if (entry.isFile()) entries.push({ kind: 'file', path, mode, sha256: await sha256OfFile(source), source })
    else if (entry.isDirectory()) {
      entries.push({ kind: 'folder', path, mode })
      await collect(source, path, entries)
    }
  }
}
