/** The census: counts for the whole cluster while its agent is elected. */
import { startEventRecorder } from '../kube/events.ts'
import type { ReflectorFact } from '../kube/reflector.ts'
import type { CompletedRequest, KubeTransport } from '../kube/transport.ts'
import { skyhookTypeMeta } from '../schemas/api.ts'
import type { FleetSeries } from '../schemas/catalogue/fleet-metrics.ts'
import { type Clock, type Random, startInterval } from '../schemas/clock.ts'
import { isEqual, messageOf } from '../schemas/json.ts'
import { type ClusterView, startClusterView } from './model/cluster-view.ts'
import { clusterSeries } from './status/fleet-series.ts'
import { type CensusLine, type CensusSettings, clusterSubject, type SeriesLine } from './model/messages.ts'
import { startScheduler } from './scheduler.ts'

/** What a census gets from outside. */
export type CensusContext = {
  readonly clock: Clock
  readonly random: Random
  /** The API server. `onRequest` gets every finished request. */
  readonly connectApi: (onRequest: (request: CompletedRequest) => void) => KubeTransport
  /** Sends a line to the agent. */
  readonly emit: (line: CensusLine) => void
}

const heartbeatMs = 10_000
/** One census reports on all Skyhooks: more than an agent on its node, and still no load for an API server. */
const eventRateLimit = { perSecond: 1, burst: 50 }

/** Counts until the signal aborts. Rejects when the cluster cannot be read for another reason. */
export async function runCensus(settings: CensusSettings, context: CensusContext, signal: AbortSignal): Promise<void> {
  const { clock, random, emit } = context
  const { namespace, nodeName } = settings
  const log = (level: 'info' | 'warn', message: string, fields: Record<string, unknown>): void =>
    emit({ kind: 'log', level, message, fields })
  const requests = createRequestCounts()
  const transport = context.connectApi(requests.add)
  const timing = eventRateLimit
  const recorder = startEventRecorder(transport, {
    clock,
    random,
    component: 'skyhookd-census',
    host: nodeName,
    signal,
    timing,
  })
  const warnOwnNodeMissing = (): void =>
    log('warn', 'census: own Node missing from the list, skipping the count', {
      node: nodeName,
      nodes: view.nodes.size,
    })
  const logFailure = (kind: string, fact: ReflectorFact): void => {
    if (fact.fact !== 'failed') return
    const { during, retryInMs, error } = fact
    log('warn', 'census: watch interrupted', { kind, during, retryInMs, error: messageOf(error) })
  }

  const view = startClusterView(transport, {
    settings,
    clock,
    random,
    signal,
    onNode: (before, after) => scheduler.nodeChanged(before, after),
    onSkyhooks(changes) {
      scheduler.skyhooksChanged(changes)
      fleet.skyhooksChanged()
    },
    onLedgers: (changes) => scheduler.ledgersChanged(changes),
    onListed: (what) => scheduler.listed(what),
    onRecount: () => scheduler.enqueueAll(),
    onOwnNodeMissing: warnOwnNodeMissing,
    onFact: logFailure,
  })
  const fleet = startFleetReporter(view, { clock, emit })
  const scheduler = startScheduler({
    leases: { transport, namespace, clock },
    random,
    view,
    defaultBudget: settings.defaultBudget,
    isNodeWrightServed: settings.isNodeWrightServed === true,
    report: ({ metadata: { name, uid } }, event) =>
      recorder.record({ regarding: { ...skyhookTypeMeta, name, uid }, ...event }),
    onCounted: (skyhook, series) => fleet.counted(skyhook, series),
    onFailed: (skyhook, error) => log('warn', 'census: write failed', { skyhook, error: messageOf(error) }),
    onCountFailed: (skyhook, error) =>
      log('warn', 'census: count failed', {
        skyhook,
        error: (error instanceof Error && error.stack) || messageOf(error),
      }),
    signal,
  })

  const heartbeat = (): void => {
    const counts = requests.take()
    if (counts.length > 0) emit({ kind: 'requests', counts })
    const uncountedMs = view.distrustedMs()
    const { ready } = view.agents()
    fleet.refresh()
    emit({
      kind: 'heartbeat',
      ...(uncountedMs !== undefined && { uncountedMs }),
      // while all agents restart none is Ready: publishing zero would leave no agent to lead after this one
      agents: ready === 0 ? view.nodes.size : ready,
    })
  }
  const stopHeartbeat = startInterval(clock, heartbeatMs, heartbeat)
  try {
    await view.synced
    if (view.nodes.has(nodeName))
      log('info', 'census: counting', { nodes: view.nodes.size, skyhooks: view.skyhooks.size })
    else warnOwnNodeMissing()
    scheduler.enqueueAll()
    heartbeat()
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    stopHeartbeat()
    view.close()
    heartbeat() // reports the last requests
    fleet.close()
    transport.close()
  }
}

type RequestCount = { readonly verb: string; readonly code: number; readonly count: number }

function createRequestCounts(): {
  readonly add: (request: CompletedRequest) => void
  take(): RequestCount[]
} {
  const counts = new Map<string, RequestCount>()
  return {
    add({ verb, code }) {
      const key = `${verb} ${code}`
      counts.set(key, { verb, code, count: (counts.get(key)?.count ?? 0) + 1 })
    },
    take() {
      const taken = [...counts.values()]
      counts.clear()
      return taken
    },
  }
}

/** The series of the fleet on their way to the agent: what changed, a few times a second at most. */

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
