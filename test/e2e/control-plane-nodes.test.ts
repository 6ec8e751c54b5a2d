/** Only one control-plane node at a time, whatever the budget: the cluster needs the others. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uniqueName, useCluster, type NodeName } from './cluster.ts'
import { patch, paths } from './kube.ts'
import type { View } from './moments.ts'
import { isCompleteOn, isCordoned, outOfService } from './node-availability.ts'
import { journaled, manifest, shellscript } from './skyhooks.ts'
import { slotsOf, workWithoutSlot } from './slots.ts'
import { isReady, workloadImage } from './workloads.ts'

const cluster = useCluster()
const role = 'node-role.kubernetes.io/control-plane'
const nodes: readonly NodeName[] = ['node-1', 'node-2']
const holderOf = ({ leases }: View): string | undefined => leases.get('control-plane.slot-0')?.spec?.holderIdentity

async function label(value: string | null): Promise<void> {
  await Promise.all(
    nodes.map((node) => patch(cluster.api, `${paths.nodes}/${node}`, { metadata: { labels: { [role]: value } } })),
  )
}
beforeAll(async () => await label(''))
afterAll(async () => await label(null))

test('two control-plane nodes leave service one after the other despite a budget of two, each under the slot of the control plane', async () => {
  const name = uniqueName('control-plane')
  const work = shellscript(cluster.registry, journaled(name), { interrupt: { type: 'service', services: ['foobar'] } })
  await cluster.apply(manifest(name, { interruptionBudget: { count: 2 }, packages: { work } }), ...nodes)
  await cluster.history.eventually('both are complete', (view) => isCompleteOn(view, name, nodes))
  await cluster.history.eventually(
    'all slots were given back',
    (view) => slotsOf(view, name).length === 0 && holderOf(view) === undefined,
  )

  await cluster.history.never('work without a slot', workWithoutSlot(name))
  await cluster.history.never(
    'two control-plane nodes out of service',
    (view) => outOfService(view).length > 1 && outOfService(view).join(' and '),
  )
  await cluster.history.never('a slot without the control plane', (view) => {
    const other = slotsOf(view, name).find(({ holder }) => holder !== holderOf(view))
    return (
      other &&
      outOfService(view).includes(other.holder) &&
      `${other.holder} is out, ${holderOf(view)} holds the control plane`
    )
  })
  await cluster.history.never('a slot taken before the control plane', ({ change, ...view }) => {
    if (change.kind !== 'leases' || change.type !== 'ADDED') return undefined
    const isTaken = slotsOf({ ...view, leases: new Map([['it', change.object]]) }, name).length > 0
    return (
      isTaken && change.object.spec?.holderIdentity !== holderOf(view) && `by ${change.object.spec?.holderIdentity}`
    )
  })
  const holders = await cluster.history.values(holderOf)
  expect(holders.filter((holder) => holder !== undefined).toSorted()).toEqual(nodes)
})

const manifestPath = '/etc/kubernetes/manifests/etcd.json'
/** Stands for etcd: it is Ready some time after the kubelet is, by the kubelet's own word. */
const staticPod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'etcd', namespace: 'kube-system' },
  spec: {
    hostNetwork: true,
    terminationGracePeriodSeconds: 1,
    containers: [
      {
        name: 'etcd',
        image: workloadImage,
        imagePullPolicy: 'Never',
        readinessProbe: { httpGet: { host: '127.0.0.1', port: 10_248, path: '/healthz' }, initialDelaySeconds: 15 },
      },
    ],
  },
}
/** Node, boot, and the container of its static pod, where that is Ready. */
function memberOf({ nodes: all, pods }: View, node: string) {
  const pod = pods.get(`kube-system/etcd-${node}`)
  return {
    bootId: all.get(node)?.status?.nodeInfo?.bootID,
    container: pod && isReady(pod) ? pod.status?.containerStatuses?.[0]?.containerID : undefined,
  }
}

test('a control-plane node reboots only when the static pods of the one before it run in its new boot', async () => {
  const { history } = cluster
  for (const node of nodes) await cluster.host(node).write(manifestPath, JSON.stringify(staticPod))
  const areReady = (view: View): boolean => nodes.every((node) => memberOf(view, node).container !== undefined)
  await history.eventually('both static pods are Ready', areReady, 120_000)
  const before = new Map(nodes.map((node) => [node, memberOf(history.now, node)]))

  const name = uniqueName('static-pods')
  const work = shellscript(cluster.registry, journaled(name), { interrupt: { type: 'reboot' } })
  await cluster.apply(manifest(name, { interruptionBudget: { count: 2 }, packages: { work } }), ...nodes)
  await history.eventually('both are complete', (view) => isCompleteOn(view, name, nodes), 300_000)
  const after = new Map(nodes.map((node) => [node, memberOf(history.now, node)]))
  for (const node of nodes) await cluster.host(node).remove(manifestPath)

  for (const node of nodes) {
    expect(after.get(node)?.bootId).not.toBe(before.get(node)?.bootId)
    expect(after.get(node)?.container).not.toBe(before.get(node)?.container)
  }
  await history.never('a node that leaves while the other does not run its static pod', (moment) => {
    if (moment.change.kind !== 'nodes' || !isCordoned(moment.change.object)) return undefined
    const leaving = moment.change.object.metadata.name
    const missing = nodes.find((node) => {
      const member = memberOf(moment, node)
      const hasBooted = member.bootId !== before.get(node)?.bootId
      return node !== leaving && hasBooted && (!member.container || member.container === before.get(node)?.container)
    })
    return missing && `${leaving} is cordoned, and the static pod of ${missing} does not run in its new boot`
  })
}, 600_000)
