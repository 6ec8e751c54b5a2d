import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** Looks this often; a collection takes some 20 ms, so the worst that it can cost is 0.2 % of a core. */
const trimIntervalMs = 10_000
/** Less than this is not worth the work. */
const minSpareBytes = 2 ** 20

/**
 * Gives memory back to the host that the heap keeps without need. V8 does so by itself only when memory is short, and a
 * heap that grew in minutes of work would stay as large for the weeks without any. Until the signal aborts; does not
 * keep the process alive.
 */
export function startHeapTrim(signal: AbortSignal, intervalMs = trimIntervalMs): void {
  let sizeAfterTrimBytes = 0
  const timer = setInterval(() => {
    if (getHeapStatistics().total_heap_size < sizeAfterTrimBytes + minSpareBytes) return
    runFullGc()
    sizeAfterTrimBytes = getHeapStatistics().total_heap_size
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
