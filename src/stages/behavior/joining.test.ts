import { describe, expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { disableKey } from '../../schemas/annotations.ts'
import { pkg, pod, reboot } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'

const taint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }

/** A node with the taint of new nodes. */
function newNode(pods: NodeSimulator['pods'] = [], taints = [taint]): NodeSimulator {
  const node = new NodeSimulator()
  node.node = { ...node.node, spec: { ...node.node.spec, taints } }
  node.pods = pods
  return node
}

/** The slots that a node asked for or took, by the name of the Lease. */
function leasesDuring(node: NodeSimulator, ms: number): string[] {
  const leases = new Set<string>()
  const note = (): void => node.slots.forEach(({ lease }) => leases.add(lease))
  for (let round = 0; round < 60 && node.step(); round++) note()
  node.settleFor(ms)
  note()
  return [...leases]
}

describe('a node that joins the cluster', () => {
  test('a tainted node without pods to evict works under the budget for joining nodes', () => {
    const node = newNode()
    node.apply('s', { runtimeRequired: true, packages: { a: { ...pkg('1.0.0'), interrupt: reboot } } })
    expect([leasesDuring(node, 30_000), node.status(), node.node.spec?.taints]).toEqual([
      ['s-uid.bootstrap-0'],
      'complete',
      [],
    ])
  })

  test("NodeWright's taint makes a node new as well, and goes with the other one", () => {
    const node = newNode([], [{ ...taint, key: 'nodewright.nvidia.com' }, taint])
    node.apply('s', { runtimeRequired: true, packages: { a: pkg('1.0.0') } })
    expect([leasesDuring(node, 30_000), node.status(), node.node.spec?.taints]).toEqual([
      ['s-uid.bootstrap-0'],
      'complete',
      [],
    ])
  })

  test('a tainted node with a pod to evict counts like every other', () => {
    const node = newNode([pod('web')])
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    expect([leasesDuring(node, 5_000), node.status()]).toEqual([['s-uid.slot-0'], 'complete'])
  })

  test('a tainted node with a protected pod counts like every other', () => {
    const node = newNode([pod('job', { protected: 'yes' })])
    node.apply('s', { podNonInterruptLabels: { matchLabels: { protected: 'yes' } }, packages: { a: pkg('1.0.0') } })
    expect(leasesDuring(node, 5_000)).toEqual(['s-uid.slot-0'])
  })

  test('a node without the taint counts like every other', () => {
    const node = new NodeSimulator()
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    expect(leasesDuring(node, 5_000)).toEqual(['s-uid.slot-0'])
  })

  test('a tainted node asks for nothing before its pods are known', () => {
    const node = newNode()
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    for (let round = 0; round < 20; round++) {
      node.podWatch = 'no' // the LIST never ends
      node.step()
    }
    expect([node.slots, node.lastPlan?.watchPods]).toEqual([[], 'any'])
  })

  test('a slot for joining nodes is given back if the node is in service before the work starts', () => {
    const node = newNode()
    node.areSlotsConfirmed = false
    node.apply('s', { packages: { a: pkg('1.0.0') } })
    for (let round = 0; round < 60 && node.slots.length === 0; round++) node.step()
    expect(node.slots.map(({ lease }) => lease)).toEqual(['s-uid.bootstrap-0'])
    node.areSlotsConfirmed = true
    node.pods = [pod('web')]
    expect([leasesDuring(node, 5_000).at(-1), node.status()]).toEqual(['s-uid.slot-0', 'complete'])
  })

  test('work under way counts as capacity once somebody has removed the taint', () => {
    const node = newNode()
    node.hangingPackages.add('a')
    node.apply('s', { packages: { a: { ...pkg('1.0.0'), interrupt: reboot } } })
    node.settle()
    expect(node.slots.map(({ lease }) => lease)).toEqual(['s-uid.bootstrap-0'])
    node.node = { ...node.node, spec: { ...node.node.spec, taints: [] } }
    node.settle()
    expect(node.slots.map(({ lease }) => lease)).toEqual(['s-uid.node'])
    node.finishHanging('a')
    node.settleFor(30_000)
    expect([node.status(), node.slots]).toEqual(['complete', []])
  })

  const disabled = { [disableKey]: 'true' }

  /** `later` is at work under its slot for joining nodes, because `first`, which is required, is disabled. */
  function joiningBesideDisabled(): NodeSimulator {
    const node = newNode()
    const packages = { a: pkg('1.0.0') }
    node.apply('first', { runtimeRequired: true, priority: 100, packages }, disabled)
    node.hangingPackages.add('b')
    node.apply('later', { priority: 200, packages: { b: { ...pkg('1.0.0'), interrupt: reboot } } })
    node.settle()
    expect(node.slots.map(({ lease }) => lease)).toEqual(['later-uid.bootstrap-0'])
    return node
  }

  test.each<[string, (node: NodeSimulator) => void]>([
    ['is deleted', (node) => node.remove('first')],
    ['requires nothing any more', (node) => node.apply('first', { packages: { a: pkg('1.0.0') } }, disabled)],
  ])('a node keeps its taint while it works as a joining node, also if the required Skyhook %s', (_, edit) => {
    const node = joiningBesideDisabled()
    edit(node)
    node.settleFor(5_000)
    expect([node.node.spec?.taints, node.slots.map(({ lease }) => lease)]).toEqual([[taint], ['later-uid.bootstrap-0']])
    node.finishHanging('b')
    node.settleFor(30_000)
    expect([node.status('later'), node.slots, node.node.spec?.taints]).toEqual(['complete', [], []])
  })

  test('a later Skyhook counts with the nodes in service once the required one is complete, taint or not', () => {
    const node = newNode()
    node.apply('first', { runtimeRequired: true, priority: 100, packages: { a: pkg('1.0.0') } })
    node.apply('later', { priority: 200, packages: { b: pkg('1.0.0') } })
    expect(leasesDuring(node, 30_000)).toEqual(['first-uid.bootstrap-0', 'later-uid.slot-0'])
  })

  test('a joining node does not soak: nobody misses its capacity', () => {
    const node = newNode()
    node.apply('s', { pace: { pauseSeconds: 600 }, packages: { a: pkg('1.0.0') } })
    expect([node.settleFor(5_000).status(), node.slots]).toEqual(['complete', []])
  })
})

