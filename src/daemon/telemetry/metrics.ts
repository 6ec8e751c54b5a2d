import Counter from '@prometheus-io/client/lib/counter.js'
import Gauge from '@prometheus-io/client/lib/gauge.js'
import Histogram from '@prometheus-io/client/lib/histogram.js'
import Registry from '@prometheus-io/client/lib/registry.js'
import type { ReasonName } from '../../schemas/catalogue/reasons.ts'

/** The agent's own series (docs/usage/metrics.md). Labels come from closed sets: no package, Skyhook or node is one. */
export type Metrics = {
  readonly registry: Registry
  apiRequest(verb: string, code: number, count?: number): void
  stepEnded(stage: string, result: string, seconds: number): void
  slotHeld(phase: string, seconds: number): void
  slotWaited(seconds: number): void
}

export type MetricSources = {
  readonly version: string
  readonly slots: () => readonly { readonly phase: string; readonly kind: string }[]
  readonly reasons: () => ReadonlyMap<ReasonName, number>
  readonly packageRequests: () => ReadonlyMap<'run' | 'interrupt', number>
  readonly isCensusLeader: () => boolean
  readonly reflectorAges: () => ReadonlyMap<string, number>
}

export function createMetrics(sources: MetricSources): Metrics {
  const registry = new Registry()
  const registers = [registry]
  const requests = new Counter({
    name: 'skyhookd_api_requests_total',
    help: 'Requests to the API server by verb and answer; code 0 = no answer',
    labelNames: ['verb', 'code'],
    registers,
  })
  const steps = new Histogram({
    name: 'skyhookd_step_duration_seconds',
    help: 'Time that steps of packages took',
    labelNames: ['stage', 'result'],
    buckets: [0.1, 1, 5, 30, 120, 600, 3600],
    registers,
  })
  const slotHolds = new Histogram({
    name: 'skyhookd_slot_hold_duration_seconds',
    help: 'Time that this node held a slot, by the phase it ended in',
    labelNames: ['phase'],
    buckets: [0.5, 1, 5, 30, 120, 600, 3600],
    registers,
  })
  const slotWaits = new Histogram({
    name: 'skyhookd_slot_wait_duration_seconds',
    help: 'Time from the first asking for a slot to its grant',
    buckets: [0.1, 1, 5, 30, 120, 600, 3600],
    registers,
  })
  new Gauge({ name: 'skyhookd_build_info', help: 'Version of the agent', labelNames: ['version'], registers }).set(
    { version: sources.version },
    1,
  )
  gauge(registry, 'skyhookd_slots', 'Slots that this node holds', ['slot_kind', 'phase'], () =>
    sources.slots().map(({ phase, kind }) => [{ slot_kind: kind, phase }, 1]),
  )
  gauge(registry, 'skyhookd_reason_age_seconds', 'Age of the oldest present reason of each kind', ['reason'], () =>
    [...sources.reasons()].map(([reason, seconds]) => [{ reason }, seconds]),
  )
  gauge(
    registry,
    'skyhookd_package_requests',
    'Packages of this host that want a run of config, or say that they need an interrupt',
    ['kind'],
    () => [...sources.packageRequests()].map(([kind, count]) => [{ kind }, count]),
  )
  gauge(
    registry,
    'skyhookd_reflector_age_seconds',
    'Time since the API server last proved that a watched collection is up to date',
    ['kind'],
    () => [...sources.reflectorAges()].map(([kind, seconds]) => [{ kind }, seconds]),
  )
  gauge(registry, 'skyhookd_census_leader', '1 on the agent that counts for the cluster', [], () => [
    [{}, sources.isCensusLeader() ? 1 : 0],
  ])
  return {
    registry,
    apiRequest: (verb, code, count = 1) => requests.inc({ verb, code: String(code) }, count),
    stepEnded: (stage, result, seconds) => steps.observe({ stage, result }, seconds),
    slotHeld: (phase, seconds) => slotHolds.observe({ phase }, seconds),
    slotWaited: (seconds) => slotWaits.observe(seconds),
  }
}

/** A gauge whose values are asked for when it is scraped. */
function gauge(
  registry: Registry,
  name: string,
  help: string,
  labelNames: string[],
  values: () => (readonly [Record<string, string>, number])[],
): void {
  const series = new Gauge({
    name,
    help,
    labelNames,
    registers: [],
    collect() {
      this.reset()
      for (const [labels, value] of values()) this.inc(labels, value)
    },
  })
  registry.registerMetric(series)
}
