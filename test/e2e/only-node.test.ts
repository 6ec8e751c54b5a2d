/**
 * The only node of a cluster. Its kubelet delays a shutdown until the pods have ended in order, and the definition of
 * Skyhooks is removed during its work.
 */
import { expect, test } from 'vitest'
import type { KubeObject } from '../../src/kube/objects.ts'
import { readSlot, type Lease } from '../../src/lease/slot.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { ignoreNotFound, patch, paths } from '../kit/cluster/kube.ts'
import { isCompleteOn, isCordoned, serviceStates, uncordonedStates } from '../kit/cluster/node-availability.ts'
import {
  journaled,
  journalOf,
  manifest,
  onceEach,
  selectorLabel,
  shellscript,
  publishedState,
  traces,
  withoutTimes,
} from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'
import { createWorkloads, isReady } from '../kit/cluster/workloads.ts'

const cluster = useCluster({ name: 'only', nodes: 1, env: { KUBELET_SHUTDOWN_GRACE: '10s' } })
const node = 'node-1'

test('the only node reboots although its pods have nowhere to go: they end in order and run again afterwards', async ({
  onTestFinished,
}) => {
  const name = uniqueName('only')
  const { history } = cluster
  const host = cluster.host(node)
  const before = await host.bootId()
  const shop = await createWorkloads(cluster, name)
  onTestFinished(async () => {
    await cluster.remove(name)
    await shop.remove()
  })
  await shop.deploy('cart', 1, { graceSeconds: 3 })
  const cart = shop.pods(history.now, 'cart')[0]?.metadata.uid
  const work = shellscript(cluster.registry, journaled(name), { interrupt: { type: 'reboot' } })
  await cluster.apply(manifest(name, { drain: { singleNode: 'skip' }, packages: { work } }), node)
  await history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), 90_000)
  await history.eventually('the slot is released', (view) => slotsOf(view, name).length === 0)

  const now = await host.bootId()
  const states = await serviceStates(history, node)
  expect([...new Set(states.map(({ bootId }) => bootId))]).toEqual([before, now])
  expect(uncordonedStates(states)).toEqual([{ cordoned: false, ready: true, bootId: now }])
  expect(withoutTimes(await host.lines(journalOf(name)))).toEqual(
    onceEach('apply', 'apply_check', 'config', 'config_check', 'post_interrupt'),
  )
  expect(Object.values(publishedState(history.now.nodes.get(node), name).companion?.reboots ?? {})).toEqual([
    { done: 1 },
  ])
  await history.eventually('the pods run again', (view) => shop.pods(view, 'cart').some(isReady))
  await history.never('an eviction', (view) => {
    const pod = shop.pods(view, 'cart').find(({ metadata }) => metadata.uid === cart)
    const evicted = pod?.status?.conditions?.some(
      ({ type, reason }) => type === 'DisruptionTarget' && reason === 'EvictionByEvictionAPI',
    )
    return evicted === true && 'cart was evicted'
  })
})

test('a Skyhook whose definition is removed during its work leaves nothing on its node and no slot', async () => {
  const { api, history, registry } = cluster
  const name = uniqueName('undefined')
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  const definition = `${definitions}/skyhooks.skyhook.nvidia.com`
  const { metadata, ...stored } = await api.json<KubeObject>('GET', definition)
  const { labels, annotations } = metadata
  const slow = shellscript(registry, { apply: 'sleep 60' }, { interrupt: { type: 'noop' } })
  // not by `cluster.apply`: the recording, which its removal needs, ends with its kind
  await patch(api, `${paths.nodes}/${node}`, { metadata: { labels: { [selectorLabel]: name } } })
  const body = manifest(name, { drain: { singleNode: 'skip' }, packages: { slow } })
  await api.json('POST', paths.skyhooks, { body })
  await history.eventually(
    'the node works, out of service',
    (view) => slotsOf(view, name).length > 0 && isCordoned(view.nodes.get(node)),
  )

  await api.json('DELETE', definition)
  const left = async () => {
    const shown = await api.json<KubernetesNode>('GET', `${paths.nodes}/${node}`)
    const leases = await api.json<{ items: Lease[] }>('GET', paths.leases)
    const slots = leases.items.flatMap((lease) => readSlot(lease)?.name ?? [])
    return { isCordoned: isCordoned(shown), traces: traces(shown, name), slots }
  }
  await expect.poll(left, { timeout: 45_000 }).toEqual({ isCordoned: false, traces: [], slots: [] })

  // for a sandbox that is kept
  await expect.poll(() => ignoreNotFound(api, 'GET', definition)).toBeUndefined()
  const again = { ...stored, metadata: { name: metadata.name, labels, annotations } }
  await api.json('POST', definitions, { body: again })
})
