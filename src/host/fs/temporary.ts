import type { Random } from '../../schemas/clock.ts'

/** The end of the names of files that are not whole yet. After a crash they may be removed. */
export const temporarySuffix = '.tmp'

export const temporaryName = (path: string, random: Random): string => `${path}.${random.hex(6)}${temporarySuffix}`

/** True for a `temporaryName`; a package's own files may end in .tmp, too. */
export const isTemporary = (path: string): boolean => /\.[0-9a-f]{12}\.tmp$/.test(path)
