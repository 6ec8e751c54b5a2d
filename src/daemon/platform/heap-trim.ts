import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const trimIntervalMs = 10_000
/** More spare memory than this, which work leaves behind, is released at the next check. */
const muchSpareBytes = 2 * 2 ** 20
/** Less spare memory is not worth the release, which takes some 10 ms on five threads. */
const minSpareBytes = 2 ** 20
/**
 * An amount between the two limits is released after this many checks. An idle heap grows by such an amount within
 * seconds: collection at each check would be nearly half of the CPU time of an idle agent.
 */
const looksForLittle = 6

/**
 * Releases unused memory of the heap to the host until the signal aborts. V8 does this by itself only when memory is
 * short: a heap that grew in minutes of work would stay large for weeks without work. Does not keep the process alive.
 */
export function startHeapTrim(signal: AbortSignal, intervalMs = trimIntervalMs): void {
  let sizeAfterTrimBytes = 0
  let looks = 0
  const timer = setInterval(() => {
    looks++
    const spareBytes = getHeapStatistics().total_heap_size - sizeAfterTrimBytes
    if (spareBytes < (looks < looksForLittle ? muchSpareBytes : minSpareBytes)) return
    runFullGc()
    sizeAfterTrimBytes = getHeapStatistics().total_heap_size
    looks = 0
  }, intervalMs)
  timer.unref()
  signal.addEventListener('abort', () => clearInterval(timer))
}

/**
 * Disables V8's best compiler from now on. It is for programs that compute a lot, and its pages of the program's file
 * and its working memory take some MiB. The next compiler, which is fast and small, stays: without it, work takes a
 * third longer. Call it after Node's own code is loaded: with other flags, V8 rejects the compiled form of that code.
 */
export function disableTurboFan(): void {
  setFlagsFromString('--no-opt')
}

type CollectGarbage = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

/** The collection that V8 runs before it fails for lack of memory: free memory goes back to the system. */
function runFullGc(): void {
  // as a command-line flag it makes V8 reject the compiled code that Node ships
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as CollectGarbage
  setFlagsFromString('--no-expose-gc')
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
