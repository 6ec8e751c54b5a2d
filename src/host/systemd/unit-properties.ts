/**
 * Properties of transient units, in the forms that survive systemd.
 *
 * systemd writes the properties into a unit file and reads that file again at the next daemon-reload. Some values are
 * written raw: a line break in them becomes lines of the unit file. Others gain backslashes. The functions here make
 * only values that read back the same, and refuse the rest by name.
 */

export type UnitProperty = {
  readonly name: string
  /** D-Bus signature of the value. */
  readonly signature: string
  readonly value: unknown
  /** The unit works without it: left out when this systemd does not know it. */
  readonly optional?: true
}

/** A value that systemd would not keep unchanged; `message` names it. */
export class UnitValueError extends Error {
  override readonly name = 'UnitValueError'
}

/** Never, for a time in microseconds: 0 means at once. */
export const infinityUsec = 0xffff_ffff_ffff_ffffn

const controlCharacters = /\p{Cc}/u
/** D-Bus cannot carry them, and one of them makes systemd drop a whole environment file. */
export const refusedCharacters = /[\0\p{Noncharacter_Code_Point}]|\p{Surrogate}/u
/** Arguments that mean the same before and after a daemon-reload, for commands that start late (ExecStopPost). */
const plainArgument = /^[A-Za-z0-9_./:@%+=,-]+$/
export const variableNamePattern = /^[A-Za-z_][A-Za-z0-9_]*$/
/** One argument or one variable: MAX_ARG_STRLEN of the kernel, which includes the closing NUL. */
export const maxStringBytes = 131_071

/** Most string properties are written raw into the unit file: no control character may be in them. */
export function text(name: string, value: string): UnitProperty {
  refuseControlCharacters(name, value)
  return { name, signature: 's', value }
}

/** An absolute path on the host. */
export function path(name: string, value: string): UnitProperty {
  if (!value.startsWith('/')) throw new UnitValueError(`${name}: ${JSON.stringify(value)} is not an absolute path`)
  return text(name, value)
}

export function flag(name: string, value: boolean): UnitProperty {
  return { name, signature: 'b', value }
}

/** An unsigned 64-bit number, for example bytes. Most limits refuse 0. */
export function count(name: string, value: number): UnitProperty {
  if (!Number.isSafeInteger(value) || value < 1)
    throw new UnitValueError(`${name}: ${value} is not a whole number above 0`)
  return { name, signature: 't', value: BigInt(value) }
}

/** A time limit; `undefined` means that there is none (0 would mean at once). */
export function timeout(name: string, milliseconds: number | undefined): UnitProperty {
  if (milliseconds === undefined) return { name, signature: 't', value: infinityUsec }
  if (!Number.isFinite(milliseconds) || milliseconds <= 0)
    throw new UnitValueError(`${name}: ${milliseconds} ms is not a time above 0`)
  return { name, signature: 't', value: BigInt(Math.ceil(milliseconds * 1000)) }
}

/**
 * A literal argument, or the value of a variable of the unit's environment behind an optional prefix. Every user of the
 * host can read the arguments of a unit, but not the values that systemd substitutes for variables.
 */
export type CommandArgument = string | { readonly prefix?: string; readonly variable: string }

/**
 * The command of ExecStart: an absolute path and its arguments, which arrive exactly as given. `$` is doubled because
 * systemd expands variables in arguments; `%` is left alone over D-Bus. Good for commands that start with the unit
 * only: a daemon-reload in between adds a backslash to each `$` and `;`.
 */
export function command(name: string, [program, ...args]: readonly [string, ...CommandArgument[]]): UnitProperty {
  if (!program.startsWith('/')) throw new UnitValueError(`${name}: ${JSON.stringify(program)} is not an absolute path`)
  refuseControlCharacters(name, program)
  for (const argument of [program, ...args.map((one) => (typeof one === 'string' ? one : (one.prefix ?? '')))]) {
    const excerpt = JSON.stringify(argument.slice(0, 80))
    if (refusedCharacters.test(argument))
      throw new UnitValueError(`${name}: argument ${excerpt} has a character that systemd refuses`)
    if (Buffer.byteLength(argument) > maxStringBytes)
      throw new UnitValueError(`${name}: argument ${excerpt}… is longer than ${maxStringBytes} bytes`)
  }
  // ExecStartEx with no-env-expand would be simpler, but systemd 252 loses it at a daemon-reload.
  const literal = (argument: string): string => argument.replaceAll('$', '$$$$')
  // with braces the value is one argument, whatever it contains, and is not expanded again
  const written = args.map((one) =>
    typeof one === 'string' ? literal(one) : `${literal(one.prefix ?? '')}\${${checkedVariable(name, one.variable)}}`,
  )
  const argv = [literal(program), ...written]
  return { name, signature: 'a(sasb)', value: [[program, argv, false]] }
}

function checkedVariable(name: string, variable: string): string {
  if (!variableNamePattern.test(variable))
    throw new UnitValueError(`${name}: ${JSON.stringify(variable)} is not a variable name (letters, digits, _)`)
  return variable
}

/** A command that may start after a daemon-reload: plain arguments only. Its failure does not count. */
export function reloadSafeCommand(name: string, argv: readonly [string, ...string[]]): UnitProperty {
  for (const argument of argv) {
    if (!plainArgument.test(argument))
      throw new UnitValueError(`${name}: ${JSON.stringify(argument)} would not survive a daemon-reload`)
  }
  return { name, signature: 'a(sasb)', value: [[argv[0], [...argv], true]] }
}

/** An environment file that must exist. systemd treats the path as a glob, so its special characters are escaped. */
export function environmentFile(value: string): UnitProperty {
  const { name } = path('EnvironmentFiles', value)
  return { name, signature: 'a(sb)', value: [[value.replace(/[\\*?[\]]/g, '\\$&'), false]] }
}

function refuseControlCharacters(name: string, value: string): void {
  if (controlCharacters.test(value))
    throw new UnitValueError(
      `${name}: ${JSON.stringify(value)} has a control character, which could add lines to the unit file`,
    )
  if (refusedCharacters.test(value))
    throw new UnitValueError(`${name}: ${JSON.stringify(value)} has a character that systemd refuses`)
}

const unitNamePattern = /^[A-Za-z0-9:_.\\@-]+\.(?:service|slice|target|timer|socket|mount|scope)$/

/** Throws UnitValueError unless systemd accepts `name`: known characters, a type, at most 255 bytes. */
export function assertUnitName(name: string): void {
  if (!unitNamePattern.test(name) || name.length > 255)
    throw new UnitValueError(`${JSON.stringify(name)} is not a unit name`)
}

/** The object of a unit on the bus. */
export function unitPath(name: string): string {
  const escaped = Buffer.from(name)
    .toString('latin1') // a character for each byte
    .replace(/^\d|[^A-Za-z0-9]/g, (byte) => `_${byte.charCodeAt(0).toString(16).padStart(2, '0')}`)
  return `/org/freedesktop/systemd1/unit/${escaped}`
}
