import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { cron, pkg } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import type { Interrupt, PackageSpec } from '../../schemas/skyhook.ts'
import type { Action } from '../model/plan.ts'
import type { Pod } from '../model/pods.ts'
import type { OwnSlot } from '../model/snapshot.ts'

const reboot: Interrupt = { type: 'reboot' }
const rebooting = (): Record<string, PackageSpec> => ({ a: { ...pkg('1.0.0'), interrupt: reboot } })

const isCordon = (action: Action): boolean => action.do === 'publish' && action.patch.unschedulable === true

/** A node that is drained, with a step on its way to the reboot. */
function nodeAtWork(labels: Record<string, string> = {}): NodeSimulator {
  const node = new NodeSimulator(labels)
  node.hangingPackages.add('a')
  node.apply('s', { packages: rebooting() })
  node.settle()
  return node
}

test('started work keeps its slot when the budget has fallen and the agent starts again', () => {
  const node = nodeAtWork()
  const leases = node.slots.map(({ lease }) => lease)
  node.areSlotsConfirmed = false
  node.restartAgent()
  node.settle()
  expect([node.slots.map(({ lease }) => lease), leases]).toEqual([leases, ['s-uid.slot-0']])
  node.finishHanging('a')
  node.settleFor(20_000)
  expect([node.executedInterrupts, node.status()]).toEqual([['reboot'], 'complete'])
})

test('started work that is paused while the agent starts again asks about nothing but its slot', () => {
  const node = nodeAtWork()
  node.apply('s', { packages: rebooting() }, { 'skyhook.nvidia.com/pause': 'true' })
  node.restartAgent()
  const actions: string[] = []
  for (let round = 0; round < 20; round++) {
    node.step()
    actions.push(...(node.lastPlan?.actions ?? []).map(({ do: what }) => what).filter((what) => what.endsWith('Slot')))
  }
  expect([actions, node.slots.map(({ ownership }) => ownership), node.reason()]).toEqual([
    ['renewSlot'],
    ['owned'],
    'Paused',
  ])
})

/** The node's slot is confirmed, and no work has started under it. */
function nodeBeforeWork(): NodeSimulator {
  const node = new NodeSimulator()
  node.apply('s', { interruptionBudget: { count: 1 }, packages: { a: pkg('1.0.0') } })
  for (let round = 0; round < 50 && node.slots[0]?.ownership !== 'confirmed'; round++) node.step()
  expect([node.slots[0]?.ownership, node.executedSteps]).toEqual(['confirmed', []])
  return node
}

test('a spec that changes between the confirmation of a slot and the first step is confirmed as well', () => {
  const node = nodeBeforeWork()
  node.apply('s', { interruptionBudget: { count: 0 }, packages: { a: pkg('2.0.0') } })
  node.areSlotsConfirmed = false
  const actions: string[] = []
  for (let round = 0; round < 5; round++) {
    node.step()
    actions.push(...(node.lastPlan?.actions ?? []).map(({ do: what }) => what).filter((what) => what.endsWith('Slot')))
  }
  expect([actions, node.slots, node.executedSteps]).toEqual([['confirmSlot'], [], []])
})

test('work starts once the changed spec is confirmed under the same slot', () => {
  const node = nodeBeforeWork()
  const leases = node.slots.map(({ uid }) => uid)
  node.apply('s', { packages: { a: pkg('2.0.0') } })
  for (let round = 0; round < 50 && node.executedSteps.length === 0; round++) node.step()
  expect(node.slots.map(({ uid }) => uid)).toEqual(leases)
  node.settleFor(20_000)
  expect(node.status()).toBe('complete')
})

test('a policy that changes between the confirmation of a slot and the first step is confirmed as well', () => {
  const node = new NodeSimulator()
  const policy = {
    state: 'found',
    uid: 'p',
    generation: 1,
    spec: { default: { budget: { count: 1 }, strategy: { fixed: {} } } },
  } as const
  const change = (generation: number): void => {
    const view = node.views.get('s')
    if (view) node.views.set('s', { ...view, policy: { ...policy, generation } })
  }
  node.apply('s', { deploymentPolicy: 'careful', packages: { a: pkg('1.0.0') } })
  change(1)
  for (let round = 0; round < 50 && node.slots[0]?.ownership !== 'confirmed'; round++) node.step()
  change(2)
  node.step()
  expect([node.lastPlan?.actions.map(({ do: what }) => what), node.executedSteps]).toEqual([
    expect.arrayContaining(['confirmSlot']),
    [],
  ])
  node.settleFor(20_000)
  expect(node.status()).toBe('complete')
})

