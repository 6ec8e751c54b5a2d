import { describe, expect, test } from 'vitest'
import { NodeModel } from '../../../test/support/node-simulator.ts'
import { installed, pkg } from '../../../test/support/node-simulator-dsl.ts'

describe('a Skyhook that is being deleted', () => {
  const deleted = (node: NodeModel): void => {
    const view = node.views.get('s')
    if (view) node.views.set('s', { ...view, metadata: { ...view.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } })
  }

  test('uninstalls, under a slot, what asks for it', () => {
    const node = installed({ uninstall: { enabled: true } })
    deleted(node)
    node.settleOver(5_000)
    expect([node.ran, node.annotation('nodeState_s'), node.slots]).toEqual([
      ['a uninstall run.sh', 'a uninstall-check run_check.sh'],
      '{}',
      [],
    ])
  })

  test.each([[undefined], [{ enabled: false }]])('leaves what does not: %j', (uninstall) => {
    const node = installed(uninstall && { uninstall })
    deleted(node)
    node.settleOver(5_000)
    expect([node.ran, node.state()]).toEqual([[], ['a|1.0.0: config/complete']])
  })
})

describe('departures', () => {
  test('a Skyhook that is gone takes its annotations, label, conditions and slot with it, and runs nothing', () => {
    const node = installed()
    node.views.delete('s')
    node.settleOver(2_000)
    expect(node.ran).toEqual([])
    expect([node.node.metadata.annotations, node.node.metadata.labels, node.node.status?.conditions?.map(({ type }) => type)]).toEqual([
      {},
      {},
      ['Ready'],
    ])
    expect(node.journal.skyhooks['s']?.orphaned).toBe(true)
  })

  test('gone during a step: the step is stopped, then the slot goes', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settle()
    node.views.delete('s')
    node.settleOver(2_000)
    expect(node.slots).toEqual([])
    expect(node.journal.skyhooks['s']?.orphaned).toBe(true)
  })

  test('a Skyhook created again under its name keeps what is complete', () => {
    const node = installed()
    node.views.delete('s')
    node.settleOver(2_000)
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleOver(5_000)
    expect([node.ran, node.status()]).toEqual([[], 'complete'])
  })

  test('a node that leaves the selector gives the slot back after the running step', () => {
    const node = new NodeModel({ pool: 'x' })
    node.hangs.add('a')
    const spec = { nodeSelectors: { matchLabels: { pool: 'x' } }, packages: { a: pkg('1.0.0') } }
    node.apply('s', spec)
    node.settle()
    node.node = { ...node.node, metadata: { ...node.node.metadata, labels: {} } }
    node.settle()
    expect(node.slots).toHaveLength(1)
    node.finishHanging('a')
    node.settleOver(2_000)
    expect([node.slots, node.ran]).toEqual([[], ['a apply run.sh']])
  })

  test('nothing is known of Skyhooks: nothing changes', () => {
    const node = installed()
    const world = { ...node.world(), skyhooks: { known: false as const, why: '503' } }
    node.world = () => world
    node.settle()
    expect(node.status()).toBe('complete')
    expect(node.ran).toEqual([])
  })
})
