import { createHash } from 'node:crypto'
import { posix } from 'node:path'
import type { Random } from '../../schemas/clock.ts'

/** The kernel's limit for one name of a path (NAME_MAX). */
const maxNameBytes = 255

/**
 * The part of a temporary name that no other process can guess: only the process that drew it can have created the
 * file.
 */
export const newTemporaryToken = (random: Random): string => random.hex(6)

/**
 * The name of a file that is not complete yet, in the same folder. A name that leaves no room for the token has a hash
 * instead.
 */
export function temporaryName(path: string, token: string): string {
  const suffix = `.${token}.tmp`
  const name = posix.basename(path)
  if (Buffer.byteLength(name) + suffix.length <= maxNameBytes) return `${path}${suffix}`
  return posix.join(posix.dirname(path), createHash('sha256').update(name).digest('hex').slice(0, 32) + suffix)
}

/** True for a `temporaryName`; a package's own files may end in .tmp, too. */
export const isTemporary = (path: string): boolean => /\.[0-9a-f]{12}\.tmp$/.test(path)

/**
 * The error with the final name in place of the temporary one. A repeated failure must have the same message: the agent
 * publishes it, and a changed message wakes the loop, which tries again.
 */
export function namingTarget(error: unknown, temporary: string, path: string): unknown {
  if (error instanceof Error) error.message = error.message.replaceAll(temporary, path)
  return error
}
