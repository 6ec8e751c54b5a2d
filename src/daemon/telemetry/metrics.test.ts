import { expect, test } from 'vitest'
import { pkg } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { countsOf, entry, nodeReporting, skyhookWith } from '../../../test/kit/objects/census-objects.ts'
import { skyhookSeries } from '../../census/status/fleet-series.ts'
import { slotKinds } from '../../lease/names.ts'
import { type FleetSeries, fleetMetrics } from '../../schemas/catalogue/fleet-metrics.ts'
import { metrics as catalogue } from '../../schemas/catalogue/metrics.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { createMetrics, fleetPage, type MetricSources, workNow } from './metrics.ts'

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

const samplesIn = (page: string): string[] => page.split('\n').filter((line) => line !== '' && !line.startsWith('#'))

test('an agent without a census has no series of the fleet, not even their names', async () => {
  expect(await fleetPage([])).toBe('')
})

test('samples have their labels by name, and text of people is escaped', async () => {
  const page = await fleetPage([
    {
      skyhook_package_restarts_count: [[['demo', 'a"b\\c\nd', '1.0.0'], 3]],
      skyhookd_fleet_left_over_cordons: [[[], 2]],
    },
  ])
  expect(samplesIn(page)).toEqual([
    'skyhook_package_restarts_count{skyhook_name="demo",package_name="a\\"b\\\\c\\nd",package_version="1.0.0"} 3',
    'skyhookd_fleet_left_over_cordons 2',
  ])
})

test('a series is announced as a gauge with its help, and one that nobody counted is not there, not even as 0', async () => {
  const page = await fleetPage([{ skyhook_node_target_count: [[['demo'], 1]] }])
  expect(page.trim().split('\n')).toEqual([
    `# HELP skyhook_node_target_count ${fleetMetrics.skyhook_node_target_count.help}`,
    '# TYPE skyhook_node_target_count gauge',
    'skyhook_node_target_count{skyhook_name="demo"} 1',
  ])
})

test('what is not counted any more is not on the next page', async () => {
  const of = (skyhook: string): FleetSeries => ({ skyhook_node_target_count: [[[skyhook], 1]] })
  expect(samplesIn(await fleetPage([of('a'), of('b')]))).toHaveLength(2)
  expect(samplesIn(await fleetPage([of('b')]))).toEqual(['skyhook_node_target_count{skyhook_name="b"} 1'])
})

test('a scrape of 1,000 nodes, 50 Skyhooks and 5 packages is bounded, whatever the number of nodes', async () => {
  const names = ['kernel-tuning', 'nvidia-driver', 'containerd-config', 'node-hardening', 'lustre-client']
  const version = '12.10.100'
  const packages = Object.fromEntries(names.map((name) => [name, { version, image: 'r/p' }]))
  const entries = names.map((name) => entry({ name, version }))
  const skyhookCalled = (name: string): Skyhook => skyhookWith({ spec: { packages }, metadata: { name } })
  const scrape = async (nodeCount: number): Promise<string> => {
    const nodes = Array.from({ length: nodeCount }, (_, at) =>
      nodeReporting(`n${at}`, { status: 'in_progress', entries, of: { packages } }),
    )
    const counts = countsOf(skyhookCalled('demo'), nodes) // according to each Lease
    const byName = new Map(nodes.map((node) => [node.name, node]))
    return await fleetPage(
      Array.from({ length: 50 }, (_, at) => {
        const skyhook = skyhookCalled(`platform-team-skyhook-${at}`)
        return skyhookSeries({ skyhook, counts, ledger: undefined, nodes: byName })
      }),
    )
  }
  const [few, many] = [await scrape(1), await scrape(1_000)]
  expect(samplesIn(many)).toHaveLength(samplesIn(few).length)
  expect(samplesIn(many)).toHaveLength(50 * (18 + 5 * 12 + 8 + 5)) // 4,550
  expect(Buffer.byteLength(many)).toBeLessThan(600_000)
})

test('metrics tell the age of the running step, and the attempts of a stage that fails', () => {
  const node = new NodeSimulator()
  node.hangingPackages.add('b')
  node.exitCodes.set('a apply', 1)
  node.apply('s', { packages: { a: pkg('1.0.0'), b: pkg('1.0.0') } })
  const startMs = node.nowMs
  node.settleFor(60_000)
  const now = workNow(node.journal, startMs + 60_000)
  expect([...now.stepAges]).toEqual([['apply', 60]])
  expect(now.failedAttempts).toBe(4)
  expect(now.nextAttempt).toBeGreaterThan(0)
  expect(workNow(node.journal, startMs + 3_600_000)).toMatchObject({ nextAttempt: 0 })
})
