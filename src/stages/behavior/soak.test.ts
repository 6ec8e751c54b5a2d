import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { isCordoned, pkg, reboot } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import type { Pod } from '../model/pods.ts'
import type { OwnSlot } from '../model/snapshot.ts'

type Pace = { readonly pauseSeconds?: number; readonly minReadySeconds?: number }

const phases = (node: NodeSimulator): string[] => node.slots.map(({ phase }) => phase)
const apply = (node: NodeSimulator, pace: Pace, version = '1.0.0', annotations = {}): void =>
  node.apply('s', { pace, packages: { a: pkg(version) } }, annotations)

/** A node whose work is complete and whose slot soaks, two seconds after completion. */
function soakingNode(pace: Pace): NodeSimulator {
  const node = new NodeSimulator()
  apply(node, pace)
  node.settleFor(2_000)
  if (phases(node).join() !== 'soaking') throw new Error(`the slots are ${phases(node).join()}`)
  return node
}

const daemonPod = (name: string, isReady: boolean, change: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: {
    name,
    namespace: 'net',
    uid: `uid-${name}`,
    resourceVersion: '1',
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'cni', uid: 'cni-uid', controller: true }],
    ...change,
  },
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
})

/** A node on which a pod of a DaemonSet was Ready before the work, which has it replaced by one that is not. */
function nodeWithDaemonPod(): NodeSimulator {
  const node = new NodeSimulator()
  node.pods = [daemonPod('old', true), daemonPod('other', false, { ownerReferences: [] })]
  node.hangingPackages.add('a')
  apply(node, { minReadySeconds: 30 })
  node.settle()
  node.pods = [daemonPod('new', false)]
  node.finishHanging('a')
  node.settleFor(2_000)
  return node
}