test('a Skyhook that is created again under the same name starts nothing under the slot of the one before', () => {
  const node = nodeBeforeWork()
  node.remove('s')
  node.apply('s', { packages: { a: pkg('2.0.0') } })
  node.areSlotsGranted = false
  node.settleFor(20_000)
  expect([node.slots, node.executedSteps]).toEqual([[], []])
})

test('started work does not start a step under a slot in doubt, and continues when the slot is ours', () => {
  const node = new NodeSimulator()
  node.hangingPackages.add('a')
  node.apply('s', { packages: { a: pkg('1.0.0') } })
  node.settle()
  node.finishHanging('a')
  const executed = node.executedSteps.length
  node.slots = node.slots.map((slot) => ({ ...slot, ownership: 'seen', renewedAtMs: 0 }))
  node.step()
  expect([node.executedSteps.length, node.lastPlan?.actions.map(({ do: what }) => what)]).toEqual([
    executed,
    expect.arrayContaining(['renewSlot']),
  ])
  node.settleFor(20_000)
  expect([node.status(), node.slots]).toEqual(['complete', []])
})

test('started work whose slot was lost takes a recovery slot as soon as the answer says so', () => {
  const node = nodeAtWork()
  const [slot] = node.slots
  if (!slot) throw new Error('no slot is held')
  node.lostLeases.add(slot.uid)
  node.slots = [{ ...slot, ownership: 'seen', renewedAtMs: 0 }]
  node.settle()
  expect(node.slots.map(({ lease }) => lease)).toEqual(['s-uid.node'])
})

test('started work whose recovery slot is put off says why, and takes it when the pause is over', () => {
  const node = nodeAtWork()
  node.finishHanging('a')
  node.slots = []
  const nextRequestAtMs = node.nowMs + 10_000
  node.slotDenials.set('s', { message: 'it was deleted', nextRequestAtMs, sinceMs: node.nowMs, waitsFor: 'recovery' })
  node.settleFor(3_000)
  expect([node.slots, node.reason(), node.status(), node.lastPlan?.requeueAtMs]).toEqual([
    [],
    'WaitingForSlot',
    'waiting',
    nextRequestAtMs,
  ])
  expect(node.lastPlan?.slotRequests).toEqual(new Set(['s'])) // else the pause would be forgotten
  node.settleFor(11_000)
  expect([node.executedInterrupts, node.status(), node.slots]).toEqual([['reboot'], 'complete', []])
})

test('a slot is released while its Skyhook has to wait for another one on this node', () => {
  const node = new NodeSimulator()
  node.apply('t', { priority: 1, packages: { b: pkg('1.0.0') } })
  node.apply('s', { packages: { a: pkg('1.0.0') } })
  node.hangingPackages.add('b')
  node.settle()
  node.slots = [...node.slots, slotOf({ skyhook: 's', skyhookUid: 's-uid', lease: 's-uid.slot-0' })]
  node.step()
  expect(node.slots.map(({ skyhook }) => skyhook)).toEqual(['t']) // of no use behind the other Skyhook
})

const slotOf = (change: Partial<OwnSlot>): OwnSlot => ({
  scope: 'skyhook',
  skyhook: 's',
  skyhookUid: 's-uid',
  lease: 's-uid.slot-7',
  uid: 'late',
  phase: 'working',
  ownership: 'seen',
  isFormer: false,
  renewedAtMs: 0,
  ...change,
})

