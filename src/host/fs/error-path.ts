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
