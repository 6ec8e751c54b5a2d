import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { simplePackage } from '../../../test/kit/node-simulator/package-content.ts'
import { isCordoned, cron, cordonMarks, packageWith, pod } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import { hostKey } from '../../schemas/annotations.ts'

describe('the runtime-required taint', () => {
  const taint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }
  const taintedNode = (): NodeSimulator => {
    const node = new NodeSimulator()
    node.node = { ...node.node, spec: { taints: [taint, { key: 'x', effect: 'PreferNoSchedule' }] } }
    return node
  }

  test('the taint is removed when every required Skyhook that selects the node is complete, and other taints stay', () => {
    const node = taintedNode()
    node.hangingPackages.add('b')
    node.apply('one', { runtimeRequired: true, packages: { a: packageWith() } })
    node.apply('two', { runtimeRequired: true, packages: { b: packageWith() } })
    node.settleFor(3_000)
    expect(node.node.spec?.taints).toHaveLength(2)
    node.finishHanging('b')
    node.settleFor(5_000)
    expect(node.node.spec?.taints).toEqual([{ key: 'x', effect: 'PreferNoSchedule' }])
  })

  test.each<[string, (node: NodeSimulator) => void]>([
    ['is deleted', (node) => node.remove('s')],
    ['does not require it any more', (node) => node.apply('s', { packages: { a: packageWith() } })],
    [
      'does not select the node any more',
      (node) => node.apply('s', { runtimeRequired: true, nodeSelectors: { matchLabels: { pool: 'other' } } }),
    ],
  ])('the taint is removed when the last Skyhook that requires it %s', (_, change) => {
    const node = taintedNode()
    node.exitCodes.set('a apply', 1)
    node.apply('s', { runtimeRequired: true, packages: { a: packageWith() } })
    node.settleFor(2_000)
    node.restartAgent()
    node.settle()
    expect(node.node.spec?.taints).toHaveLength(2)
    change(node)
    node.exitCodes.clear()
    node.settleFor(30_000) // the work under way ends first
    expect(node.node.spec?.taints).toEqual([{ key: 'x', effect: 'PreferNoSchedule' }])
    node.node = { ...node.node, spec: { taints: [taint] } }
    node.settleFor(2_000)
    expect(node.node.spec?.taints).toEqual([taint]) // somebody put it back
  })

  test('the taint stays while another Skyhook requires it', () => {
    const node = taintedNode()
    node.exitCodes.set('b apply', 1)
    node.apply('s', { runtimeRequired: true, packages: { a: packageWith() } })
    node.apply('t', { runtimeRequired: true, packages: { b: packageWith() } })
    node.settleFor(2_000)
    node.remove('s')
    node.settleFor(2_000)
    expect(node.node.spec?.taints).toHaveLength(2)
  })

  test('the taint stays while edits of the Skyhooks may be missed, and goes when they are seen again', () => {
    const node = taintedNode()
    node.areSkyhooksInDoubt = true
    node.apply('s', { runtimeRequired: true, packages: { a: packageWith() } })
    node.settleFor(5_000)
    expect([node.status(), node.node.spec?.taints?.length]).toEqual(['complete', 2])
    node.areSkyhooksInDoubt = false
    node.settleFor(1_000)
    expect(node.node.spec?.taints).toEqual([{ key: 'x', effect: 'PreferNoSchedule' }])
  })

  test('the taint of the last Skyhook that required it stays while edits may be missed', () => {
    const node = taintedNode()
    node.exitCodes.set('a apply', 1)
    node.apply('s', { runtimeRequired: true, packages: { a: packageWith() } })
    node.settleFor(2_000)
    node.areSkyhooksInDoubt = true
    node.exitCodes.clear()
    node.apply('s', { packages: { a: packageWith() } })
    node.settleFor(2_000)
    expect(node.node.spec?.taints).toHaveLength(2)
    node.areSkyhooksInDoubt = false
    node.settleFor(1_000)
    expect(node.node.spec?.taints).toHaveLength(1)
  })

  test('the taint stays when no required Skyhook selects the node', () => {
    const node = taintedNode()
    node.apply('s', { packages: { a: packageWith() } })
    node.settleFor(3_000)
    expect([node.status(), node.node.spec?.taints?.length]).toEqual(['complete', 2])
  })

  test('the taint is added to a new node if a Skyhook requests it, after the agent has described its host', () => {
    const node = new NodeSimulator()
    node.node = { ...node.node, metadata: { ...node.node.metadata, annotations: { [hostKey]: '{}' } } }
    node.hangingPackages.add('a')
    node.apply('s', { runtimeRequired: true, autoTaintNewNodes: true, packages: { a: packageWith() } })
    node.settle()
    expect(node.node.spec?.taints).toEqual([taint])
    node.finishHanging('a')
    node.settleFor(5_000)
    expect(node.node.spec?.taints).toEqual([])
    const marks = (): readonly string[] =>
      Object.keys(node.node.metadata.annotations ?? {}).filter((key) => key.includes('/autoTaint_'))
    expect(marks()).toHaveLength(1)
    node.apply('other', { packages: { b: packageWith() } })
    node.remove('s')
    node.settleFor(5_000)
    expect([marks(), node.status('other')]).toEqual([[], 'complete'])
  })
})

