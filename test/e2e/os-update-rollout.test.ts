/** The example of packages/os-update/README.md, as it is printed: one node at a time updates and reboots. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { parse } from 'yaml'
import { buildPackages, publishPackages } from '../kit/cluster/package-repositories.ts'
import { nodeNames, uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { exceedsOutOfService, isCompleteOn, serviceStates } from '../kit/cluster/node-availability.ts'
import { manifest, type Manifest } from '../kit/cluster/skyhooks.ts'
import { overBudget, slotsOf } from '../kit/cluster/slots.ts'

const cluster = useCluster()
const folder = join(import.meta.dirname, '../../packages/os-update')
const name = uniqueName('updates')
const bootsWithinMs = 150_000
const boots = new Map<string, string>()

function example(): Manifest {
  const [, yaml = ''] = /```yaml\n(.*?)```/s.exec(readFileSync(join(folder, 'README.md'), 'utf8')) ?? []
  return parse(yaml.replaceAll('registry.example.com', cluster.registry)) as Manifest
}

beforeAll(async () => {
  await cluster.sandbox.must(['push', folder, 'packages/os-update:1.0.0'])
  await Promise.all(
    nodeNames.map(async (node) => {
      const host = cluster.host(node)
      boots.set(node, await host.bootId())
      await buildPackages(host, '/srv/old', [{ name: 'firmware', version: '1.0' }])
      await host.exec('sh', '-c', 'dpkg -i /srv/old/*.deb')
      const postinst = 'touch /run/reboot-required'
      await publishPackages(host, { 'third-security': [{ name: 'firmware', version: '1.1', postinst }] })
    }),
  )
})
afterAll(async () => {
  const clean = 'rm -f /etc/apt/sources.list; dpkg --purge firmware; rm -rf /srv/old /srv/*-security'
  await Promise.all(nodeNames.map(async (node) => await cluster.host(node).exec('sh', '-c', clean)))
})

test('the example of os-update updates and reboots three nodes, of which at most one is out of service at any moment', async () => {
  const { history } = cluster
  await cluster.apply(manifest(name, example().spec), ...nodeNames)
  await history.eventually('all are complete', (view) => isCompleteOn(view, name, nodeNames), bootsWithinMs)
  await history.eventually('every slot is released', (view) => slotsOf(view, name).length === 0)
  for (const node of nodeNames) {
    const host = cluster.host(node)
    expect(await host.exec('dpkg-query', '-W', '-f', '${Version}', 'firmware')).toBe('1.1')
    const seen = (await serviceStates(history, node)).map(({ bootId }) => bootId)
    expect([...new Set(seen)]).toEqual([boots.get(node), await host.bootId()])
  }
  await history.never('two slots', overBudget(name, 1))
  await history.never('two nodes out of service', exceedsOutOfService(1))
})
