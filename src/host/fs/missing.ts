/**
 * For `.catch(…)`: a missing file is an answer, every other error stays an error. ENOTDIR counts as missing: a name
 * above the file belongs to something that is not a folder, so nothing can be at this path.
 */
export function ignoreNotFound(error: unknown): undefined {
  const { code } = error as NodeJS.ErrnoException
  if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error
  return undefined
}