test('no pod is evicted while the Node may have lost the cordon, as one that was registered again', () => {
  const node = new NodeSimulator()
  node.pods = [pod('cart')]
  node.refusingPods.add('cart')
  node.apply('s', { packages: { a: packageWith(cron) } })
  node.settleFor(2_000)
  node.refusingPods.clear()
  node.isNodeInDoubt = true
  node.settleFor(20_000)
  expect(node.evictedPods).toEqual([])
  node.isNodeInDoubt = false
  node.settleFor(20_000)
  expect([node.evictedPods, node.status()]).toEqual([['cart'], 'complete'])
})

describe('a cordon that must not be left behind', () => {
  /** Cordoned for the Skyhook s of another pool; the host knows nothing of it. */
  function strangerNode(before?: string): NodeSimulator {
    const node = new NodeSimulator({ pool: 'x' })
    node.apply('s', { nodeSelectors: { matchLabels: { pool: 'y' } }, packages: { a: packageWith(cron) } })
    node.node = { ...node.node, spec: { unschedulable: true } }
    node.edit((annotations) => {
      annotations['skyhook.nvidia.com/cordon_s'] = 'true'
      if (before !== undefined) annotations['skyhook.nvidia.com/cordoned-before'] = before
    })
    return node
  }

  test.each([
    ["of the operator's", undefined, false],
    ['of a lost journal', 'false', false],
    ['of a node that an administrator had cordoned before', 'true', true],
  ])('a mark %s goes where its Skyhook does not select the node', (_, before, isCordonedAfter) => {
    const node = strangerNode(before)
    node.settleFor(2_000)
    expect([isCordoned(node), cordonMarks(node)]).toEqual([isCordonedAfter, []])
  })

  test('a mark stays while the new spec of its Skyhook is being read, or an edit of it may be missed', () => {
    const node = strangerNode('false')
    const view = node.views.get('s')
    if (view) node.views.set('s', { ...view, stale: true })
    node.settleFor(60_000)
    expect(isCordoned(node)).toBe(true)
    if (view) node.views.set('s', view)
    node.areSkyhooksInDoubt = true
    node.settleFor(60_000)
    expect(isCordoned(node)).toBe(true)
    node.areSkyhooksInDoubt = false
    node.settleFor(2_000)
    expect([isCordoned(node), cordonMarks(node)]).toEqual([false, []])
  })

  test('a mark stays where its Skyhook selects the node and has no slot yet', () => {
    const node = strangerNode('false')
    node.node = { ...node.node, metadata: { ...node.node.metadata, labels: { pool: 'y' } } }
    node.areSlotsGranted = false
    const view = node.views.get('s')
    if (view) node.views.set('s', { ...view, stale: true })
    node.settleFor(60_000)
    expect(isCordoned(node)).toBe(true)
  })

  test('a cordon is removed with a deleted Skyhook', () => {
    const node = new NodeSimulator()
    node.pods = [pod('cart')]
    node.refusingPods.add('cart')
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settleFor(2_000)
    expect(isCordoned(node)).toBe(true)
    node.views.delete('s')
    node.settleFor(2_000)
    expect([isCordoned(node), cordonMarks(node), node.slots]).toEqual([false, [], []])
  })

  test('a cordon is removed before the slot when a node leaves the selector', () => {
    const node = new NodeSimulator({ pool: 'x' })
    node.pods = [pod('cart')]
    node.refusingPods.add('cart')
    node.apply('s', { nodeSelectors: { matchLabels: { pool: 'x' } }, packages: { a: packageWith(cron) } })
    node.settleFor(2_000)
    node.node = { ...node.node, metadata: { ...node.node.metadata, labels: {} } }
    node.settleFor(2_000)
    expect([isCordoned(node), cordonMarks(node), node.slots]).toEqual([false, [], []])
  })

  test('a cordon survives a reset of the annotation only as long as the work needs it', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settle()
    node.edit((annotations) => delete annotations['skyhook.nvidia.com/nodeState_s'])
    node.hangingPackages.clear()
    node.settleFor(5_000)
    expect([node.status(), isCordoned(node)]).toEqual(['complete', false])
  })

  test('a package without post-interrupt steps completes as well', () => {
    const node = new NodeSimulator()
    node.images.set('r/pkg:1.0.0', simplePackage({ apply: [], 'apply-check': [] }))
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settleFor(5_000)
    expect([node.status(), node.executedInterrupts]).toEqual(['complete', ['service cron']])
  })
})
