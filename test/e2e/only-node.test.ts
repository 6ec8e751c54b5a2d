/** The only node of a cluster, whose kubelet delays a shutdown until the pods have ended in order. */
import { expect, test } from 'vitest'
import { uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { isCompleteOn, serviceStates, uncordonedStates } from '../kit/cluster/node-availability.ts'
import {
  journaled,
  journalOf,
  manifest,
  onceEach,
  shellscript,
  publishedState,
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
