/** Only one control-plane node at a time, whatever the budget: the cluster needs the others. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { uniqueName, useCluster, type NodeName } from '../kit/cluster/cluster.ts'
import { patch, paths } from '../kit/cluster/kube.ts'
import type { View } from '../kit/cluster/moments.ts'
import { isCompleteOn, outOfService } from '../kit/cluster/node-availability.ts'
import { journaled, manifest, shellscript } from '../kit/cluster/skyhooks.ts'
import { slotsOf, workWithoutSlot } from '../kit/cluster/slots.ts'

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
