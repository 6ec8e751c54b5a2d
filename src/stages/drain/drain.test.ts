import { describe, expect, test } from 'vitest'
import { pauseKey } from '../../schemas/annotations.ts'
import type { SkyhookSpec } from '../../schemas/skyhook.ts'
import { blockingPod } from './drain.ts'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import {
  isCordoned,
  cron,
  linesOfMode,
  cordonMarks,
  packageWith,
  pod,
} from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import type { Pod } from '../model/pods.ts'

describe('a package with an interrupt', () => {
  test('a package with an interrupt cordons, drains, applies, interrupts, checks and returns the node to service', () => {
    const node = new NodeSimulator()
    node.pods = [pod('web')]
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settleFor(5_000)
    expect(node.evictedPods).toEqual(['web'])
    expect(node.executedInterrupts).toEqual(['service cron'])
    expect(node.state()).toEqual(['a|1.0.0: post-interrupt/complete'])
    expect([node.status(), isCordoned(node), cordonMarks(node), node.slots]).toEqual(['complete', false, [], []])
    expect(linesOfMode(node, 'post-interrupt')).toHaveLength(1)
  })

  test('conditions are written in changes of their own, beside the cordon', () => {
    const node = new NodeSimulator()
    const conditions = (): string[] =>
      (node.node.status?.conditions ?? []).map(({ type, status }) => `${type.split('/').at(-1)} ${status}`)
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settle()
    expect([isCordoned(node), conditions()]).toEqual([
      true,
      expect.arrayContaining(['NotReady True', 'Erroring False']),
    ])
    node.finishHanging('a')
    node.settleFor(5_000)
    expect([isCordoned(node), conditions()]).toEqual([
      false,
      expect.arrayContaining(['NotReady False', 'Erroring False']),
    ])
  })

  test('nothing runs before the node is empty, and the reason names the pod that blocks the drain', () => {
    const node = new NodeSimulator()
    node.pods = [pod('cart')]
    node.refusingPods.add('cart')
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settleFor(9_000)
    expect([node.executedSteps, node.status(), isCordoned(node)]).toEqual([[], 'in_progress', true])
    expect(JSON.parse(node.annotation('reason_s') ?? '{}')).toMatchObject({
      reason: 'DrainBlocked',
      message: 'pod shop/cart (PDB shop/cart: 0 allowed)',
    })
    expect(node.slots[0]?.phase).toBe('draining')
    node.refusingPods.clear()
    node.settleFor(10_000)
    expect(node.status()).toBe('complete')
  })

  test('a drain waits for protected pods without evicting anything', () => {
    const node = new NodeSimulator()
    node.pods = [pod('training', { workload: 'never' }), pod('web')]
    node.apply('s', {
      podNonInterruptLabels: { matchLabels: { workload: 'never' } },
      packages: { a: packageWith(cron) },
    })
    node.settleFor(3_000)
    expect([node.evictedPods, node.executedSteps, node.reason(), isCordoned(node)]).toEqual([
      [],
      [],
      'ProtectedPods',
      true,
    ])
    node.pods = [pod('web')]
    node.settleFor(5_000)
    expect([node.evictedPods, node.status()]).toEqual([['web'], 'complete'])
  })

  test('a package with an interrupt does not delay packages without one', () => {
    const node = new NodeSimulator()
    node.pods = [pod('cart')]
    node.refusingPods.add('cart')
    node.apply('s', { packages: { a: packageWith(cron), b: packageWith() } })
    node.settleFor(3_000)
    expect(node.state()).toEqual(['b|1.0.0: config/complete'])
  })

  test('a node is not cordoned before the image is fetched', () => {
    const node = new NodeSimulator()
    node.images.set('r/pkg:1.0.0', 'no such image')
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settleFor(3_000)
    expect([isCordoned(node), node.slots, node.reason()]).toEqual([false, [], 'ImagePull'])
  })

  test('a pod that appears before the interrupt is drained first', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settle()
    node.pods = [pod('late')]
    node.refusingPods.add('late')
    node.finishHanging('a')
    node.settleFor(3_000)
    expect([node.executedInterrupts, node.reason()]).toEqual([[], 'DrainBlocked'])
    node.refusingPods.clear()
    node.settleFor(10_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['service cron'], 'complete'])
  })

  test('a node that an administrator cordoned before stays cordoned', () => {
    const node = new NodeSimulator()
    node.node = {
      ...node.node,
      spec: { unschedulable: true, taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] },
    }
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settleFor(5_000)
    expect([node.status(), isCordoned(node), cordonMarks(node)]).toEqual(['complete', true, []])
  })

  test('a node that someone uncordons meanwhile is cordoned again, and schedulable in the end', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.node = { ...node.node, spec: { unschedulable: true } }
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settle()
    node.node = { ...node.node, spec: { unschedulable: false } }
    node.settle()
    expect(isCordoned(node)).toBe(true)
    node.finishHanging('a')
    node.settleFor(5_000)
    expect([node.status(), isCordoned(node)]).toEqual(['complete', false])
  })

  test('an uncordon by someone else is reported once, regardless of how often it is decided before our cordon', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settle()
    for (const _ of [1, 2, 3]) {
      node.events.length = 0
      node.node = { ...node.node, spec: { unschedulable: false } }
      node.arePatchesDelayed = true
      for (let pass = 0; pass < 5; pass++) node.step()
      node.arePatchesDelayed = false
      node.settle()
      expect(node.events).toEqual([{ type: 'cordonChangedExternally', skyhook: 's', unschedulable: false }])
      expect([isCordoned(node), node.annotation('cordoned-before')]).toEqual([true, 'false'])
    }
    node.finishHanging('a')
    node.settleFor(5_000)
    expect([node.status(), isCordoned(node)]).toEqual(['complete', false])
  })

  test('repeated uncordons are answered at most once a minute after the third one in five minutes', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settle()
    let cordonings = 0
    for (let second = 0; second < 60; second++) {
      node.node = { ...node.node, spec: { unschedulable: false } }
      node.settleFor(1_000)
      if (isCordoned(node)) cordonings++
    }
    expect(cordonings).toBe(3)
    node.settleFor(60_000)
    expect(isCordoned(node)).toBe(true)
  })

  test('a drain keeps autoscalers away and restores their annotations', () => {
    const node = new NodeSimulator()
    node.edit((annotations) => {
      annotations['karpenter.sh/do-not-disrupt'] = 'false'
    })
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settle()
    expect(node.node.metadata.annotations?.['karpenter.sh/do-not-disrupt']).toBe('true')
    expect(node.node.metadata.annotations?.['cluster-autoscaler.kubernetes.io/scale-down-disabled']).toBe('true')
    node.finishHanging('a')
    node.settleFor(5_000)
    expect(node.node.metadata.annotations?.['karpenter.sh/do-not-disrupt']).toBe('false')
    expect(node.node.metadata.annotations).not.toHaveProperty(['cluster-autoscaler.kubernetes.io/scale-down-disabled'])
  })
})

