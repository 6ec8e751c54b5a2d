import { readFileSync } from 'node:fs'

/**
 * Memory of one process, in MiB. RSS includes pages of files, such as the program itself, which the kernel drops when
 * memory is short. Private memory is the process's own (heap, stacks, written data): only its exit frees it. The
 * kernel's `Private_Dirty` is something else: it includes pages of the program's file that are not on disk yet, 67 MiB
 * just after an image was unpacked.
 */
export type Memory = { readonly rssMiB: number; readonly privateMiB: number }

/** Reads the kernel's sums for `pid`; throws if the process is gone or not accessible. */
export function memoryOf(pid: number | 'self'): Memory {
  return parseRollup(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))
}

/** The text of a smaps_rollup file (proc_pid_smaps(5)); throws if it lacks a sum. */
export function parseRollup(text: string): Memory {
  const mebibytes = (name: string): number => {
    const kibibytes = new RegExp(`^${name}: +(\\d+) kB$`, 'm').exec(text)?.[1]
    if (kibibytes === undefined) throw new Error(`no ${name} in smaps_rollup: ${JSON.stringify(text)}`)
    return Number(kibibytes) / 1024
  }
  return { rssMiB: mebibytes('Rss'), privateMiB: mebibytes('Anonymous') }
}

export function medianOf(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = Math.floor(sorted.length / 2)
  const upper = sorted[middle] ?? Number.NaN
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2
}
