/** A host that was reinstalled under its old name: all packages run again, but no reboot is repeated. */
import { expect, test } from 'vitest'
import { uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { isCompleteOn, isCordoned, serviceStates, hasEvent } from '../kit/cluster/node-availability.ts'
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

const cluster = useCluster()
const node = 'node-3'

test('a host that returns with an empty disk reinstalls everything without another reboot', async () => {
  const name = uniqueName('wiped')
  const host = cluster.host(node)
  const work = shellscript(cluster.registry, journaled(name), { interrupt: { type: 'reboot' } })
  await cluster.apply(manifest(name, { interruptionBudget: { count: 1 }, packages: { work } }), node)
  await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), 90_000)
  const { companion } = publishedState(cluster.history.now.nodes.get(node), name)
  expect(Object.values(companion?.reboots ?? {})).toEqual([{ done: 1 }])

  await cluster.sandbox.must(['crash', node])
  await cluster.sandbox.must(['wipe', node])
  await cluster.sandbox.must(['start', node])
  expect(await host.exists(journalOf(name))).toBe(false)
  const boot = await host.bootId()

  await cluster.history.eventually('an Event reports it', (view) => hasEvent(view, node, 'HostStateLost', name), 60_000)
  await cluster.history.eventually(
    'an Event reports that the reboot is not repeated',
    (view) => hasEvent(view, node, 'RebootSkipped', name),
    60_000,
  )
  await host.awaitLine(journalOf(name), 'post_interrupt ends', 60_000)
  await cluster.history.eventually(
    'it is complete, and the slot was given back',
    (view) => isCompleteOn(view, name, [node]) && slotsOf(view, name).length === 0,
  )
  expect(withoutTimes(await host.lines(journalOf(name)))).toEqual(
    onceEach('apply', 'apply_check', 'config', 'config_check', 'post_interrupt'),
  )
  expect(await host.bootId()).toBe(boot)
  const now = cluster.history.now.nodes.get(node)
  expect(Object.values(publishedState(now, name).companion?.reboots ?? {})).toEqual([{ done: 1 }])
  expect(isCordoned(now)).toBe(false)
  const boots = (await serviceStates(cluster.history, node)).map(({ bootId }) => bootId)
  expect(new Set(boots).size).toBe(3) // the first, that of the reboot, that of the new disk
})