describe('spec.pace', () => {
  test('a complete node is back in service and keeps its slot for pauseSeconds', () => {
    const node = new NodeSimulator()
    node.apply('s', { pace: { pauseSeconds: 60 }, packages: { a: { ...pkg('1.0.0'), interrupt: reboot } } })
    node.settleFor(50_000)
    expect([node.status(), isCordoned(node), phases(node), node.reason()]).toEqual([
      'complete',
      false,
      ['soaking'],
      'Soaking',
    ])
    node.settleFor(20_000)
    expect([node.status(), node.slots, node.reason()]).toEqual(['complete', [], undefined])
  })

  test('the slot says that it soaks only when the Node shows completion', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    apply(node, { pauseSeconds: 60 })
    node.settle()
    node.arePatchesDelayed = true
    node.finishHanging('a')
    node.settleFor(50_000)
    expect(phases(node)).toEqual(['working'])
    node.arePatchesDelayed = false
    expect(phases(node.settleFor(5_000))).toEqual(['soaking'])
  })

  test.each(['soaking', 'working'] as const)(
    'a %s slot does not say that it soaks while a restored Node carries the cordon mark',
    (restoredPhase) => {
      const node = soakingNode({ pauseSeconds: 60 })
      node.slots = node.slots.map((slot) => ({ ...slot, phase: restoredPhase }))
      node.arePatchesDelayed = true
      node.edit((annotations) => (annotations['skyhook.nvidia.com/cordon_s'] = 'true'))
      expect(phases(node.settleFor(2_000))).toEqual(['working'])
      node.arePatchesDelayed = false
      expect([phases(node.settleFor(5_000)), isCordoned(node)]).toEqual([['soaking'], false])
    },
  )

  test('a slot is released at once without a pace', () => {
    const node = new NodeSimulator()
    apply(node, { pauseSeconds: 0, minReadySeconds: 0 })
    expect([node.settle().status(), node.slots]).toEqual(['complete', []])
  })

  test('the pause counts from the moment at which the Node shows completion', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    apply(node, { pauseSeconds: 60 })
    node.settle()
    node.arePatchesDelayed = true
    node.finishHanging('a')
    node.settleFor(50_000)
    node.arePatchesDelayed = false
    node.settleFor(55_000)
    expect([node.status(), phases(node)]).toEqual(['complete', ['soaking']])
    expect(node.settleFor(10_000).slots).toEqual([])
  })

  test('an agent that starts again continues the soak', () => {
    const node = soakingNode({ pauseSeconds: 60 })
    node.settleFor(40_000)
    node.restartAgent()
    node.settleFor(10_000)
    expect(phases(node)).toEqual(['soaking'])
    expect(node.settleFor(10_000).slots).toEqual([])
  })

  test('a node has to be Ready for minReadySeconds without a break', () => {
    const node = soakingNode({ minReadySeconds: 30 })
    node.settleFor(20_000)
    node.reportReady('False')
    node.settleFor(60_000)
    expect([phases(node), node.lastReasons.get('s')?.message]).toEqual([
      ['soaking'],
      'waiting for the node to be Ready',
    ])
    node.reportReady()
    node.settleFor(25_000)
    expect(phases(node)).toEqual(['soaking'])
    expect(node.settleFor(10_000).slots).toEqual([])
  })

  test('a DaemonSet that had a Ready pod before the work has to have one again', () => {
    const node = nodeWithDaemonPod()
    node.settleFor(400_000)
    expect([node.status(), phases(node), node.lastReasons.get('s')?.message]).toEqual([
      'complete',
      ['soaking'],
      'waiting for the pods of DaemonSets net/cni to be Ready',
    ])
    node.pods = [daemonPod('new', true)]
    node.settleFor(25_000)
    expect(phases(node)).toEqual(['soaking'])
    expect(node.settleFor(10_000).slots).toEqual([])
  })

  test('a DaemonSet without any pod on the node is waited for as long as a replacement may take', () => {
    const node = nodeWithDaemonPod()
    node.pods = []
    node.settleFor(250_000)
    expect(phases(node)).toEqual(['soaking'])
    expect(node.settleFor(100_000).slots).toEqual([])
  })

  test('a pod that was not Ready before the work is not waited for after it', () => {
    const node = new NodeSimulator()
    node.pods = [daemonPod('broken', false)]
    apply(node, { minReadySeconds: 30 })
    expect(node.settleFor(40_000).slots).toEqual([])
  })

  test('work does not start before the pods of the node are known', () => {
    const node = new NodeSimulator()
    apply(node, { minReadySeconds: 30 })
    for (let round = 0; round < 20; round++) {
      node.podWatch = 'no' // the LIST never ends
      node.step()
    }
    expect([node.executedSteps, node.slots.length, node.lastPlan?.watchPods]).toEqual([[], 1, 'any'])
    expect(node.settle().status()).toBe('complete')
  })

  test('a new version is not installed under the soaking slot, and asks for a new one', () => {
    const node = soakingNode({ pauseSeconds: 600 })
    const uids = node.slots.map(({ uid }) => uid)
    node.areSlotsGranted = false
    const steps = node.executedSteps.length
    apply(node, { pauseSeconds: 600 }, '2.0.0')
    node.settleFor(5_000)
    expect([node.slots, node.executedSteps.length, node.reason()]).toEqual([[], steps, 'WaitingForSlot'])
    node.areSlotsGranted = true
    node.settleFor(20_000)
    expect([node.status(), phases(node)]).toEqual(['complete', ['soaking']])
    expect(node.slots.map(({ uid }) => uid)).not.toEqual(uids)
  })

  test('a pace that is lowered to nothing ends the soak', () => {
    const node = soakingNode({ pauseSeconds: 600 })
    apply(node, {})
    expect(node.settle().slots).toEqual([])
  })

  test.each(['pause', 'disable'])('a Skyhook with the annotation %s lets the soak go to its end', (key) => {
    const node = soakingNode({ pauseSeconds: 60 })
    apply(node, { pauseSeconds: 60 }, '1.0.0', { [`skyhook.nvidia.com/${key}`]: 'true' })
    node.settleFor(30_000)
    expect(phases(node)).toEqual(['soaking'])
    expect(node.settleFor(40_000).slots).toEqual([])
  })

  test('a Skyhook that is deleted ends the soak', () => {
    const node = soakingNode({ pauseSeconds: 600 })
    node.remove('s')
    expect(node.settle().slots).toEqual([])
  })

  test('a node that leaves the selector ends the soak', () => {
    const node = soakingNode({ pauseSeconds: 600 })
    const nodeSelectors = { matchLabels: { pool: 'other' } }
    node.apply('s', { pace: { pauseSeconds: 600 }, nodeSelectors, packages: { a: pkg('1.0.0') } })
    expect(node.settle().slots).toEqual([])
  })

  test('a Skyhook that was created again works under a slot of its own, and soaks again', () => {
    const node = soakingNode({ pauseSeconds: 60 })
    node.remove('s')
    apply(node, { pauseSeconds: 60 }, '2.0.0')
    node.settleFor(30_000)
    expect([node.status(), phases(node)]).toEqual(['complete', ['soaking']])
    expect(node.settleFor(40_000).slots).toEqual([])
  })

  test('a node that returns to the selector does not continue an earlier soak', () => {
    const node = soakingNode({ pauseSeconds: 600 })
    const pace = { pauseSeconds: 600 }
    node.apply('s', { pace, nodeSelectors: { matchLabels: { pool: 'other' } }, packages: { a: pkg('1.0.0') } })
    node.settle()
    apply(node, pace)
    expect([node.settle().status(), node.slots, node.reason()]).toEqual(['complete', [], undefined])
  })

  test('a slot that a person deletes is not created again', () => {
    const node = soakingNode({ pauseSeconds: 600 })
    node.slots = []
    node.settleFor(5_000)
    expect([node.slots, node.reason(), node.journal.skyhooks['s']?.soak]).toEqual([[], undefined, undefined])
  })

  test('a later Skyhook works on the node while the slot of the first one soaks', () => {
    const node = soakingNode({ pauseSeconds: 600 })
    node.apply('t', { packages: { b: pkg('1.0.0') } })
    node.settleFor(10_000)
    expect([node.status('t'), phases(node)]).toEqual(['complete', ['soaking']])
  })

  test('the slot of the control plane is released when the soak starts', () => {
    const node = new NodeSimulator({ 'node-role.kubernetes.io/control-plane': '' })
    node.apply('s', { pace: { pauseSeconds: 600 }, packages: { a: { ...pkg('1.0.0'), interrupt: reboot } } })
    node.settleFor(30_000)
    expect(node.slots.map(({ scope, phase }) => [scope, phase])).toEqual([['skyhook', 'soaking']])
  })
})

describe('a slot that is past its work', () => {
  const slotOf = (phase: OwnSlot['phase'], ownership: OwnSlot['ownership']): OwnSlot => ({
    scope: 'skyhook',
    skyhook: 's',
    skyhookUid: 's-uid',
    lease: 's-uid.slot-7',
    uid: 'spent',
    phase,
    ownership,
    isFormer: false,
    renewedAtMs: 1_000_000,
  })

  test.each([
    ['soaking', 'confirmed'],
    ['soaking', 'seen'],
    ['finished', 'confirmed'],
    ['finished', 'owned'],
  ] as const)('nothing starts under a slot that is %s and %s', (phase, ownership) => {
    const node = new NodeSimulator()
    node.areSlotsGranted = false
    node.slots = [slotOf(phase, ownership)]
    apply(node, {})
    node.settleFor(5_000)
    expect([node.executedSteps, node.slots, node.reason()]).toEqual([[], [], 'WaitingForSlot'])
  })
})
