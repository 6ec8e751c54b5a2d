import { setTimeout as sleep } from 'node:timers/promises'

/** As many as the client has connections. */
const maxInFlight = 8

/**
 * Starts tasks `perSecond`, evenly, until the signal aborts; resolves with how many were done and in which time. A
 * server that is too slow gets fewer: at most eight run at once.
 */
export async function runPaced(
  perSecond: number,
  signal: AbortSignal,
  task: (at: number) => Promise<unknown>,
): Promise<{ readonly done: number; readonly ms: number }> {
  const startedMs = performance.now()
  const running = new Set<Promise<unknown>>()
  let done = 0
  for (let at = 0; !signal.aborted; at++) {
    const waitMs = startedMs + (at * 1000) / perSecond - performance.now()
    if (waitMs > 0) await sleep(waitMs)
    while (running.size >= maxInFlight) await Promise.race(running)
    const one: Promise<unknown> = task(at).then(() => {
      done++
      running.delete(one)
    })
    running.add(one)
  }
  await Promise.all(running)
  return { done, ms: performance.now() - startedMs }
}

/** Runs `count` tasks, eight at once. */
export async function runAll(count: number, task: (at: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const worker = async (): Promise<void> => {
    while (next < count) await task(next++)
  }
  await Promise.all(Array.from({ length: maxInFlight }, worker))
}
