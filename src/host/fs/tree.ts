import { lstat, readdir, readlink, rmdir, unlink } from 'node:fs/promises'
import { ignoreNotFound } from './errors.ts'
import { sha256OfFile } from './file-content.ts'
import type { Walk } from './walk.ts'

/** `path` is relative to the folder and starts with `/`. */
export type TreeEntry =
  | { readonly kind: 'folder'; readonly path: string; readonly mode: number }
  | { readonly kind: 'file'; readonly path: string; readonly mode: number; readonly sha256: string }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }

type InFolder = Walk['inFolder']

/**
 * Everything below the folder, sorted by name, folders before their content; undefined when there is no such folder.
 * Links are not followed; what is neither file, folder nor link is left out.
 */
export async function describeTree(root: string, inFolder: InFolder): Promise<TreeEntry[] | undefined> {
  const stats = await lstat(root).catch(ignoreNotFound)
  if (!stats?.isDirectory()) return undefined
  const entries: TreeEntry[] = []
  const collect = async (folder: string, prefix: string): Promise<void> => {
    const found = await readdir(folder, { withFileTypes: true })
    for (const entry of found.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = `${prefix}/${entry.name}`
      const source = `${folder}/${entry.name}`
      const mode = (await lstat(source)).mode & 0o7777
      if (entry.isSymbolicLink()) entries.push({ kind: 'link', path, target: await readlink(source) })
      else if (entry.isFile()) entries.push({ kind: 'file', path, mode, sha256: await sha256OfFile(source) })
      else if (entry.isDirectory()) {
        entries.push({ kind: 'folder', path, mode })
        await inFolder(source, (at) => collect(at, path))
      }
    }
  }
  await inFolder(root, (at) => collect(at, ''))
  return entries
}

/** Paths of everything below the folder, from it on; folders behind links are not entered. */
export async function readTree(root: string, inFolder: InFolder): Promise<string[]> {
  const found: string[] = []
  const collect = async (folder: string, prefix: string): Promise<void> => {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = `${prefix}${entry.name}`
      found.push(path)
      if (entry.isDirectory()) await inFolder(`${folder}/${entry.name}`, (at) => collect(at, `${path}/`))
    }
  }
  await inFolder(root, (at) => collect(at, ''))
  return found
}

/** Removes a file, a link or a whole folder, if it exists. Links are removed, not followed. */
export async function removeTree(path: string, inFolder: InFolder): Promise<void> {
  const stats = await lstat(path).catch(ignoreNotFound)
  if (stats === undefined) return
  if (!stats.isDirectory()) return await unlink(path).catch(ignoreNotFound)
  await inFolder(path, async (folder) => {
    for (const name of await readdir(folder)) await removeTree(`${folder}/${name}`, inFolder)
  })
  await rmdir(path).catch(ignoreNotFound)
}
