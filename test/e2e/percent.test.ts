/** A budget by percent over six nodes, some of which join, leave and change their labels during the rollout. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { setTimeout as sleep } from 'node:timers/promises'
import type { KubeTransport } from '../../src/kube/transport.ts'
import { readSlot, type Lease } from '../../src/lease/slot.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { sandbox } from '../sandbox/sandbox.ts'
import { record, type History } from '../kit/history.ts'
import { adminTransport, patch, paths } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'
import { manifest, selectorLabel, shellscript, publishedState, traces } from '../kit/cluster/skyhooks.ts'
import { overBudget, slotsOf } from '../kit/cluster/slots.ts'

const name = 'percent'
const nodes = ['node-1', 'node-2', 'node-3', 'node-4', 'node-5', 'node-6'] as const

describe('a budget of 34 percent of six nodes', () => {
  const box = sandbox(`${inject('sandbox')}-six`)
  let api: KubeTransport
  let history: History

  const select = async (node: string, selected: boolean): Promise<unknown> =>
    await patch(api, `${paths.nodes}/${node}`, { metadata: { labels: { [selectorLabel]: selected ? name : null } } })
  const isComplete = (view: View, node: string): boolean =>
    publishedState(view.nodes.get(node), name).status === 'complete'

  beforeAll(async () => {
    await box.must(['up', '6'])
    await box.must([
      'push',
      join(import.meta.dirname, '..', 'fixtures', 'packages', 'shellscript'),
      'skyhook-packages/shellscript:1.1.0',
    ])
    const { KUBECONFIG = '', REGISTRY = '' } = box.env()
    api = adminTransport(KUBECONFIG)
    history = await record(api)
    for (const node of nodes) await select(node, true)
    const slow = shellscript(REGISTRY, { apply: 'sleep 2' }, { interrupt: { type: 'noop' } })
    await api.json('POST', paths.skyhooks, {
      body: manifest(name, { interruptionBudget: { percent: 34 }, packages: { slow } }),
    })
    await history.eventually('two work at once', (view) => slotsOf(view, name).length === 2, 60_000)
    await select('node-6', false) // one leaves the selector,
    await api.json('DELETE', `${paths.nodes}/node-5`) // one leaves the cluster,
    await select('node-6', true) // and one joins
  }, 300_000)

  afterAll(async () => {
    history?.stop()
    api?.close()
    await box.run(['down'])
  }, 60_000)

  test('a budget of 34 percent reaches every remaining node', async () => {
    await history.eventually(
      'all are complete',
      (view) => ['node-1', 'node-2', 'node-3', 'node-4', 'node-6'].every((node) => isComplete(view, node)),
      90_000,
    )
    await history.eventually('every slot is released', (view) => slotsOf(view, name).length === 0)
  })

  test('a budget of 34 percent never has more than two of six nodes cordoned or holding a slot', async () => {
    await history.never('more than two slots', overBudget(name, 2))
    await history.never('more than two cordoned', (moment) => {
      const out = [...moment.nodes.values()]
        .filter(({ spec }) => spec?.unschedulable === true)
        .map(({ metadata }) => metadata.name)
      return out.length > 2 ? out.join(', ') : undefined
    })
  })

  test('a budget of 34 percent leaves no cordon behind', () => {
    expect([...history.now.nodes.values()].filter(({ spec }) => spec?.unschedulable === true)).toEqual([])
  })

  test('a Skyhook whose definition is removed during its work leaves nothing on nodes and no slot', async () => {
    const { REGISTRY = '' } = box.env()
    const slow = shellscript(REGISTRY, { apply: 'sleep 60' }, { version: '1.1.0', interrupt: { type: 'noop' } })
    await patch(api, `${paths.skyhooks}/${name}`, { spec: { packages: { another: slow } } })
    await history.eventually(
      'somebody works again',
      (view) =>
        slotsOf(view, name).length > 0 && [...view.nodes.values()].some(({ spec }) => spec?.unschedulable === true),
    )
    await api.json('DELETE', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/skyhooks.skyhook.nvidia.com')
    const isClean = await eventuallyClean(api)
    expect(isClean).toEqual({ cordoned: [], marked: [], slots: [] })
  })
})

/**
 * What is left of Skyhooks on the cluster once it no longer shrinks; read by LISTs, because the recording ends with its
 * kind.
 */
async function eventuallyClean(api: KubeTransport): Promise<{ cordoned: string[]; marked: string[]; slots: string[] }> {
  for (const deadlineMs = Date.now() + 45_000; ; ) {
    const { items } = await api.json<{ items: KubernetesNode[] }>('GET', paths.nodes)
    const leases = await api.json<{ items: Lease[] }>('GET', paths.leases)
    const left = {
      cordoned: items.filter(({ spec }) => spec?.unschedulable === true).map(({ metadata }) => metadata.name),
      marked: items.filter((node) => traces(node, name).length > 0).map(({ metadata }) => metadata.name),
      slots: leases.items.flatMap((lease) => readSlot(lease)?.name ?? []),
    }
    if (Object.values(left).every((found) => found.length === 0) || Date.now() > deadlineMs) return left
    await sleep(250)
  }
}