describe('a slot that turns up', () => {
  test.each<[string, Partial<OwnSlot>]>([
    ['of a Skyhook that is complete here', {}],
    ['of an earlier registration', { isFormer: true }],
    ['of a Skyhook that nobody knows', { skyhook: 'gone', skyhookUid: undefined }],
    ['of the control plane, which nothing uses', { scope: 'control-plane', skyhook: '', skyhookUid: undefined }],
  ])('a slot %s is released', (_, change) => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(20_000)
    node.slots = [slotOf(change)]
    node.settle()
    expect([node.status(), node.slots]).toEqual(['complete', []])
  })

  test.each([
    ['paused', { 'skyhook.nvidia.com/pause': 'true' }],
    ['disabled', { 'skyhook.nvidia.com/disable': 'true' }],
  ])('a slot of a Skyhook that was %s before its work started is released', (_, annotations) => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0') } }, annotations)
    node.slots = [slotOf({})]
    node.settle()
    expect(node.slots).toEqual([])
  })

  test('a slot of the control plane that nothing uses stays while a plan cordons', () => {
    const node = new NodeSimulator()
    node.hangingPackages.add('a')
    node.apply('s', { packages: rebooting() })
    node.settleUntil(() => node.slots[0]?.ownership === 'confirmed')
    node.slotAppears('s', 'control-plane')
    const plans = []
    for (let round = 0; round < 10; round++) {
      node.step()
      plans.push(node.lastPlan?.actions ?? [])
    }
    const cordoning = plans.find((actions) => actions.some(isCordon))
    expect(cordoning?.map(({ do: what }) => what)).not.toContain('releaseSlot')
    node.finishHanging('a')
    node.settleFor(20_000)
    expect([node.status(), node.slots]).toEqual(['complete', []])
  })

  test('a second slot is released while the first one carries the work', () => {
    const node = nodeAtWork()
    const [kept] = node.slots
    node.slots = [...node.slots, slotOf({})]
    node.settle()
    expect(node.slots.map(({ uid }) => uid)).toEqual([kept?.uid])
  })

  test('a second slot stays until one of the two is known to be ours', () => {
    const node = nodeAtWork()
    node.slots = [slotOf({ uid: 'early' }), slotOf({})]
    node.lostLeases.add('early')
    node.settle()
    expect(node.slots.map(({ uid }) => uid)).toEqual(['late'])
  })

  test('a slot is asked for no earlier than the cordon of earlier work is gone', () => {
    const node = new NodeSimulator()
    node.edit((annotations) => (annotations['skyhook.nvidia.com/cordon_s'] = 'true'))
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.arePatchesDelayed = true
    node.settle()
    expect(node.slots).toEqual([])
    node.arePatchesDelayed = false
    node.settleFor(20_000)
    expect(node.status()).toBe('complete')
  })
})

test('no slot goes back while a write of the Node is not answered, which may have cordoned it', () => {
  const node = nodeAtWork()
  node.isNodeInDoubt = true
  node.finishHanging('a')
  node.settleFor(20_000)
  expect([node.status(), node.slots.length]).toEqual(['complete', 1])
  node.isNodeInDoubt = false
  node.settle()
  expect(node.slots).toEqual([])
})

test('a slot that came back is not tried while the Node may carry a cordon that came back with it', () => {
  const node = new NodeSimulator()
  node.isNodeInDoubt = true
  node.apply('s', { packages: { a: pkg('1.0.0') } })
  node.slotAppears('s', 'skyhook')
  node.settleFor(20_000)
  expect([node.slots.map(({ ownership }) => ownership), node.executedSteps]).toEqual([['owned'], []])
  node.isNodeInDoubt = false
  node.settleFor(20_000)
  expect([node.slots, node.status()]).toEqual([[], 'complete'])
})

