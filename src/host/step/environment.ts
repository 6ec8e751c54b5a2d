/** The variables of a step as a file that systemd reads back byte for byte. */
import { MAX_STRING_BYTES, UnitValueError } from '../systemd/unit-properties.ts'

/** All of a process's variables and arguments share 2 MiB (a quarter of the usual stack limit); this leaves room. */
const MAX_TOTAL_BYTES = 1_500_000
const NAME = /^[A-Za-z_][A-Za-z0-9_]*$/
/** One of these makes systemd drop the whole file, and then the step does not start. */
const REFUSED_CHARACTERS = /[\0\p{Noncharacter_Code_Point}]|\p{Surrogate}/u
/** What systemd tells the recorder of the result (step-record.ts); the file would win over it. */
const SET_BY_SYSTEMD = new Set(['SERVICE_RESULT', 'EXIT_CODE', 'EXIT_STATUS', 'INVOCATION_ID'])

/**
 * The file's content. Inside double quotes only `"`, `\`, `$` and backtick are special; line breaks are not.
 * Throws UnitValueError naming the variable, never its value, where systemd or the kernel would refuse it.
 */
export function formatEnvironment(variables: Readonly<Record<string, string>>): string {
  let totalBytes = 0
  let content = ''
  for (const [name, value] of Object.entries(variables)) {
    if (!NAME.test(name)) throw new UnitValueError(`environment: ${JSON.stringify(name)} is not a variable name (letters, digits, _)`)
    if (SET_BY_SYSTEMD.has(name)) throw new UnitValueError(`environment: ${name} is set by systemd and cannot be overridden`)
    if (REFUSED_CHARACTERS.test(value))
      throw new UnitValueError(
        `environment: the value of ${name} has a character that systemd refuses (NUL, a lone surrogate or a noncharacter)`,
      )
    const bytes = Buffer.byteLength(`${name}=${value}`)
    if (bytes > MAX_STRING_BYTES) throw new UnitValueError(`environment: ${name} has ${bytes} bytes, the kernel takes ${MAX_STRING_BYTES}`)
    totalBytes += bytes + 1
    content += `${name}="${value.replace(/["\\$`]/g, '\\$&')}"\n`
  }
  if (totalBytes > MAX_TOTAL_BYTES) throw new UnitValueError(`environment: ${totalBytes} bytes in all, at most ${MAX_TOTAL_BYTES} fit`)
  return content
}
