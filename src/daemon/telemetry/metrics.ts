import Counter from '@prometheus-io/client/lib/counter.js'
import Gauge from '@prometheus-io/client/lib/gauge.js'
import Histogram from '@prometheus-io/client/lib/histogram.js'
import Registry from '@prometheus-io/client/lib/registry.js'
import { type FleetMetricName, type FleetSeries, fleetMetrics } from '../../schemas/catalogue/fleet-metrics.ts'
import { type LabelsOf, type MetricName, type MetricNameOf, metrics } from '../../schemas/catalogue/metrics.ts'
import type { ReasonName } from '../../schemas/catalogue/reasons.ts'
import { type Journal, openSteps } from '../../schemas/journal.ts'
import type { Mode } from '../../schemas/package-config.ts'
import type { MetricsRegistry } from './http.ts'

/** The agent's own series, and those of the fleet, as described by the catalogues. */
export type Metrics = {
  /** The agent's own series. */
  readonly registry: Registry
  /** All series that are served. */
  readonly page: MetricsRegistry
  apiRequest(verb: string, code: number, count?: number): void
  stepEnded(stage: string, result: string, seconds: number): void
  slotHeld(phase: string, seconds: number): void
  slotWaited(seconds: number): void
  evictionEnded(result: EvictionResult): void
  rebootRefused(): void
  decisionFailed(): void
  actionRejected(): void
}

export type EvictionResult = (typeof metrics)['skyhookd_evictions_total']['labels']['result'][number]

export type MetricSources = {
  readonly version: string
  readonly slots: () => readonly { readonly phase: string; readonly kind: string }[]
  /** In seconds. */
  readonly oldestSlotAge: () => number
  /** Reboots since the start of this host's journal. */
  readonly rebootsMade: () => number
  readonly reasons: () => ReadonlyMap<ReasonName, number>
  readonly work: () => WorkNow
  readonly packageRequests: () => ReadonlyMap<'run' | 'interrupt', number>
  readonly isCensusCounting: () => boolean
  /** The series of the census, while this agent is elected. */
  readonly fleetSeries: () => readonly FleetSeries[]
  readonly reflectorAges: () => ReadonlyMap<string, number>
}

export function createMetrics(sources: MetricSources): Metrics {
  const registry = new Registry()
  const requests = new Counter(optionsOf('skyhookd_api_requests_total', registry))
  const decisionFailures = new Counter(optionsOf('skyhookd_decision_failures_total', registry))
  const rejectedActions = new Counter(optionsOf('skyhookd_action_errors_total', registry))
  const evictions = new Counter(optionsOf('skyhookd_evictions_total', registry))
  // a series that appears with its first count would hide that count from rate() and increase()
  for (const result of metrics.skyhookd_evictions_total.labels.result) evictions.inc({ result }, 0)
  let refusedReboots = 0
  const reboots = new Counter({
    ...optionsOf('skyhookd_reboots_total', registry),
    collect() {
      reboots.reset()
      reboots.inc({ result: 'made' }, sources.rebootsMade())
      reboots.inc({ result: 'refused' }, refusedReboots)
    },
  })
  const histogram = (name: MetricNameOf<'histogram'>): Histogram<string> =>
    new Histogram({ ...optionsOf(name, registry), buckets: [...metrics[name].buckets] })
  const steps = histogram('skyhookd_step_duration_seconds')
  const slotHolds = histogram('skyhookd_slot_hold_duration_seconds')
  const slotWaits = histogram('skyhookd_slot_wait_duration_seconds')
  const gauges: { readonly [Name in MetricNameOf<'gauge'>]: () => readonly (readonly [LabelsOf<Name>, number])[] } = {
    skyhookd_build_info: () => [[{ version: sources.version }, 1]],
    skyhookd_slots: () => sources.slots().map(({ phase, kind }) => [{ slot_kind: kind, phase }, 1]),
    skyhookd_slot_age_seconds: () => [[{}, sources.oldestSlotAge()]],
    skyhookd_drain_blocked_seconds: () => [[{}, sources.reasons().get('DrainBlocked') ?? 0]],
    skyhookd_reason_age_seconds: () => [...sources.reasons()].map(([reason, seconds]) => [{ reason }, seconds]),
    skyhookd_running_step_age_seconds: () => [...sources.work().stepAges].map(([stage, age]) => [{ stage }, age]),
    skyhookd_failed_attempts: () => [[{}, sources.work().failedAttempts]],
    skyhookd_next_attempt_seconds: () => [[{}, sources.work().nextAttempt]],
    skyhookd_package_requests: () => [...sources.packageRequests()].map(([kind, count]) => [{ kind }, count]),
    skyhookd_reflector_age_seconds: () => [...sources.reflectorAges()].map(([kind, seconds]) => [{ kind }, seconds]),
    skyhookd_census_leader: () => [[{}, sources.isCensusCounting() ? 1 : 0]],
  }
  for (const [name, samples] of Object.entries(gauges)) registerGauge(name as keyof typeof gauges, samples, registry)
  return {
    registry,
    page: {
      contentType: registry.contentType,
      metrics: async () => `${await registry.metrics()}${await fleetPage(sources.fleetSeries())}`,
    },
    apiRequest: (verb, code, count = 1) => requests.inc({ verb, code: String(code) }, count),
    stepEnded: (stage, result, seconds) => steps.observe({ stage, result }, seconds),
    slotHeld: (phase, seconds) => slotHolds.observe({ phase }, seconds),
    slotWaited: (seconds) => slotWaits.observe(seconds),
    evictionEnded: (result) => evictions.inc({ result }),
    rebootRefused: () => void refusedReboots++,
    decisionFailed: () => decisionFailures.inc({}),
    actionRejected: () => rejectedActions.inc({}),
  }
}

