/**
 * The error with `path` in the place of `at`, where this process has it: a number of a descriptor says nothing to
 * people, and what fails again has to fail in the same words.
 */
export function withPath(error: unknown, at: string, path: string): unknown {
  if (!(error instanceof Error) || at === '') return error
  error.message = error.message
    .replaceAll(`'${at}'`, () => `'${path}'`)
    .replaceAll(`'${at}/`, () => (path === '/' ? "'/" : `'${path}/`))
  return error
}

/** What node:fs says of a call on an open file leaves out which one: a full disk has to have a name. */
export function withFile(error: unknown, path: string): unknown {
  if (!(error instanceof Error)) return error
  const { syscall } = error as NodeJS.ErrnoException
  if (syscall !== undefined && error.message.endsWith(`, ${syscall}`)) error.message += ` '${path}'`
  return error
}
