import { lstat, readlink, rename, rm, symlink } from 'node:fs/promises'
import { temporarySuffix } from '../../host/fs/host-root.ts'
import { ignoreNotFound } from '../../host/fs/missing.ts'

/** Makes `path` a link to `target`, whatever is there; a file or link in its place is replaced in one go. */
export async function ensureLink(path: string, target: string): Promise<void> {
  const existing = await lstat(path).catch(ignoreNotFound)
  if (existing?.isSymbolicLink() && (await readlink(path)) === target) return
  if (existing?.isDirectory()) await rm(path, { recursive: true })
  const temporary = `${path}${temporarySuffix}`
  await rm(temporary, { recursive: true, force: true })
  await symlink(target, temporary)
  await rename(temporary, path)
}
