import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/support/node-simulator.ts'
import { installedNode, pkg } from '../../../test/support/node-simulator-dsl.ts'

describe('a Skyhook that is being deleted', () => {
  const markDeleted = (node: NodeSimulator): void => {
    const view = node.views.get('s')
    if (view)
      node.views.set('s', { ...view, metadata: { ...view.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } })
  }

  test('uninstalls, under a slot, what asks for it', () => {
    const node = installedNode({ uninstall: { enabled: true } })
    markDeleted(node)
    node.settleFor(5_000)
    expect([node.executedSteps, node.annotation('nodeState_s'), node.slots]).toEqual([
      ['a uninstall run.sh', 'a uninstall-check run_check.sh'],
      '{}',
      [],
    ])
  })

  test.each([[undefined], [{ enabled: false }]])('leaves what does not: %j', (uninstall) => {
    const node = installedNode(uninstall && { uninstall })
    markDeleted(node)
    node.settleFor(5_000)
    expect([node.executedSteps, node.state()]).toEqual([[], ['a|1.0.0: config/complete']])
  })
})

describe('departures', () => {
  test('a Skyhook that is gone takes its annotations, label, conditions and slot with it, and runs nothing', () => {
    const node = installedNode()
    node.views.delete('s')
    node.settleFor(2_000)
    expect(node.executedSteps).toEqual([])
    expect([
      node.node.metadata.annotations,
      node.node.metadata.labels,
      node.node.status?.conditions?.map(({ type }) => type),
    ]).toEqual([{}, {}, ['Ready']])
    expect(node.journal.skyhooks['s']?.orphaned).toBe(true)
  })

  test('gone during a step: the step is stopped, then the slot goes', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.views.delete('s')
    node.settleFor(2_000)
    expect(node.slots).toEqual([])
    expect(node.journal.skyhooks['s']?.orphaned).toBe(true)
  })

  test('a Skyhook created again under its name keeps what is complete', () => {
    const node = installedNode()
    node.views.delete('s')
    node.settleFor(2_000)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(5_000)
    expect([node.executedSteps, node.status()]).toEqual([[], 'complete'])
  })

  test('a node that leaves the selector gives the slot back after the running step', () => {
    const node = new NodeSimulator({ pool: 'x' })
    node.hangingPackages.add('a')
    const spec = { nodeSelectors: { matchLabels: { pool: 'x' } }, packages: { a: pkg('1.0.0') } }
    node.apply('s', spec)
    node.settle()
    node.node = { ...node.node, metadata: { ...node.node.metadata, labels: {} } }
    node.settle()
    expect(node.slots).toHaveLength(1)
    node.finishHanging('a')
    node.settleFor(2_000)
    expect([node.slots, node.executedSteps]).toEqual([[], ['a apply run.sh']])
  })

  test('nothing is known of Skyhooks: nothing changes', () => {
    const node = installedNode()
    const snapshot = { ...node.snapshot(), skyhooks: { known: false as const, why: '503' } }
    node.snapshot = () => snapshot
    node.settle()
    expect(node.status()).toBe('complete')
    expect(node.executedSteps).toEqual([])
  })
})
