import { describe, expect, test } from 'vitest'
import { NodeModel, simplePackage } from '../../../test/support/node-simulator.ts'
import { cordoned, cron, marks, pkgWith, pod } from '../../../test/support/node-simulator-dsl.ts'

describe('the runtime-required taint', () => {
  const taint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }
  const tainted = (): NodeModel => {
    const node = new NodeModel()
    node.node = { ...node.node, spec: { taints: [taint, { key: 'x', effect: 'PreferNoSchedule' }] } }
    return node
  }

  test('goes when every required Skyhook that selects the node is complete, and other taints stay', () => {
    const node = tainted()
    node.hangs.add('b')
    node.apply('one', { runtimeRequired: true, packages: { a: pkgWith() } })
    node.apply('two', { runtimeRequired: true, packages: { b: pkgWith() } })
    node.settleOver(3_000)
    expect(node.node.spec?.taints).toHaveLength(2)
    node.finishHanging('b')
    node.settleOver(5_000)
    expect(node.node.spec?.taints).toEqual([{ key: 'x', effect: 'PreferNoSchedule' }])
  })

  test('stays when no required Skyhook selects the node', () => {
    const node = tainted()
    node.apply('s', { packages: { a: pkgWith() } })
    node.settleOver(3_000)
    expect([node.status(), node.node.spec?.taints?.length]).toEqual(['complete', 2])
  })

  test('is put on a node that was never seen, where a Skyhook asks for it', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { runtimeRequired: true, autoTaintNewNodes: true, packages: { a: pkgWith() } })
    node.settle()
    expect(node.node.spec?.taints).toEqual([taint])
    node.finishHanging('a')
    node.settleOver(5_000)
    expect(node.node.spec?.taints).toEqual([])
  })
})

describe('a cordon that must not be left behind', () => {
  test('goes with a Skyhook that is gone', () => {
    const node = new NodeModel()
    node.pods = [pod('cart')]
    node.refuse.add('cart')
    node.apply('s', { packages: { a: pkgWith(cron) } })
    node.settleOver(2_000)
    expect(cordoned(node)).toBe(true)
    node.views.delete('s')
    node.settleOver(2_000)
    expect([cordoned(node), marks(node), node.slots]).toEqual([false, [], []])
  })

  test('goes, before the slot, with a node that leaves the selector', () => {
    const node = new NodeModel({ pool: 'x' })
    node.pods = [pod('cart')]
    node.refuse.add('cart')
    node.apply('s', { nodeSelectors: { matchLabels: { pool: 'x' } }, packages: { a: pkgWith(cron) } })
    node.settleOver(2_000)
    node.node = { ...node.node, metadata: { ...node.node.metadata, labels: {} } }
    node.settleOver(2_000)
    expect([cordoned(node), marks(node), node.slots]).toEqual([false, [], []])
  })

  test('survives a reset of the annotation only as long as the work needs it', () => {
    const node = new NodeModel()
    node.hangs.add('a')
    node.apply('s', { packages: { a: pkgWith(cron) } })
    node.settle()
    node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
    node.hangs.clear()
    node.settleOver(5_000)
    expect([node.status(), cordoned(node)]).toEqual(['complete', false])
  })

  test('a package image without post-interrupt steps completes as well', () => {
    const node = new NodeModel()
    node.images.set('r/pkg:1.0.0', simplePackage({ apply: [], 'apply-check': [] }))
    node.apply('s', { packages: { a: pkgWith(cron) } })
    node.settleOver(5_000)
    expect([node.status(), node.interrupted]).toEqual(['complete', ['service cron']])
  })
})
