/**
 * The error with `path` in place of `at`, its location for this process: the number of a descriptor means nothing to
 * people, and a repeated failure must have the same message.
 */
export function withPath(error: unknown, at: string, path: string): unknown {
  if (!(error instanceof Error) || at === '') return error
  error.message = error.message
    .replaceAll(`'${at}'`, () => `'${path}'`)
    .replaceAll(`'${at}/`, () => (path === '/' ? "'/" : `'${path}/`))
  return error
}

/** Errors of node:fs on an open file do not name the file, but the report of a full disk must. */
export function withFile(error: unknown, path: string): unknown {
  if (!(error instanceof Error)) return error
  const { syscall } = error as NodeJS.ErrnoException
  if (syscall !== undefined && error.message.endsWith(`, ${syscall}`)) error.message += ` '${path}'`
  return error
}

/**
 * For `.catch(…)`: a missing file is an answer, every other error stays an error. ENOTDIR counts as missing: a name
 * above the file belongs to something that is not a folder, so nothing can be at this path.
 */
export function ignoreNotFound(error: unknown): undefined {
  const { code } = error as NodeJS.ErrnoException
  if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error
  return undefined
}

/** The same for ENOENT alone: ENOTDIR stays an error. */
export function undefinedIfAbsent(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  return undefined
}
