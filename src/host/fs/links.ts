import { lstat, readlink, rename, rm, symlink } from 'node:fs/promises'
import { ignoreNotFound } from './missing.ts'
import { temporarySuffix } from './temporary.ts'

/** Where a symbolic link points to; undefined for everything else and where nothing is. */
export async function readLink(path: string): Promise<string | undefined> {
  const stats = await lstat(path).catch(ignoreNotFound)
  return stats?.isSymbolicLink() ? await readlink(path) : undefined
}

/** Makes `path` a link to `target`. A file or link in its place is replaced in one go, a folder is removed first. */
export async function replaceLink(path: string, target: string): Promise<void> {
  const existing = await lstat(path).catch(ignoreNotFound)
  if (existing?.isSymbolicLink() && (await readlink(path)) === target) return
  if (existing?.isDirectory()) await rm(path, { recursive: true })
  const temporary = `${path}${temporarySuffix}`
  await rm(temporary, { recursive: true, force: true })
  await symlink(target, temporary)
  await rename(temporary, path)
}
