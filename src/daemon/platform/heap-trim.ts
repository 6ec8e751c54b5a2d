import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

const trimIntervalMs = 10_000
/** What work leaves behind is given back at the next look. */
const muchSpareBytes = 2 * 2 ** 20
/** Less than this is not worth the work, which takes some 10 ms on five threads. */
const minSpareBytes = 2 ** 20
/**
 * What is between the two waits for so many looks: an idle heap grows by that within seconds, so that collecting at
 * each look would be nearly half of what an idle agent costs.
 */
const looksForLittle = 6

/**
 * Gives memory back to the host that the heap keeps without need. V8 does so by itself only when memory is short, and a
 * heap that grew in minutes of work would stay as large for the weeks without any. Until the signal aborts; does not
 * keep the process alive.
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
 * From here on V8 does without its best compiler, which is for programs that compute: its pages of the program's file
 * and its working memory are some MiB. The next one, which is quick and small, stays: without that one, too, work takes
 * a third longer. Called once what Node ships is loaded: with other flags V8 refuses its compiled form.
 */
export function disableTurboFan(): void {
  setFlagsFromString('--no-opt')
}

type CollectGarbage = (options: { type: 'major'; execution: 'sync'; flavor: 'last-resort' }) => void

/** As V8 collects before it would give up for want of memory: what is free goes back to the system. */
function runFullGc(): void {
  // as a command-line flag it would make V8 refuse the compiled code that Node ships
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as CollectGarbage
  setFlagsFromString('--no-expose-gc')
  collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}
