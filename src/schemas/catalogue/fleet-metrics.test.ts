import { expect, test } from 'vitest'
import { fleetMetrics } from './fleet-metrics.ts'

/** What dashboards of the operator's users ask for. */
const operatorLabels = {
  skyhook_status: ['skyhook_name', 'status'],
  skyhook_node_status_count: ['skyhook_name', 'status'],
  skyhook_node_target_count: ['skyhook_name'],
  skyhook_package_state_count: ['skyhook_name', 'package_name', 'package_version', 'state'],
  skyhook_package_stage_count: ['skyhook_name', 'package_name', 'package_version', 'stage'],
  skyhook_package_restarts_count: ['skyhook_name', 'package_name', 'package_version'],
  ...Object.fromEntries(
    [
      'matched_nodes',
      'ceiling',
      'in_progress',
      'completed',
      'progress_percent',
      'current_batch',
      'consecutive_failures',
      'should_stop',
    ].map((name) => [`skyhook_rollout_${name}`, ['skyhook_name', 'policy_name', 'compartment_name', 'strategy']]),
  ),
}

const rows = Object.entries(fleetMetrics)

test("the operator's series have its names and labels, and all of them are there", () => {
  const ours = rows.filter(([name]) => name.startsWith('skyhook_'))
  expect(Object.fromEntries(ours.map(([name, { labels }]) => [name, Object.keys(labels)]))).toEqual(operatorLabels)
})

test('series that the operator does not have are named after skyhookd', () => {
  for (const [name] of rows.filter(([name]) => !name.startsWith('skyhook_'))) expect(name).toMatch(/^skyhookd_fleet_/)
})

test('statuses, states and stages are written as the operator writes them', () => {
  const { skyhook_status, skyhook_package_state_count, skyhook_package_stage_count } = fleetMetrics
  expect(skyhook_status.labels.status.toSorted().join(' ')).toBe(
    'blocked complete disabled erroring in_progress paused unknown waiting',
  )
  expect(skyhook_package_state_count.labels.state.toSorted().join(' ')).toBe(
    'complete erroring in_progress skipped unknown',
  )
  expect(skyhook_package_stage_count.labels.stage.toSorted().join(' ')).toBe(
    'apply config interrupt post-interrupt uninstall upgrade',
  )
})

test('all series of the fleet are gauges: the next census counts them from the cluster', () => {
  for (const [, { type }] of rows) expect(type).toBe('gauge')
})
