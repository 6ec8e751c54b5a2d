/** Waiting for what the event loop brings, or a virtual clock. Nothing here knows real time. */
import { onTestFinished } from 'vitest'
import type { VirtualClock } from './virtual-clock.ts'

/** Lets the event loop turn once: what has arrived by now is handled. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** Turns until it is so, for tests of real files, processes and sockets. Ends with the test at the latest. */
export async function turnsUntil(isSo: () => boolean): Promise<void> {
  const isOver = testEnd()
  while (!isSo() && !isOver()) await turn()
}

/** Lets time pass until the promise has its outcome, and gives that. Ends with the test at the latest. */
export async function passUntil<T>(clock: VirtualClock, outcome: Promise<T>): Promise<T> {
  const isOver = testEnd()
  const pending = new Set([outcome])
  const settle = (): void => void pending.delete(outcome)
  outcome.then(settle, settle)
  while (pending.size > 0 && !isOver()) await clock.advance(100)
  return await outcome
}

/** A loop must not outlive a test that has failed: many tests share a process. */
function testEnd(): () => boolean {
  let isOver = false
  onTestFinished(() => void (isOver = true))
  return () => isOver
}
