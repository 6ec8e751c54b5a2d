import { readFileSync } from 'node:fs'

/** Of one process, in MB (10^6 bytes). Private = pages that no other process shares, written to or not. */
export type Memory = { readonly rssMb: number; readonly privateMb: number }

/** Reads the kernel's sums for `pid`; throws when it is gone or not ours to look at. */
export function memoryOf(pid: number | 'self'): Memory {
  return parseRollup(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))
}

/** The text of a smaps_rollup file (proc_pid_smaps(5)). */
export function parseRollup(text: string): Memory {
  const bytes = (name: string): number => Number(new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0) * 1024
  return { rssMb: bytes('Rss') / 1e6, privateMb: (bytes('Private_Dirty') + bytes('Private_Clean')) / 1e6 }
}

export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2
}
