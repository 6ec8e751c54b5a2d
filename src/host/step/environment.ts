/** The variables of a step as a file that systemd reads back byte for byte. */
import { dependsOnSystemd, systemdValueProblem } from '../../schemas/environment-variable.ts'
import type { Units } from '../systemd/units.ts'
import { maxStringBytes, refusedCharacters, UnitValueError, variableNamePattern } from '../systemd/unit-properties.ts'

/** systemd's own PATH lacks /sbin on some hosts, and it sets no HOME without User=. */
export const defaultEnvironment = {
  PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
  HOME: '/root',
}

/** All of a process's variables and arguments share 2 MiB (a quarter of the usual stack limit); this leaves room. */
const maxTotalBytes = 1_500_000
/** systemd passes these to the recorder of the result (result-record.ts); the file would override them. */
export const recorderVariables: ReadonlySet<string> = new Set([
  'SERVICE_RESULT',
  'EXIT_CODE',
  'EXIT_STATUS',
  'INVOCATION_ID',
])

/**
 * The file's content. Inside double quotes only `"`, `\`, `$` and backtick are special; line breaks are not. `units`
 * are those of the host that reads the file. Rejects with UnitValueError naming the variable, never its value, where
 * systemd or the kernel would refuse it, and with the bus's error where systemd's version matters and is not known.
 */
export async function formatEnvironment(
  variables: Readonly<Record<string, string>>,
  units: Pick<Units, 'version'>,
): Promise<string> {
  let totalBytes = 0
  let content = ''
  for (const [name, value] of Object.entries(variables)) {
    if (!variableNamePattern.test(name))
      throw new UnitValueError(`environment: ${JSON.stringify(name)} is not a variable name (letters, digits, _)`)
    if (recorderVariables.has(name))
      throw new UnitValueError(`environment: ${name} is set by systemd and cannot be overridden`)
    if (refusedCharacters.test(value))
      throw new UnitValueError(
        `environment: the value of ${name} has a character that systemd refuses ` +
          '(NUL, a lone surrogate or a noncharacter)',
      )
    const problem = dependsOnSystemd(value) ? systemdValueProblem(value, await units.version()) : undefined
    if (problem !== undefined) throw new UnitValueError(`environment: the value of ${name} ${problem}`)
    const bytes = Buffer.byteLength(`${name}=${value}`)
    if (bytes > maxStringBytes)
      throw new UnitValueError(`environment: ${name} has ${bytes} bytes, the kernel takes ${maxStringBytes}`)
    totalBytes += bytes + 1
    content += `${name}="${value.replace(/["\\$`]/g, '\\$&')}"\n`
  }
  if (totalBytes > maxTotalBytes)
    throw new UnitValueError(`environment: ${totalBytes} bytes in all, at most ${maxTotalBytes} fit`)
  return content
}
