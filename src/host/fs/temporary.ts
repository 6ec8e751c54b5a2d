import type { Random } from '../../schemas/clock.ts'

/** Part of a temporary name that nobody can guess. A file that carries it was made by whoever drew it. */
export const newTemporaryToken = (random: Random): string => random.hex(6)

/** Of a file that is not whole yet. */
export const temporaryName = (path: string, token: string): string => `${path}.${token}.tmp`

/** True for a `temporaryName`; a package's own files may end in .tmp, too. */
export const isTemporary = (path: string): boolean => /\.[0-9a-f]{12}\.tmp$/.test(path)

/**
 * The error with the lasting name in the place of the temporary one. What fails again has to fail in the same words:
 * they are published, and a change of what is published wakes the loop, which tries again.
 */
export function namingTarget(error: unknown): unknown {
  if (error instanceof Error) error.message = error.message.replaceAll(/\.[0-9a-f]{12}\.tmp(?=')/g, '')
  return error
}
