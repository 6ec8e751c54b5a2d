/**
 * What a process started by systemd can be given. systemd drops or refuses everything else, in the worst case the whole
 * environment file with an error that names nothing: so it is refused here, by name, before anything runs.
 */

/** execve's limit for one `NAME=value` or one argument, its terminating NUL included (MAX_ARG_STRLEN). */
const maxStringBytes = 131_071

/** Why a variable of this name cannot be set; undefined when it can. */
export function environmentNameProblem(name: string): string | undefined {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return undefined
  return 'is not a variable name that systemd can set: letters, digits and `_` only, not beginning with a digit'
}

/** Why a value or an argument cannot be passed as it is; undefined when it can. `name` counts towards the length. */
export function environmentTextProblem(text: string, name = ''): string | undefined {
  if (text.includes('\0')) return 'contains a NUL character, which no argument or variable can'
  if (/\p{Surrogate}/u.test(text)) return 'contains half a surrogate pair, which is not valid text'
  if (/\p{Noncharacter_Code_Point}/u.test(text)) return 'contains a Unicode noncharacter, which systemd refuses'
  const sizeBytes = Buffer.byteLength(text) + (name === '' ? 0 : Buffer.byteLength(name) + 1)
  if (sizeBytes > maxStringBytes) return `is ${sizeBytes} bytes long; the kernel takes at most ${maxStringBytes}`
  return undefined
}
