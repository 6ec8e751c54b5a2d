import { expect, test } from 'vitest'
import { slotKinds } from '../../lease/names.ts'
import { metrics as catalogue } from '../../schemas/catalogue/metrics.ts'
import { createMetrics, type MetricSources } from './metrics.ts'

const sources: MetricSources = {
  version: '1.2.3',
  slots: () => [{ phase: 'draining', kind: 'slot' }],
  oldestSlotAge: () => 125.5,
  rebootsMade: () => 4,
  reasons: () =>
    new Map([
      ['StepFailed', 61],
      ['DrainBlocked', 7.5],
    ]),
  work: () => ({ stepAges: new Map([['apply-check', 90]]), failedAttempts: 4, nextAttempt: 12.5 }),
  packageRequests: () =>
    new Map([
      ['run', 2],
      ['interrupt', 0],
    ]),
  isCensusCounting: () => true,
  fleetSeries: () => [],
  reflectorAges: () => new Map([['nodes', 1.5]]),
}

test('the registry holds exactly the series of the catalogue, with their type, help and labels', () => {
  const { registry } = createMetrics(sources)
  const registered = registry.getMetricsAsArray() as unknown as readonly {
    readonly name: string
    readonly help: string
    readonly labelNames: readonly string[]
    readonly constructor: { readonly name: string }
  }[]
  expect(
    Object.fromEntries(
      registered.map(({ name, help, labelNames, constructor }) => [
        name,
        { type: constructor.name.toLowerCase(), help, labelNames: labelNames.filter((label) => label !== 'le') },
      ]),
    ),
  ).toEqual(
    Object.fromEntries(
      Object.entries(catalogue).map(([name, { type, help, labels }]) => [
        name,
        { type, help, labelNames: Object.keys(labels) },
      ]),
    ),
  )
})

test('gauges show what their sources say when they are scraped', async () => {
  const text = await createMetrics(sources).registry.metrics()
  for (const line of [
    'skyhookd_build_info{version="1.2.3"} 1',
    'skyhookd_slots{slot_kind="slot",phase="draining"} 1',
    'skyhookd_reason_age_seconds{reason="StepFailed"} 61',
    'skyhookd_slot_age_seconds 125.5',
    'skyhookd_running_step_age_seconds{stage="apply-check"} 90',
    'skyhookd_failed_attempts 4',
    'skyhookd_next_attempt_seconds 12.5',
    'skyhookd_drain_blocked_seconds 7.5',
    'skyhookd_reboots_total{result="made"} 4',
    'skyhookd_package_requests{kind="run"} 2',
    'skyhookd_package_requests{kind="interrupt"} 0',
    'skyhookd_census_leader 1',
    'skyhookd_reflector_age_seconds{kind="nodes"} 1.5',
  ])
    expect(text.split('\n')).toContain(line)
})

test('a second scrape does not add to the values of the first', async () => {
  const metrics = createMetrics(sources)
  metrics.rebootRefused()
  await metrics.registry.metrics()
  const text = await metrics.registry.metrics()
  expect(text).toContain('skyhookd_package_requests{kind="run"} 2\n')
  expect(text).toContain('skyhookd_reboots_total{result="made"} 4\n')
  expect(text).toContain('skyhookd_reboots_total{result="refused"} 1\n')
})

test('counters of evictions and reboots are there before the first one, so that rate() sees it', async () => {
  const text = await createMetrics({ ...sources, reasons: () => new Map(), rebootsMade: () => 0 }).registry.metrics()
  for (const result of catalogue.skyhookd_evictions_total.labels.result)
    expect(text).toContain(`skyhookd_evictions_total{result="${result}"} 0\n`)
  for (const result of catalogue.skyhookd_reboots_total.labels.result)
    expect(text).toContain(`skyhookd_reboots_total{result="${result}"} 0\n`)
  expect(text).toContain('skyhookd_drain_blocked_seconds 0\n')
})

test('counters and histograms take what the agent observes', async () => {
  const metrics = createMetrics(sources)
  metrics.apiRequest('GET', 200)
  metrics.apiRequest('GET', 200, 4)
  metrics.stepEnded('apply', 'ok', 3)
  metrics.slotHeld('working', 40)
  metrics.slotWaited(0.05)
  metrics.evictionEnded('blocked')
  metrics.evictionEnded('blocked')
  const text = await metrics.registry.metrics()
  expect(text).toContain('skyhookd_api_requests_total{verb="GET",code="200"} 5\n')
  expect(text).toContain('skyhookd_step_duration_seconds_bucket{le="5",stage="apply",result="ok"} 1\n')
  expect(text).toContain('skyhookd_step_duration_seconds_bucket{le="1",stage="apply",result="ok"} 0\n')
  expect(text).toContain('skyhookd_slot_hold_duration_seconds_sum{phase="working"} 40\n')
  expect(text).toContain('skyhookd_slot_wait_duration_seconds_count 1\n')
  expect(text).toContain('skyhookd_evictions_total{result="blocked"} 2\n')
})

test('the label slot_kind knows every kind of slot', () => {
  expect(catalogue.skyhookd_slots.labels.slot_kind).toEqual([...slotKinds, 'other'])
})
