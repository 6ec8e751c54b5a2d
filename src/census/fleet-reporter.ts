/** The series of the fleet on their way to the agent: what changed, a few times a second at most. */
import type { FleetSeries } from '../schemas/catalogue/fleet-metrics.ts'
import type { Clock } from '../schemas/clock.ts'
import { isEqual } from '../schemas/equal.ts'
import type { ClusterView } from './cluster-view.ts'
import { clusterSeries } from './fleet-series.ts'
import { type SeriesLine, clusterSubject } from './messages.ts'

export type FleetReporter = {
  /** The series of a Skyhook, by its name, as it was counted just now. */
  counted(skyhook: string, series: FleetSeries): void
  /** Skyhooks may be gone. */
  skyhooksChanged(): void
  /** Counts what belongs to no Skyhook, and withdraws series that are too old. Called every few seconds. */
  refresh(): void
  close(): void
}

/** A scrape is never more frequent, and a turn of the census takes less. */
const flushDelayMs = 500
/** A broken watch is back within seconds. After this, unconfirmed series are worse than none. */
const maxDistrustMs = 60_000

export function startFleetReporter(
  view: Pick<ClusterView, 'nodes' | 'skyhooks' | 'isTrusted'>,
  { clock, emit }: { readonly clock: Clock; readonly emit: (line: SeriesLine) => void },
): FleetReporter {
  const sent = new Map<string, FleetSeries>()
  const pending = new Map<string, FleetSeries>()
  let cancelTimer: (() => void) | undefined
  let distrustedSinceMs: number | undefined

  const exists = (subject: string): boolean => subject === clusterSubject || view.skyhooks.has(subject)

  function flush(): void {
    cancelTimer = undefined
    for (const [subject, series] of pending)
      if (exists(subject) && !isEqual(sent.get(subject), series)) {
        sent.set(subject, series)
        emit({ kind: 'series', subject, series })
      }
    pending.clear()
    withdraw((subject) => !exists(subject))
  }

  function withdraw(isGone: (subject: string) => boolean): void {
    for (const subject of [...sent.keys()].filter(isGone)) {
      sent.delete(subject)
      emit({ kind: 'series', subject })
    }
  }

  const flushSoon = (): void => void (cancelTimer ??= clock.startTimer(flushDelayMs, flush))
  const put = (subject: string, series: FleetSeries): void => {
    pending.set(subject, series)
    flushSoon()
  }

  return {
    counted: put,
    skyhooksChanged: flushSoon,
    refresh() {
      if (view.isTrusted()) {
        distrustedSinceMs = undefined
        return put(clusterSubject, clusterSeries(view.skyhooks, view.nodes))
      }
      const nowMs = clock.monotonicMs()
      distrustedSinceMs ??= nowMs
      if (nowMs - distrustedSinceMs >= maxDistrustMs) withdraw(() => true)
    },
    close: () => cancelTimer?.(),
  }
}
