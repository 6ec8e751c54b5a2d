/**
 * The samples with interrupts, to completion on three nodes, with ordinary pods that must move and hosts that really
 * boot.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runtimeRequiredCondition } from '../../src/schemas/annotations.ts'
import type { KubernetesNode, Taint } from '../../src/schemas/kubernetes.ts'
import { nodeNames, uniqueName, useCluster, type NodeName } from '../kit/cluster/cluster.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import {
  isCompleteOn,
  isCordoned,
  exceedsOutOfService,
  serviceStates,
  hasEvent,
  uncordonedStates,
} from '../kit/cluster/node-availability.ts'
import { fixture, publishedState } from '../kit/cluster/skyhooks.ts'
import { overBudget, slotsOf, workWithoutSlot } from '../kit/cluster/slots.ts'
import { createWorkloads, tooFewReady, type Workloads } from '../kit/cluster/workloads.ts'

const cluster = useCluster()
const isTainted = (name: NodeName, key: string): boolean =>
  cluster.history.now.nodes.get(name)?.spec?.taints?.some((taint) => taint.key === key) === true

const taintConditions = (node: KubernetesNode | undefined): readonly string[] =>
  (node?.status?.conditions ?? []).flatMap(({ type, message = '' }) =>
    type === runtimeRequiredCondition ? [message] : [],
  )

async function taintAll(...taints: readonly Taint[]): Promise<void> {
  await Promise.all(nodeNames.map((name) => patch(cluster.api, `${paths.nodes}/${name}`, { spec: { taints } })))
}

async function finished(skyhook: string, withinMs: number): Promise<void> {
  await cluster.history.eventually(`${skyhook} is complete`, (view) => isCompleteOn(view, skyhook, nodeNames), withinMs)
  await cluster.history.eventually('every slot is released', (view) => slotsOf(view, skyhook).length === 0)
}

describe('rollout.yaml', () => {
  const name = uniqueName('rollout')
  let shop: Workloads
  const startsOfCron = async (node: NodeName): Promise<number> =>
    (await cluster.host(node).exec('journalctl', '-u', 'cron', '-o', 'cat'))
      .split('\n')
      .filter((line) => line.startsWith('Started')).length
  const started = new Map<NodeName, number>()

  beforeAll(async () => {
    const gpu = { key: 'nvidia.com/gpu', value: 'present', effect: 'NoSchedule' } as const
    await taintAll(gpu)
    shop = await createWorkloads(cluster, name)
    await shop.deploy('cart', 3, { tolerations: [{ key: gpu.key, operator: 'Exists' }] })
    await shop.budget('cart', 'cart', 2)
    for (const node of nodeNames) {
      started.set(node, await startsOfCron(node))
      await cluster.host(node).remove('/etc/bcp/applied') // of an earlier run on this sandbox
    }
    await cluster.apply(fixture('rollout.yaml', name, cluster.registry), ...nodeNames)
    await finished(name, 60_000)
  })
  afterAll(async () => {
    await taintAll()
    await shop.remove()
  })

  test('rollout.yaml completes on nodes with a tolerated taint', () => {
    for (const node of nodeNames) {
      expect(publishedState(cluster.history.now.nodes.get(node), name).state).toMatchObject({
        'bcp|2024.05.13': { stage: 'post-interrupt', state: 'complete' },
        'nvssh|2024.05.10': { stage: 'config', state: 'complete' },
      })
      expect(isTainted(node, 'nvidia.com/gpu')).toBe(true)
    }
  })

  test('rollout.yaml never takes two nodes out of service, nor more pods than their budget allows', async () => {
    await cluster.history.never('two nodes at once', overBudget(name, 1))
    await cluster.history.never('two nodes out of service', exceedsOutOfService(1))
    await cluster.history.never('work without a slot', workWithoutSlot(name))
    await cluster.history.never('a violated budget', tooFewReady(shop, 'cart', 2))
    const uids = await cluster.history.values((view) => shop.pods(view, 'cart').map(({ metadata }) => metadata.uid))
    expect(new Set(uids.flat()).size).toBeGreaterThanOrEqual(3 + 3) // each of them had to move
    for (const node of nodeNames) expect(uncordonedStates(await serviceStates(cluster.history, node))).toHaveLength(1)
  })

  test.each(nodeNames)(
    'rollout.yaml restarts the service on %s once, after the installation and before the check',
    async (node) => {
      expect(await startsOfCron(node)).toBe((started.get(node) ?? 0) + 1)
      expect(await cluster.host(node).lines('/etc/bcp/applied')).toHaveLength(1)
      expect(await cluster.host(node).read('/etc/bcp/csp')).toBe('azure\n')
      expect(await cluster.host(node).read('/etc/nvssh/roles.conf')).toBe('AllowGroups admins\n')
      expect(await cluster.host(node).read('/etc/bcp/interrupted')).toBe(`${await cluster.host(node).bootId()}\n`)
      await cluster.history.eventually('an Event reports the restart', (view) =>
        hasEvent(view, node, 'InterruptCompleted', name, 'service cron'),
      )
    },
  )

  test('rollout.yaml restarts the service again for a changed configMap key, one node at a time', async () => {
    await cluster.edit(name, {
      packages: { nvssh: { configMap: { 'nvssh_vars.sh': 'allowed_roles=admins,owners\n' } } },
    })
    const changed = async (): Promise<string[]> =>
      await Promise.all(nodeNames.map(async (node) => (await cluster.host(node).read('/etc/nvssh/roles.conf')) ?? ''))
    await expect.poll(changed, { timeout: 30_000 }).toEqual(nodeNames.map(() => 'AllowGroups admins owners\n'))
    await finished(name, 30_000)
    for (const node of nodeNames) {
      expect(await startsOfCron(node)).toBe((started.get(node) ?? 0) + 2)
      expect(await cluster.host(node).lines('/etc/bcp/applied')).toHaveLength(1) // the other package did not run
      expect(publishedState(cluster.history.now.nodes.get(node), name).state).toMatchObject({
        'nvssh|2024.05.10': { stage: 'post-interrupt', state: 'complete' },
      })
    }
    await cluster.history.never('two nodes out of service', exceedsOutOfService(1))
    await cluster.history.never('a violated budget', tooFewReady(shop, 'cart', 2))
  })
})

describe('runtime-required.yaml', () => {
  const name = uniqueName('baseline')
  const taint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' } as const
  const taintOfNodeWright = { ...taint, key: 'nodewright.nvidia.com' } as const
  const boots = new Map<NodeName, string>()
  let shop: Workloads

  beforeAll(async () => {
    for (const node of nodeNames) boots.set(node, await cluster.host(node).bootId())
    await taintAll(taint, taintOfNodeWright)
    shop = await createWorkloads(cluster, name)
    const deployed = shop.deploy('early', 3)
    await cluster.history.eventually('each node says that nobody lifts its taint', ({ nodes }) =>
      nodeNames.every((node) => taintConditions(nodes.get(node)).length > 0),
    )
    await cluster.apply(fixture('runtime-required.yaml', name, cluster.registry), ...nodeNames)
    await finished(name, 120_000)
    await deployed
  })
  afterAll(async () => {
    await taintAll()
    await shop.remove()
  })

  test('runtime-required.yaml reboots two nodes at a time, never three', async () => {
    await cluster.history.never('three nodes at once', overBudget(name, 2))
    await cluster.history.never('three nodes out of service', exceedsOutOfService(2))
    await cluster.history.never('work without a slot', workWithoutSlot(name))
  })

  test.each(nodeNames)(
    'runtime-required.yaml boots %s once and returns it to service only Ready and in its new boot',
    async (node) => {
      const [before, now] = [boots.get(node), await cluster.host(node).bootId()]
      const states = (await serviceStates(cluster.history, node)).slice(
        (await serviceStates(cluster.history, node)).findIndex(({ bootId }) => bootId === before),
      )
      expect([...new Set(states.map(({ bootId }) => bootId))]).toEqual([before, now])
      expect(now).not.toBe(before)
      expect(uncordonedStates(states).at(-1)).toEqual({ cordoned: false, ready: true, bootId: now })
      // applied before the boot, not again after it
      expect(await cluster.host(node).read('/var/tmp/baseline-applied-in')).toBe(`${before}\n`)
      expect(Object.values(publishedState(cluster.history.now.nodes.get(node), name).companion?.reboots ?? {})).toEqual(
        [{ done: 1 }],
      )
      expect(isCordoned(cluster.history.now.nodes.get(node))).toBe(false)
    },
  )

  test('runtime-required.yaml takes the condition of a taint that nobody lifts off each node', () => {
    for (const node of nodeNames) expect(taintConditions(cluster.history.now.nodes.get(node))).toEqual([])
  })

  test('runtime-required.yaml removes both taints on completion, and no pod starts before', async () => {
    for (const node of nodeNames)
      for (const { key } of [taint, taintOfNodeWright]) expect(isTainted(node, key)).toBe(false)
    const complete = new Set<string>()
    await cluster.history.never('a pod before the node was complete', (moment) => {
      for (const node of nodeNames)
        if (publishedState(moment.nodes.get(node), name).status === 'complete') complete.add(node)
      const early = shop
        .pods(moment, 'early')
        .find(({ spec }) => spec?.nodeName !== undefined && !complete.has(spec.nodeName))
      return early && `${early.metadata.name} is on ${early.spec?.nodeName}`
    })
  })
})
