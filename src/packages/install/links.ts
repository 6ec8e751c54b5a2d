import { lstat, readlink, rename, rm, symlink } from 'node:fs/promises'
import { TEMPORARY_SUFFIX } from '../../host/fs/host-root.ts'
import { unlessMissing } from '../../host/fs/missing.ts'

/** Makes `path` a link to `target`, whatever is there; a file or link in its place is replaced in one go. */
export async function ensureLink(path: string, target: string): Promise<void> {
  const present = await lstat(path).catch(unlessMissing)
  if (present?.isSymbolicLink() && (await readlink(path)) === target) return
  if (present?.isDirectory()) await rm(path, { recursive: true })
  const temporary = `${path}${TEMPORARY_SUFFIX}`
  await rm(temporary, { recursive: true, force: true })
  await symlink(target, temporary)
  await rename(temporary, path)
}
