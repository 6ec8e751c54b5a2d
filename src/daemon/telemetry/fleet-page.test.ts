import { expect, test } from 'vitest'
import { countsOf, entry, nodeReporting, skyhookWith } from '../../../test/kit/objects/census-objects.ts'
import { skyhookSeries } from '../../census/fleet-series.ts'
import { fleetMetrics, type FleetSeries } from '../../schemas/catalogue/fleet-metrics.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { fleetPage } from './fleet-page.ts'

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
  expect(samplesIn(many)).toHaveLength(50 * (17 + 5 * 12 + 8 + 5)) // 4,500
  expect(Buffer.byteLength(many)).toBeLessThan(600_000)
})
