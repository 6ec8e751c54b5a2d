import { readFileSync } from 'node:fs'

/**
 * Of one process, in MiB. RSS counts pages of files, too, such as those of the program itself, which the kernel drops when
 * memory is short. Private = pages that the process has written: only its end gives them back.
 */
export type Memory = { readonly rssMiB: number; readonly privateMiB: number }

/** Reads the kernel's sums for `pid`; throws when it is gone or not ours to look at. */
export function memoryOf(pid: number | 'self'): Memory {
  return parseRollup(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))
}

/** The text of a smaps_rollup file (proc_pid_smaps(5)). */
export function parseRollup(text: string): Memory {
  const kibibytes = (name: string): number => Number(new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(text)?.[1] ?? Number.NaN)
  return { rssMiB: kibibytes('Rss') / 1024, privateMiB: kibibytes('Private_Dirty') / 1024 }
}

export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2
}