describe('spec.drain', () => {
  const blockedNode = (drain: SkyhookSpec['drain']): NodeSimulator => {
    const node = new NodeSimulator()
    node.pods = [pod('cart')]
    node.refusingPods.add('cart')
    node.apply('s', { ...(drain && { drain }), packages: { a: packageWith(cron) } })
    return node
  }

  test('a drain releases the slot after ten minutes by default, keeps the reason, and tries again', () => {
    const node = blockedNode(undefined)
    node.settleFor(595_000)
    expect([isCordoned(node), node.slots.length]).toEqual([true, 1])
    node.settleFor(10_000)
    expect([isCordoned(node), cordonMarks(node), node.slots.length, node.status(), node.reason()]).toEqual([
      false,
      [],
      0,
      'waiting',
      'DrainBlocked',
    ])
    node.settleFor(62_000)
    expect([isCordoned(node), node.slots.length]).toEqual([true, 1])
    node.refusingPods.clear()
    node.settleFor(10_000)
    expect(node.status()).toBe('complete')
  })

  test('a node whose pause is over and that may not drain again wakes up for what it waits for', () => {
    const node = blockedNode({ yieldAfterSeconds: 60 })
    node.settleFor(70_000)
    node.areSlotsGranted = false
    node.settleFor(125_000)
    const { nextRequestAtMs } = node.slotDenials.get('s') ?? {}
    expect([node.reason(), node.lastPlan?.requeueAtMs]).toEqual(['WaitingForSlot', nextRequestAtMs])
    node.apply('s', { drain: { yieldAfterSeconds: 60 }, packages: { a: packageWith(cron) } }, { [pauseKey]: 'true' })
    node.settleFor(120_000)
    expect([node.reason(), node.lastPlan?.requeueAtMs]).toEqual(['Paused', Infinity])
    expect(node.journal.skyhooks['s']?.drain?.yieldCount).toBe(1) // the next pause is longer
  })

  test('yieldAfterSeconds 0 never releases the slot', () => {
    const node = blockedNode({ yieldAfterSeconds: 0 })
    node.settleFor(3_600_000)
    expect([isCordoned(node), node.slots.length]).toEqual([true, 1])
  })

  test('a slot is not released once something on the host is half changed', () => {
    const node = blockedNode({ yieldAfterSeconds: 30 })
    node.pods = []
    node.hangingPackages.add('a')
    node.settle()
    node.pods = [pod('cart')]
    node.finishHanging('a')
    node.settleFor(120_000)
    expect([isCordoned(node), node.slots.length, node.reason()]).toEqual([true, 1, 'DrainBlocked'])
  })

  test('onTimeout release releases the slot after timeoutSeconds', () => {
    const node = blockedNode({ timeoutSeconds: 20, onTimeout: 'release' })
    node.settleFor(22_000)
    expect([isCordoned(node), node.slots.length]).toEqual([false, 0])
  })

  test('onTimeout delete ignores disruption budgets after timeoutSeconds, but never deletes protected pods', () => {
    const node = blockedNode({ timeoutSeconds: 20, onTimeout: 'delete' })
    node.settleFor(15_000)
    expect(node.evictedPods).toEqual([])
    node.settleFor(15_000)
    expect([node.evictedPods, node.status()]).toEqual([['cart'], 'complete'])
  })

  test('cordon late takes no slot and no cordon, and evicts nothing, while a protected pod runs', () => {
    const node = new NodeSimulator()
    node.pods = [pod('training', { workload: 'never' }), pod('web')]
    node.apply('s', {
      drain: { cordon: 'late' },
      podNonInterruptLabels: { matchLabels: { workload: 'never' } },
      packages: { a: packageWith(cron) },
    })
    node.settleFor(3_000)
    expect([isCordoned(node), node.slots.length, node.evictedPods, node.reason(), node.status()]).toEqual([
      false,
      0,
      [],
      'ProtectedPods',
      'waiting',
    ])
    node.pods = [pod('web')]
    node.settleFor(5_000)
    expect(node.status()).toBe('complete')
  })

  test('the pods stay known under cordon late until the cordon is visible', () => {
    const node = new NodeSimulator()
    node.arePatchesDelayed = true
    node.apply('s', {
      drain: { cordon: 'late' },
      podNonInterruptLabels: { matchLabels: { workload: 'never' } },
      packages: { a: packageWith(cron) },
    })
    node.settleFor(3_000) // forgotten, they would be listed again, and forgotten again
    expect([node.slots[0]?.phase, node.lastPlan?.watchPods]).toEqual(['cordoning', 'any'])
    node.arePatchesDelayed = false
    node.settleFor(5_000)
    expect(node.status()).toBe('complete')
  })

  test('singleNode skip evicts nothing where pods cannot run elsewhere', () => {
    const node = new NodeSimulator()
    node.pods = [pod('cart')]
    node.apply('s', { drain: { singleNode: 'skip' }, packages: { a: packageWith(cron) } })
    node.settleFor(5_000)
    expect([node.evictedPods, node.executedInterrupts, node.status()]).toEqual([[], ['service cron'], 'complete'])
  })

  const single: SkyhookSpec = { drain: { singleNode: 'skip' }, packages: { a: packageWith(cron) } }

  test('nodes are counted again for the next drain of the same agent', () => {
    const node = new NodeSimulator()
    node.pods = [pod('cart')]
    node.apply('s', single)
    node.settleFor(5_000)
    node.clusterSize = 2
    node.apply('s', { ...single, packages: { a: { ...packageWith(cron), version: '2.0.0' } } })
    node.settleFor(10_000)
    expect([node.evictedPods, node.executedInterrupts.length, node.status()]).toEqual([['cart'], 2, 'complete'])
  })

  test('a node that joins after the count has the pods evicted before the interrupt', () => {
    const node = new NodeSimulator()
    node.pods = [pod('cart')]
    node.hangingPackages.add('a')
    node.apply('s', single)
    node.settleFor(2_000)
    expect([node.evictedPods, node.executedSteps.length]).toEqual([[], 1])
    node.clusterSize = 2
    node.finishHanging('a')
    node.settleFor(20_000)
    expect([node.evictedPods, node.executedInterrupts, node.status()]).toEqual([['cart'], ['service cron'], 'complete'])
  })

  test('a drain that waits for pods in a cluster that has shrunk to this node is skipped within a minute', () => {
    const node = new NodeSimulator()
    node.clusterSize = 2
    node.pods = [pod('cart')]
    node.refusingPods.add('cart')
    node.apply('s', single)
    node.settleFor(5_000)
    expect(node.reason()).toBe('DrainBlocked')
    node.clusterSize = 1
    node.settleFor(70_000)
    expect([node.evictedPods, node.executedInterrupts, node.status()]).toEqual([[], ['service cron'], 'complete'])
  })
})

