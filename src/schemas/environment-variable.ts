/**
 * The variables that a process started by systemd can have. systemd drops or refuses others, in the worst case the
 * whole environment file with an error that names nothing. So they are refused here, by name, before anything runs.
 */

/** execve's limit for one `NAME=value` or one argument, its terminating NUL included (MAX_ARG_STRLEN). */
const maxStringBytes = 131_071

/**
 * A quarter of the usual stack limit, 2 MiB, holds all variables and arguments of a process. This is the share of the
 * Skyhook's `env`; the agent and the package add theirs.
 */
const maxEnvironmentBytes = 1_400_000

/**
 * Why variables cannot be passed together, with the given number of bytes as `NAME=value` in all; undefined when they
 * can.
 */
export const environmentSizeProblem = (bytes: number): string | undefined =>
  bytes > maxEnvironmentBytes ? `is ${bytes} bytes long in all; at most ${maxEnvironmentBytes} fit` : undefined

/** The size of a variable in it. */
export const environmentBytes = (name: string, value: string): number => Buffer.byteLength(name + value) + 2

/** Far above any host's limit: a text of 128 KiB can name a variable of 128 KiB 26,000 times. */
const maxExpandedLength = 1 << 20

/**
 * `$(NAME)` of variables known so far, `$$` for `$`; a reference to anything else stays as written. A result beyond any
 * host's limit is truncated somewhere beyond it.
 */
export function expandVariables(text: string, values: ReadonlyMap<string, string>): string {
  let expanded = ''
  let end = 0
  for (const { 0: written, 1: name, index } of text.matchAll(/\$(?:\$|\(([^)]*)\))/g)) {
    expanded += text.slice(end, index) + (name === undefined ? '$' : (values.get(name) ?? written))
    end = index + written.length
    if (expanded.length > maxExpandedLength) return expanded
  }
  return expanded + text.slice(end)
}

/** `index`: of the variable; undefined: all of them together. */
export type VariableProblem = { readonly index: number | undefined; readonly problem: string }

/** Why no host accepts the variables that the spec gives as text. References count where they are text as well. */
export function literalProblems(
  env: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: unknown }[],
): readonly VariableProblem[] {
  const values = new Map<string, string>()
  const problems: VariableProblem[] = []
  for (const [index, { name, value = '', valueFrom }] of env.entries()) {
    if (valueFrom !== undefined && value === '') continue
    const text = expandVariables(value, values)
    const problem = environmentNameProblem(name) ?? environmentTextProblem(text, name)
    if (problem === undefined) values.set(name, text)
    else problems.push({ index, problem })
  }
  const bytes = [...values].reduce((sum, [name, value]) => sum + environmentBytes(name, value), 0)
  const problem = environmentSizeProblem(bytes)
  return problem === undefined ? problems : [...problems, { index: undefined, problem }]
}

/** Why a variable of this name cannot be set; undefined when it can. */
export function environmentNameProblem(name: string): string | undefined {
  if (/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) return undefined
  return 'is not a variable name that systemd can set: letters, digits and `_` only, not starting with a digit'
}

/** Why a value or an argument cannot be passed unchanged; undefined when it can. `name` counts towards the length. */
export function environmentTextProblem(text: string, name = ''): string | undefined {
  if (text.includes('\0')) return 'contains a NUL character, which no argument or variable can'
  if (/\p{Surrogate}/u.test(text)) return 'contains half a surrogate pair, which is not valid text'
  if (/\p{Noncharacter_Code_Point}/u.test(text)) return 'contains a Unicode noncharacter, which systemd refuses'
  const sizeBytes = Buffer.byteLength(text) + (name === '' ? 0 : Buffer.byteLength(name) + 1)
  if (sizeBytes > maxStringBytes) return `is ${sizeBytes} bytes long; the kernel takes at most ${maxStringBytes}`
  return undefined
}

/**
 * The first version of systemd that accepts control characters in values. Earlier versions accept only tab and line
 * feed: they drop a variable with another one, write name and value to the host's journal, and start the unit without
 * it.
 */
const takesControlCharactersSince = 248
/** Only ASCII: characters from U+0080 on are fine. */
const controlCharacter = /[^\P{Cc}\t\n\u0080-\u009f]/u

/** Whether it depends on the version of systemd if a variable can have this value. */
export const dependsOnSystemd = (value: string): boolean => controlCharacter.test(value)

/** Why a variable of a unit cannot have this value on a host with this version of systemd; undefined when it can. */
export function systemdValueProblem(value: string, systemdVersion: number): string | undefined {
  const [character] = controlCharacter.exec(value) ?? []
  if (character === undefined || systemdVersion >= takesControlCharactersSince) return undefined
  const code = character.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')
  const origin = character === '\r' ? ' (lines of a file made on Windows end with it)' : ''
  return (
    `contains the control character U+${code}${origin}, which systemd takes since version ` +
    `${takesControlCharactersSince} and this host has ${systemdVersion}: remove it, or give the value as base64`
  )
}

/** Variables that every step has in addition to the package's `env`, and that an argument `env:NAME` may name. */
export const agentVariables = [
  'PATH',
  'HOME',
  'SKYHOOK_LOG_DIR',
  'SKYHOOK_ROOT_DIR',
  'COPY_RESOLV',
  'SKYHOOK_RESOURCE_ID',
] as const

/** The variable that a step's argument refers to; undefined for a literal argument. */
export const variableOf = (argument: string): string | undefined =>
  argument.startsWith('env:') ? argument.slice('env:'.length) : undefined
