import { readFileSync } from 'node:fs'

/**
 * Of one process, in MiB. RSS counts pages of files, too, such as those of the program itself, which the kernel drops
 * when memory is short. Private = pages of the process itself (heap, stacks, data it has written): only its end gives
 * them back. The kernel's `Private_Dirty` is not that: it also counts pages of the program's file that were not written
 * to disk yet, 67 MiB just after an image was unpacked.
 */
export type Memory = { readonly rssMiB: number; readonly privateMiB: number }

/** Reads the kernel's sums for `pid`; throws when it is gone or not ours to look at. */
export function memoryOf(pid: number | 'self'): Memory {
  return parseRollup(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))
}

/** The text of a smaps_rollup file (proc_pid_smaps(5)); throws when a sum is missing from it. */
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