function optionsOf(name: MetricName, registry: Registry) {
  const { help, labels } = metrics[name]
  return { name, help, labelNames: Object.keys(labels), registers: [registry] }
}

/** A gauge whose values are read when it is scraped. */
function registerGauge(
  name: MetricNameOf<'gauge'>,
  samples: () => readonly (readonly [Readonly<Record<string, string>>, number])[],
  registry: Registry,
): void {
  const series = new Gauge({
    ...optionsOf(name, registry),
    collect() {
      series.reset()
      for (const [labels, value] of samples()) series.inc(labels, value)
    },
  })
}

/**
 * The series of the fleet in the text format of Prometheus; empty without series. The gauges exist only during one
 * scrape: the page has nothing that is not in `series`, and an agent that is not elected keeps nothing.
 */
export async function fleetPage(series: readonly FleetSeries[]): Promise<string> {
  if (series.length === 0) return ''
  const registry = new Registry()
  for (const [name, { help, labels }] of Object.entries(fleetMetrics)) {
    const samples = series.flatMap((one) => one[name as FleetMetricName] ?? [])
    if (samples.length === 0) continue // a gauge without labels would start with 0
    const labelNames = Object.keys(labels)
    const gauge = new Gauge({ name, help, labelNames, registers: [registry] })
    for (const [values, value] of samples)
      gauge.set(Object.fromEntries(labelNames.map((label, at) => [label, values[at] ?? ''])), value)
  }
  return await registry.metrics()
}

/** The current work of a node, for its metrics: running steps and failing stages. Pure. */

/**
 * In seconds. `stepAges` are those of the oldest running step of each mode. `nextAttempt` is 0 if there is no wait for
 * one.
 */
type WorkNow = {
  readonly stepAges: ReadonlyMap<Mode, number>
  readonly failedAttempts: number
  readonly nextAttempt: number
}

/** `nowMs`: steady time. */
export function workNow(journal: Journal, nowMs: number): WorkNow {
  const stepAges = new Map<Mode, number>()
  for (const { mode, startedAtMs } of openSteps(journal))
    stepAges.set(mode, Math.max(stepAges.get(mode) ?? 0, (nowMs - startedAtMs) / 1000))
  const entries = Object.values(journal.skyhooks).flatMap(({ packages }) => Object.values(packages))
  const retriesInMs = entries.flatMap(({ progress }) =>
    progress.state === 'retrying' && progress.retryAtMs > nowMs ? [progress.retryAtMs - nowMs] : [],
  )
  return {
    stepAges,
    failedAttempts: Math.max(0, ...entries.map(({ restarts }) => restarts)),
    nextAttempt: retriesInMs.length === 0 ? 0 : Math.min(...retriesInMs) / 1000,
  }
}
