import { lstat, readlink, rename, symlink, unlink } from 'node:fs/promises'
import { ignoreNotFound } from './missing.ts'
import { namingTarget, temporaryName } from './temporary.ts'

/** The target of a symbolic link; undefined for everything else and for a missing path. */
export async function readLink(path: string): Promise<string | undefined> {
  const stats = await lstat(path).catch(ignoreNotFound)
  return stats?.isSymbolicLink() ? await readlink(path) : undefined
}

/** Makes `path` a link to `target`. A file or link in its place is replaced in one go; rejects where a folder is. */
export async function replaceLink(path: string, target: string, token: string): Promise<void> {
  const existing = await lstat(path).catch(ignoreNotFound)
  if (existing?.isSymbolicLink() && (await readlink(path)) === target) return
  const temporary = temporaryName(path, token)
  await symlink(target, temporary).catch((error: unknown) => {
    throw namingTarget(error, temporary, path)
  })
  try {
    await rename(temporary, path)
  } catch (error) {
    await unlink(temporary).catch(() => {})
    throw namingTarget(error, temporary, path)
  }
}
