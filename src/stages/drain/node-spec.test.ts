/** Which taints count as the runtime-required one, and what becomes of them. */
import { describe, expect, test } from 'vitest'
import { cordonMarks, cron, isCordoned, packageWith, pod } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { simplePackage } from '../../../test/kit/node-simulator/package-content.ts'
import { hostKey } from '../../schemas/annotations.ts'
import type { KubernetesNode, Taint } from '../../schemas/kubernetes.ts'
import { autoTaintRemoval, hasRequiredTaint, requiredTaint, unliftedTaint } from './node-spec.ts'

const skyhook: Taint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }
const nodewright: Taint = { ...skyhook, key: 'nodewright.nvidia.com' }
const ofValues: Taint = { key: 'example.com/new', value: 'yes', effect: 'NoExecute' }
const gpu: Taint = { key: 'nvidia.com/gpu', effect: 'NoSchedule' }
const noExecute: Taint = { ...nodewright, effect: 'NoExecute' }

const nodeWith = (...taints: readonly Taint[]): KubernetesNode => ({
  metadata: { name: 'n1', uid: 'u1', resourceVersion: '1' },
  spec: { taints },
})
const complete = [{ complete: true, autoTaint: true }]
const atWork = [{ complete: false, autoTaint: true }]
const always = { wasRequired: false, mayLift: true }

describe('the runtime-required taint', () => {
  test.each<[string, Taint, readonly Taint[], readonly Taint[] | undefined]>([
    ['the configured one', skyhook, [gpu, skyhook], [gpu]],
    ["NodeWright's", skyhook, [gpu, nodewright], [gpu]],
    ["Skyhook's, where the chart names NodeWright's", nodewright, [skyhook, gpu], [gpu]],
    ['both', skyhook, [skyhook, nodewright], []],
    ['both beside another one of the values', ofValues, [nodewright, ofValues, gpu, skyhook], [gpu]],
    ['no other effect of a known key', skyhook, [noExecute], undefined],
    ['no taint of others', skyhook, [gpu], undefined],
  ])('an agent lifts %s when all is complete', (_, configured, taints, left) => {
    expect(requiredTaint(nodeWith(...taints), configured, complete, always)?.taints).toEqual(left)
  })

  test.each([[[skyhook]], [[nodewright]], [[skyhook, nodewright]]])(
    'the taint stays until every Skyhook that requires it is complete: %j',
    (taints) => {
      const required = [...complete, ...atWork]
      expect(requiredTaint(nodeWith(...taints), skyhook, required, always)).toBeUndefined()
      expect(requiredTaint(nodeWith(...taints), skyhook, complete, { ...always, mayLift: false })).toBeUndefined()
    },
  )

  test.each<[string, Taint, readonly Taint[], readonly Taint[] | undefined]>([
    ['the configured one on a node without any', nodewright, [gpu], [gpu, nodewright]],
    ["none where the node has NodeWright's", skyhook, [nodewright], undefined],
    ["none where the node has Skyhook's", nodewright, [skyhook], undefined],
    ['none where the node has one of them and the values another', ofValues, [skyhook], undefined],
    ['the configured one beside another effect of a known key', skyhook, [noExecute], [noExecute, skyhook]],
  ])('autoTaintNewNodes puts %s', (_, configured, taints, desired) => {
    const change = requiredTaint(nodeWith(...taints), configured, atWork, always)
    expect(change?.taints).toEqual(desired)
    expect(Object.keys(change?.annotations ?? {})).toEqual(
      desired ? [`skyhook.nvidia.com/autoTaint_${configured.key}`] : [],
    )
  })

  test.each<[string, readonly Taint[], boolean]>([
    ['the configured taint', [ofValues], true],
    ["Skyhook's", [skyhook], true],
    ["NodeWright's", [nodewright], true],
    ['another effect', [noExecute], false],
    ['none', [gpu], false],
  ])('a node with %s counts as new by its taints alone', (_, taints, isNew) => {
    expect(hasRequiredTaint(nodeWith(...taints), ofValues)).toBe(isNew)
  })

  test('the annotation of autoTaintNewNodes goes with the taint and the last Skyhook that has the field', () => {
    const key = 'skyhook.nvidia.com/autoTaint_skyhook.nvidia.com'
    const asking = { spec: { runtimeRequired: true, autoTaintNewNodes: true } }
    const [bare] = [nodeWith(gpu)]
    const node = { ...bare, metadata: { ...bare.metadata, annotations: { [key]: 'true', other: 'true' } } }
    const removal = (taints: readonly Taint[], skyhooks: readonly (typeof asking)[]) =>
      autoTaintRemoval(node, taints, skyhook, skyhooks)
    expect(removal([gpu], [])).toEqual({ [key]: null })
    expect(removal([gpu], [{ spec: { ...asking.spec, autoTaintNewNodes: false } }])).toEqual({ [key]: null })
    expect(removal([gpu], [asking])).toEqual({})
    expect(removal([gpu, skyhook], [])).toEqual({})
    expect(autoTaintRemoval(bare, [], skyhook, [])).toEqual({})
  })

  test('each taint that nobody lifts is named', () => {
    const node = nodeWith(nodewright, gpu, skyhook)
    expect(unliftedTaint(node, skyhook, [])).toEqual({
      taints: [nodewright, skyhook],
      text: 'nodewright.nvidia.com=runtime-required:NoSchedule and skyhook.nvidia.com=runtime-required:NoSchedule',
      others: [],
    })
    expect(unliftedTaint(nodeWith(gpu), skyhook, [])).toBeUndefined()
    const requiring = { metadata: { name: 'one', uid: 'u', resourceVersion: '1' }, spec: { runtimeRequired: true } }
    expect(unliftedTaint(node, skyhook, [requiring])).toBeUndefined()
  })
})

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
