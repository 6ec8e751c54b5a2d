/** What becomes of unfinished files when a signal ends the process. */
import { rmSync } from 'node:fs'

const numbers = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const

/**
 * Removes the folders when somebody ends the process, and ends it as the signal would.
 * @returns what to call once nobody has to any more
 */
export function removeWhenInterrupted(folders: readonly string[]): () => void {
  const end = (signal: NodeJS.Signals): never => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true })
    process.exit(128 + numbers[signal as keyof typeof numbers])
  }
  for (const signal of Object.keys(numbers)) process.on(signal, end)
  return () => {
    for (const signal of Object.keys(numbers)) process.off(signal, end)
  }
}