describe('a tainted node that no Skyhook with runtimeRequired selects', () => {
  const shown = (node: NodeSimulator): readonly string[] =>
    (node.node.status?.conditions ?? []).flatMap(({ type, message = '' }) =>
      type === 'skyhook.nvidia.com/RuntimeRequired' ? [message] : [],
    )
  const elsewhere = { runtimeRequired: true, nodeSelectors: { matchLabels: { pool: 'gpu' } } } as const

  test('the Node says who does not lift the taint, once, and also after the agent has restarted', () => {
    const node = newNode()
    node.apply('drivers', { ...elsewhere, packages: { a: pkg('1.0.0') } })
    node.settleFor(9_000)
    const early = [shown(node), node.patches]
    node.settleFor(2_000)
    node.restartAgent()
    node.settleFor(60_000)
    expect(early).toEqual([[], 0])
    expect([shown(node), node.patches]).toEqual([
      [expect.stringContaining('(drivers selects other nodes), so nobody lifts')],
      1,
    ])
  })

  test('the condition goes with the first write of a Skyhook that selects the node, which then lifts the taint', () => {
    const [warned, unwarned] = [newNode(), newNode()].map((node, index) => {
      node.settleFor(index === 0 ? 20_000 : 1_000)
      const before = [shown(node).length, node.patches]
      node.apply('s', { runtimeRequired: true, packages: { a: pkg('1.0.0') } })
      node.settleFor(30_000)
      return { before, after: [node.status(), shown(node), node.node.spec?.taints], writes: node.patches }
    })
    expect([warned?.before, unwarned?.before]).toEqual([
      [1, 1],
      [0, 0],
    ])
    expect(warned?.after).toEqual(['complete', [], []])
    expect([warned?.after, (warned?.writes ?? 0) - 1]).toEqual([unwarned?.after, unwarned?.writes])
  })

  test('a label that comes a little later costs no write', () => {
    const node = newNode()
    node.apply('drivers', { ...elsewhere, packages: { a: pkg('1.0.0') } })
    node.settleFor(8_000)
    node.node = { ...node.node, metadata: { ...node.node.metadata, labels: { pool: 'gpu' } } }
    const written: string[] = []
    for (let round = 0; round < 60 && node.step(); round++) written.push(...shown(node))
    node.settleFor(30_000)
    expect([written, shown(node), node.node.spec?.taints, node.status('drivers')]).toEqual([[], [], [], 'complete'])
  })

  test('the condition goes when somebody removes the taint', () => {
    const node = newNode()
    node.settleFor(20_000)
    expect(shown(node)).toHaveLength(1)
    node.node = { ...node.node, spec: { taints: [] } }
    node.settleFor(1_000)
    expect(shown(node)).toEqual([])
  })
})
