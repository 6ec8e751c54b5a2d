/** For `.catch(…)`: nothing there is an answer, everything else stays an error. */
export function ignoreNotFound(error: unknown): undefined {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
  throw error
}
