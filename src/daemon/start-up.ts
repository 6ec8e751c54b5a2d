import { type Clock, sleep } from '../schemas/clock.ts'
import type { Failure } from '../stages/model/snapshot.ts'
import type { FailureBook } from './failures/book.ts'
import { errorField, type Log } from './telemetry/log.ts'

/** Runs the tasks that an agent needs before its first decision. */
export type StartUp = {
  /** Tries again with the backoff of failures until it succeeds; rejects when the signal aborts. */
  readonly untilDone: <T>(operation: string, task: () => Promise<T>) => Promise<T>
}

/** A failure that the next attempts resolve does not become a reason. */
const lastingMs = 3_000

export function createStartUp(ports: {
  readonly clock: Clock
  readonly log: Log
  readonly failures: Pick<FailureBook, 'record' | 'clear' | 'current' | 'notBeforeMs'>
  /** The task has failed for some seconds and still fails. */
  readonly onLasting: (failure: Failure) => void
  readonly signal: AbortSignal
}): StartUp {
  const { clock, log, failures, signal } = ports
  return {
    async untilDone(operation, task) {
      const key = `start ${operation}`
      for (;;) {
        try {
          const result = await task()
          failures.clear(key)
          return result
        } catch (error) {
          signal.throwIfAborted()
          log.warn({ operation, ...errorField(error) }, 'start-up is held up, retrying')
          const { sinceMs } = failures.record(key, { operation }, error)
          const report = (): void => {
            const failure = failures.current().get(key)
            if (failure && !signal.aborted) ports.onLasting(failure)
          }
          clock.startTimer(Math.max(0, sinceMs + lastingMs - clock.steadyMs()), report, { isBackground: true })
          await sleep(clock, failures.notBeforeMs(key) - clock.steadyMs(), signal)
        }
      }
    },
  }
}