describe('a node of the control plane', () => {
  const label = 'node-role.kubernetes.io/control-plane'
  const scopes = (node: NodeSimulator): readonly string[] => node.slots.map(({ scope }) => scope).toSorted()
  const setLabel = (node: NodeSimulator): void => {
    node.node = { ...node.node, metadata: { ...node.node.metadata, labels: { [label]: '' } } }
  }

  test('a control-plane node holds both slots while it is out of service, and gives both back', () => {
    const node = new NodeSimulator({ [label]: '' })
    node.hangingPackages.add('a')
    node.apply('s', { packages: rebooting() })
    node.settle()
    expect([scopes(node), node.node.spec?.unschedulable]).toEqual([['control-plane', 'skyhook'], true])
    node.finishHanging('a')
    node.settleFor(20_000)
    expect([node.executedInterrupts, node.status(), node.slots]).toEqual([['reboot'], 'complete', []])
  })

  const staticPod = (name: string, containerID: string, isReady = true): Pod => ({
    metadata: {
      name,
      namespace: 'kube-system',
      uid: `uid-${name}`,
      resourceVersion: '1',
      annotations: { 'kubernetes.io/config.mirror': 'x' },
    },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }],
      containerStatuses: [{ containerID }],
    },
  })
  const stateOf = (node: NodeSimulator): unknown[] => [scopes(node), node.node.spec?.unschedulable ?? false]
  const outOfService = [['control-plane', 'skyhook'], true]

  test.each(['control-plane', 'master', 'etcd'])(
    'a node with the role %s is out of service until its static pods are Ready in the new boot',
    (role) => {
      const node = new NodeSimulator({ [`node-role.kubernetes.io/${role}`]: '' })
      node.pods = [staticPod('etcd', 'old'), staticPod('broken', 'other', false)]
      node.apply('s', { packages: rebooting() })
      node.settleFor(60_000)
      expect([node.executedInterrupts, ...stateOf(node)]).toEqual([['reboot'], ...outOfService])
      expect(JSON.parse(node.annotation('reason_s') ?? '{}')).toMatchObject({
        reason: 'NodeNotReady',
        message: 'waiting for static pods to be Ready: kube-system/etcd',
      })
      node.pods = [staticPod('etcd', 'new', false)]
      expect(stateOf(node.settleFor(600_000))).toEqual(outOfService)
      node.restartAgent()
      node.pods = [staticPod('etcd', 'new')]
      node.settleFor(20_000)
      expect([node.status(), ...stateOf(node)]).toEqual(['complete', [], false])
    },
  )

  test('a node that somebody reboots while it is out waits for its static pods, too', () => {
    const node = new NodeSimulator({ [label]: '' })
    node.pods = [staticPod('etcd', 'old')]
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: pkg('1.0.0', { interrupt: cron }) } })
    node.settleFor(5_000)
    expect(stateOf(node)).toEqual(outOfService)
    node.reboot()
    node.finishHanging('a')
    expect(stateOf(node.settleFor(60_000))).toEqual(outOfService)
    node.pods = [staticPod('etcd', 'new')]
    expect([node.settleFor(20_000).status(), ...stateOf(node)]).toEqual(['complete', [], false])
  })

  test('a node whose host has just booted by itself waits for the static pods of before, too', () => {
    const node = new NodeSimulator({ [label]: '' })
    node.pods = [staticPod('etcd', 'old'), staticPod('broken', 'other')]
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(20_000)
    node.pods = [staticPod('etcd', 'old'), staticPod('broken', 'other', false)]
    node.settleFor(20_000)
    node.reboot()
    node.apply('s', { packages: { a: pkg('1.0.1', { interrupt: cron }) } })
    expect(stateOf(node.settleFor(60_000))).toEqual(outOfService)
    node.pods = [staticPod('etcd', 'new'), staticPod('broken', 'other', false)]
    expect([node.settleFor(20_000).status(), ...stateOf(node)]).toEqual(['complete', [], false])
  })

  test('a static pod that is gone after the boot is waited for five minutes', () => {
    const node = new NodeSimulator({ [label]: '' })
    node.pods = [staticPod('etcd', 'old')]
    node.apply('s', { packages: rebooting() })
    node.settleFor(20_000)
    node.pods = []
    expect(stateOf(node.settleFor(270_000))).toEqual(outOfService)
    expect([node.settleFor(20_000).status(), ...stateOf(node)]).toEqual(['complete', [], false])
  })

  test('a restart of services leaves the containers of static pods as they are', () => {
    const node = new NodeSimulator({ [label]: '' })
    node.pods = [staticPod('etcd', 'old')]
    node.apply('s', { packages: { a: pkg('1.0.0', { interrupt: cron }) } })
    node.settleFor(20_000)
    expect([node.executedInterrupts, node.status(), ...stateOf(node)]).toEqual([
      ['service cron'],
      'complete',
      [],
      false,
    ])
  })

  test('a worker waits for no static pods', () => {
    const node = new NodeSimulator()
    node.pods = [staticPod('proxy', 'old')]
    node.apply('s', { packages: rebooting() })
    node.settleFor(20_000)
    expect([node.executedInterrupts, node.status()]).toEqual([['reboot'], 'complete'])
  })

  test('a control-plane node that is never interrupted needs no second slot', () => {
    const node = new NodeSimulator({ [label]: '' })
    node.isControlPlaneFree = false
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    node.settleFor(20_000)
    expect(node.status()).toBe('complete')
  })

  test('an interrupt that is added to work under way waits for the control plane, under the slot of the Skyhook', () => {
    const node = new NodeSimulator({ [label]: '' })
    node.isControlPlaneFree = false
    node.hangingPackages.add('b')
    node.apply('s', { packages: { b: pkg('1.0.0') } })
    node.settle()
    node.apply('s', { packages: { ...rebooting(), b: pkg('1.0.0') } })
    node.settle()
    node.finishHanging('b')
    node.settleFor(30_000)
    expect([scopes(node), node.node.spec?.unschedulable ?? false, node.executedInterrupts]).toEqual([
      ['skyhook'],
      false,
      [],
    ])
    expect(JSON.parse(node.annotation('reason_s') ?? '{}')).toMatchObject({
      reason: 'WaitingForSlot',
      message: 'another control-plane node',
    })
    node.isControlPlaneFree = true
    node.settleFor(60_000)
    expect([node.executedInterrupts, node.status(), node.slots]).toEqual([['reboot'], 'complete', []])
  })

  test('a node that is no longer one of the control plane renews its second slot until it is back in service', () => {
    const node = nodeAtWork({ [label]: '' })
    node.node = { ...node.node, metadata: { ...node.node.metadata, labels: {} } }
    const heldAtMs = (): number | undefined => node.slots.find(({ scope }) => scope === 'control-plane')?.renewedAtMs
    const before = heldAtMs() ?? Infinity
    node.settleFor(600_000)
    expect((heldAtMs() ?? 0) - before).toBeGreaterThan(300_000)
    node.finishHanging('a')
    node.settleFor(20_000)
    expect([node.status(), node.slots]).toEqual(['complete', []])
  })

  test('a node that becomes one of the control plane while it is out of service takes a recovery slot', () => {
    const node = nodeAtWork()
    node.isControlPlaneFree = false
    setLabel(node)
    node.settle()
    expect(node.slots.map(({ lease }) => lease).toSorted()).toEqual(['control-plane.node', 's-uid.slot-0'])
    node.finishHanging('a')
    node.settleFor(20_000)
    expect([node.executedInterrupts, node.slots]).toEqual([['reboot'], []])
  })

  test('a control-plane node interrupts nothing before a new agent knows that it holds both slots', () => {
    const node = new NodeSimulator({ [label]: '' })
    node.hangingPackages.add('a')
    node.apply('s', { packages: rebooting() })
    node.settle()
    node.restartAgent()
    const guard = node.slots.find(({ scope }) => scope === 'control-plane')
    node.lostLeases.add(guard?.uid ?? '')
    node.settle()
    expect(node.slots.map(({ lease }) => lease).toSorted()).toEqual(['control-plane.node', 's-uid.slot-0'])
  })

  test('a control-plane node that looks for protected pods before its cordon asks once for its second slot', () => {
    const node = new NodeSimulator({ [label]: '' })
    node.hangingPackages.add('a')
    node.apply('s', {
      packages: { ...rebooting(), b: pkg('1.0.0') },
      podNonInterruptLabels: { matchLabels: { workload: 'never' } },
      drain: { cordon: 'late' },
    })
    node.settle()
    expect([scopes(node), node.node.spec?.unschedulable]).toEqual([['control-plane', 'skyhook'], true])
    node.finishHanging('a')
    node.settleFor(20_000)
    expect([node.executedInterrupts, node.status(), node.slots]).toEqual([['reboot'], 'complete', []])
  })

  test('a control-plane node keeps its second slot while the pods that may be in its way are not known yet', () => {
    const node = new NodeSimulator({ [label]: '' })
    node.hangingPackages.add('b')
    node.apply('s', {
      packages: { ...rebooting(), b: pkg('1.0.0') },
      podNonInterruptLabels: { matchLabels: { workload: 'never' } },
      drain: { cordon: 'late' },
    })
    node.settleUntil(() => scopes(node).length === 2)
    node.arePodsUnknown = true
    node.settle()
    expect([scopes(node), node.node.spec?.unschedulable ?? false]).toEqual([['control-plane', 'skyhook'], false])
    node.arePodsUnknown = false
    node.finishHanging('b')
    node.settleFor(20_000)
    expect([node.executedInterrupts, node.status(), node.slots]).toEqual([['reboot'], 'complete', []])
  })

  test('a control-plane node is not cordoned while the deletion of its second slot is under way', () => {
    const node = nodeAtWork({ [label]: '' })
    node.slots = node.slots.map((slot) => (slot.scope === 'control-plane' ? { ...slot, ownership: 'releasing' } : slot))
    node.finishHanging('a')
    node.settleFor(20_000)
    expect(node.executedInterrupts).toEqual([])
  })

  test('a control-plane node holds neither slot while one of them is missing before it starts', () => {
    const node = new NodeSimulator({ [label]: '' })
    node.areSlotsGranted = false
    node.apply('s', { packages: rebooting() })
    node.settleFor(30_000)
    expect(node.slots).toEqual([])
    node.areSlotsGranted = true
    node.isControlPlaneFree = false
    node.settleFor(30_000)
    expect([node.slots, node.reason()]).toEqual([[], 'WaitingForSlot'])
  })
})