describe('pods that tolerate the cordon', () => {
  const tolerant = (name: string, kind: string, key?: string): Pod => ({
    ...pod(name),
    metadata: {
      ...pod(name).metadata,
      ownerReferences: [{ apiVersion: 'v1', kind, name: kind, uid: kind, controller: true }],
    },
    spec: { tolerations: [{ operator: 'Exists', ...(key !== undefined && { key }) }] },
  })
  const reboot = { type: 'reboot' } as const

  test('a pod that comes back to the cordoned node is evicted once, and named while the node waits for it', () => {
    const node = new NodeSimulator()
    node.pods = [tolerant('back-1', 'ReplicaSet')]
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: packageWith(cron) } })
    node.settleFor(2_000)
    for (const name of ['back-2', 'back-3', 'back-4']) {
      node.pods = [tolerant(name, 'ReplicaSet')]
      node.settleFor(10_000)
    }
    node.finishHanging('a')
    node.settleFor(10_000)
    expect([node.evictedPods, node.executedInterrupts, node.reason()]).toEqual([['back-1'], [], 'DrainBlocked'])
    expect(JSON.parse(node.annotation('reason_s') ?? '{}')).toMatchObject({
      message:
        'waiting for shop/back-4 to end: evicted once, another one came to the cordoned node, which it tolerates; ' +
        'spec.drain.tolerating: leave lets the interrupt end it',
    })
    node.apply('s', { drain: { tolerating: 'leave' }, packages: { a: packageWith(cron) } })
    node.settleFor(10_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['service cron'], 'complete'])
  })

  test('a job that tolerates everything is waited for where the spec says so, and deleted past the timeout', () => {
    const node = new NodeSimulator()
    node.pods = [tolerant('train', 'Job')]
    const drain = { tolerating: 'wait', timeoutSeconds: 60, onTimeout: 'delete' } as const
    node.apply('s', { drain, packages: { a: packageWith(cron) } })
    node.settleFor(50_000)
    expect([node.evictedPods, node.executedInterrupts, node.reason()]).toEqual([[], [], 'DrainBlocked'])
    node.settleFor(20_000)
    expect([node.evictedPods, node.status()]).toEqual([['train'], 'complete'])
  })

  test('what is left is named by the reason before the reboot', () => {
    const published: string[] = []
    const observer = { published: (patch: object) => void published.push(JSON.stringify(patch)) }
    const node = new NodeSimulator(undefined, { observer })
    node.interruptAnswers.set('reboot', { state: 'running' })
    node.pods = [tolerant('log', 'ReplicaSet', 'node.kubernetes.io/unschedulable'), pod('web')]
    node.apply('s', { packages: { a: packageWith(reboot) } })
    node.settleFor(5_000)
    expect([node.evictedPods, node.reason()]).toEqual([['web'], 'RebootPending'])
    expect(published.filter((text) => text.includes('RebootPending'))[0]).toContain(
      '; shop/log tolerates the cordon and ends with the interrupt',
    )
  })
})

describe('the last look at the pods before an interrupt', () => {
  const [web, training] = [pod('web'), pod('training', { workload: 'never' })]
  const podNonInterrupt = { podNonInterruptLabels: { matchLabels: { workload: 'never' } } }
  const singleNodeSpec: SkyhookSpec = { ...podNonInterrupt, drain: { singleNode: 'skip' } }

  test.each<[string, SkyhookSpec, boolean | undefined, Pod | undefined]>([
    ['a new pod', podNonInterrupt, false, web],
    ['nothing on the only node, where drains are skipped there', singleNodeSpec, true, undefined],
    ['a new pod where there are other nodes', singleNodeSpec, false, web],
    ['a new pod while the number of nodes is unknown', singleNodeSpec, undefined, web],
  ])('the last look before an interrupt finds %s', (_, spec, singleNode, found) => {
    const nodeCount = singleNode === undefined ? undefined : { isSingle: singleNode, atMs: 0 }
    const cluster = { skipNamespaces: [], nodeCount }
    expect(blockingPod([web], spec, cluster)).toBe(found)
    expect(blockingPod([web, training], spec, cluster)).toBe(training) // protected everywhere
    expect(blockingPod([], spec, cluster)).toBeUndefined()
  })
})
