import { lstat, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256OfFile } from './file-content.ts'
import { ignoreNotFound } from './missing.ts'

/** `path` is that below the folder and begins with `/`. */
export type TreeEntry =
  | { readonly kind: 'folder'; readonly path: string; readonly mode: number }
  | { readonly kind: 'file'; readonly path: string; readonly mode: number; readonly sha256: string }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }

/**
 * Everything below the folder, sorted by name, folders before their content; undefined when there is no such folder.
 * Links are not followed; what is neither file, folder nor link is left out.
 */
export async function describeTree(root: string): Promise<TreeEntry[] | undefined> {
  const stats = await lstat(root).catch(ignoreNotFound)
  if (!stats?.isDirectory()) return undefined
  const entries: TreeEntry[] = []
  const collect = async (prefix: string): Promise<void> => {
    const found = await readdir(join(root, prefix), { withFileTypes: true })
    for (const entry of found.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = `${prefix}/${entry.name}`
      const source = join(root, path)
      const mode = (await lstat(source)).mode & 0o7777
      if (entry.isSymbolicLink()) entries.push({ kind: 'link', path, target: await readlink(source) })
      else if (entry.isFile()) entries.push({ kind: 'file', path, mode, sha256: await sha256OfFile(source) })
      else if (entry.isDirectory()) {
        entries.push({ kind: 'folder', path, mode })
        await collect(path)
      }
    }
  }
  await collect('')
  return entries
}
