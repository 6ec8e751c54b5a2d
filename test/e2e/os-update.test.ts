/** Host updates, rolled out by the agent: a node leaves service only when the system requires a reboot. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { packageCondition } from '../../src/schemas/annotations.ts'
import { buildPackages, publishPackages } from '../kit/cluster/package-repositories.ts'
import { uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import {
  isCompleteOn,
  isCordoned,
  serviceStates,
  hasEvent,
  uncordonedStates,
} from '../kit/cluster/node-availability.ts'
import { manifest, publishedState } from '../kit/cluster/skyhooks.ts'
import { slotsOf } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const node = 'node-1'
const name = uniqueName('updates')
const checkNow = `skyhook-os-update-${name}-os-update.service`
const statusFile = `/var/lib/skyhook/${name}/status/os-update.json`
const sh = async (script: string): Promise<string> => (await cluster.host(node).exec('sh', '-c', script)).trim()
const versions = async (): Promise<string> => await sh("dpkg-query -W -f '${Package} ${Version}, ' plain kernel")

/** The package's own status on the Node. */
function statusMessage(): string | undefined {
  const type = packageCondition(name, 'os-update')
  const found = cluster.history.now.nodes.get(node)?.status?.conditions?.find((condition) => condition.type === type)
  return found && `${found.status} ${found.reason}: ${found.message}`
}
const complete = async (withinMs: number): Promise<void> => {
  await cluster.history.eventually('it is complete', (view) => isCompleteOn(view, name, [node]), withinMs)
  await cluster.history.eventually('the slot is released', (view) => slotsOf(view, name).length === 0)
}
const isOutOfService = async (): Promise<boolean> =>
  (await serviceStates(cluster.history, node)).some(({ cordoned, ready }) => cordoned || !ready)

let before: string
beforeAll(async () => {
  await cluster.sandbox.must([
    'push',
    join(import.meta.dirname, '../../packages/os-update'),
    'packages/os-update:1.0.0',
  ])
  before = await cluster.host(node).bootId()
  await buildPackages(cluster.host(node), '/srv/old', [
    { name: 'plain', version: '1.0' },
    { name: 'kernel', version: '1.0' },
  ])
  await sh('dpkg -i /srv/old/*.deb')
  await publishPackages(cluster.host(node), { 'first-security': [{ name: 'plain', version: '1.1' }] })
})
afterAll(async () => {
  await sh('rm /etc/apt/sources.list; dpkg --purge plain kernel; rm -rf /srv/old /srv/*-security')
})

test('an update that needs no reboot is installed while the node stays in service', async () => {
  const osUpdate = {
    version: '1.0.0',
    image: `${cluster.registry}/packages/os-update`,
    interrupt: { type: 'reboot', when: 'required' },
    rerunOnRequest: { minInterval: '1h' },
    uninstall: { enabled: true },
  } as const
  await cluster.apply(manifest(name, { interruptionBudget: { count: 1 }, packages: { 'os-update': osUpdate } }), node)
  await complete(40_000)
  expect(await versions()).toBe('kernel 1.0, plain 1.1,')
  expect(publishedState(cluster.history.now.nodes.get(node), name).state).toMatchObject({
    'os-update|1.0.0': { stage: 'config', state: 'complete' },
  })
  expect(statusMessage()).toBe('False NoActionRequired: 0 updates available, 0 of them for security; 0 to install')
  expect([await isOutOfService(), await cluster.host(node).bootId()]).toEqual([false, before])
})

test('an update that needs a reboot is installed once the host finds it, and the drained node reboots once', async () => {
  const needsReboot = 'touch /run/reboot-required; echo kernel >>/run/reboot-required.pkgs'
  await publishPackages(cluster.host(node), {
    'second-security': [{ name: 'kernel', version: '1.1', postinst: needsReboot }],
  })
  expect(await isOutOfService()).toBe(false)
  await sh(`systemctl start ${checkNow}`) // as its timer does every six hours
  await cluster.history.eventually(
    'config runs again',
    ({ nodes }) => publishedState(nodes.get(node), name).status !== 'complete',
    20_000,
  )
  await complete(60_000)
  expect(await versions()).toBe('kernel 1.1, plain 1.1,')
  expect(publishedState(cluster.history.now.nodes.get(node), name)).toMatchObject({
    state: { 'os-update|1.0.0': { stage: 'post-interrupt', state: 'complete' } },
    companion: { reboots: expect.anything() as unknown },
  })
  expect(Object.values(publishedState(cluster.history.now.nodes.get(node), name).companion?.reboots ?? {})).toEqual([
    { done: 1 },
  ])
  await expect
    .poll(statusMessage)
    .toBe('False NoActionRequired: 0 updates available, 0 of them for security; 0 to install')

  const states = await serviceStates(cluster.history, node)
  const after = await cluster.host(node).bootId()
  expect([...new Set(states.map(({ bootId }) => bootId))]).toEqual([before, after])
  expect(uncordonedStates(states)).toEqual([{ cordoned: false, ready: true, bootId: after }])
  expect(isCordoned(cluster.history.now.nodes.get(node))).toBe(false)
  await cluster.history.eventually('the Event is reported', (view) =>
    hasEvent(view, node, 'InterruptCompleted', name, 'reboot'),
  )
  await cluster.history.eventually('the Event is reported', (view) =>
    hasEvent(view, node, 'InterruptRequired', name, 'a reboot is required'),
  )
})

test('a removed os-update leaves nothing but the updates', async () => {
  await cluster.remove(name) // waits until the Node shows nothing of it, conditions included
  expect(await cluster.host(node).exists(statusFile)).toBe(false)
  expect(await sh(`systemctl is-active ${checkNow.replace('.service', '.timer')} || true`)).toBe('inactive')
  expect(await versions()).toBe('kernel 1.1, plain 1.1,')
})
