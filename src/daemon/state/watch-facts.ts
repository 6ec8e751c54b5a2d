import { isGone } from '../../kube/errors.ts'
import type { ReflectorFact } from '../../kube/reflector.ts'
import type { Clock, Random } from '../../schemas/clock.ts'
import { errorField, type Log } from '../telemetry/log.ts'
import type { FailureBook } from '../failures/book.ts'

/** What the sources need that follow objects by a watch. */
export type WatchPorts = {
  readonly clock: Clock
  readonly random: Random
  readonly wake: () => void
  readonly onFact: (fact: ReflectorFact) => void
  readonly signal: AbortSignal
}

export type WatchFactsOptions = {
  readonly failures: Pick<FailureBook, 'record' | 'clear'>
  readonly log: Pick<Log, 'debug' | 'warn'>
  readonly wake: () => void
}

/**
 * Handles facts of the reflector of one kind: logs them, and records a failure until the next list or watch succeeds.
 * An expired resourceVersion of a watch is not a failure: it is normal after a restart of the server, and a list
 * follows.
 */
export function watchFacts(kind: string, { failures, log, wake }: WatchFactsOptions): (fact: ReflectorFact) => void {
  const key = `watch ${kind}`
  return (fact) => {
    if (fact.fact === 'failed') {
      const { during, error, retryInMs } = fact
      if (during === 'watch' && isGone(error)) {
        log.debug({ kind, retryInMs, ...errorField(error) }, 'watch too old')
        return
      }
      log.warn({ kind, during, retryInMs, ...errorField(error) }, 'watch interrupted')
      failures.record(key, { operation: `${during} ${kind}` }, error)
      wake()
    } else {
      log.debug({ kind, ...fact }, 'watch')
      if (fact.fact !== 'watch-ended') failures.clear(key)
    }
  }
}
