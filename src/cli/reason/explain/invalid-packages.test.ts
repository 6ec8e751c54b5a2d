import { expect, test } from 'vitest'
import { type FleetScene, startScene } from '../../../../test/kit/fleet/fleet-scene.ts'
import { commandLine } from '../../../../test/kit/tool/command-line.ts'
import { reasonKey, statusKey } from '../../../schemas/annotations.ts'
import type { NodeExplanation } from './explain-node.ts'

async function explanationIn({ simulation, transport }: FleetScene, node: string): Promise<NodeExplanation> {
  const tool = commandLine({ clock: simulation.clock, client: transport })
  const { stdout } = await tool.run(`explain s ${node} -n skyhook -o json`)
  const [found] = (JSON.parse(stdout) as { items: readonly NodeExplanation[] }).items
  if (found === undefined) throw new Error(`no explanation of ${node}`)
  return found
}

const image = 'registry.test/p0a'
const reference = { name: 'CPUS', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } }

test('a node with an invalid spec waits for no slot, whether one is free or not', async () => {
  const packages = { p0a: { version: '1.0.0', image, interrupt: { type: 'reboot' as const } } }
  const scene = startScene({ skyhooks: { s: { packages } } })
  scene.host('host2').conditions.change({ fetch: { durationMs: 60_000 } })
  scene.host('host1').conditions.change({ stepMs: 900_000 })
  await scene.until(() => scene.annotation('node1', statusKey('s')) === 'in_progress', 'work on node1')
  scene.editSkyhook('s', { spec: { packages: { p0a: { env: [reference] } } } })
  const isInvalid = (node: string): boolean => scene.annotation(node, reasonKey('s'))?.includes('InvalidSpec') === true
  await scene.until(() => isInvalid('node2'), 'an invalid spec')
  const { verdict, gates } = await explanationIn(scene, 'node2')
  expect(verdict).toMatchObject({ gate: 'package' })
  expect(gates.find(({ gate }) => gate === 'slot')).toMatchObject({ verdict: 'ahead', findings: [] })
})

test('a package is not blamed for another one of the same image and version', async () => {
  const good = { version: '1.0.0', image }
  const secretKeyRef = { name: 'nope', key: 'x' }
  const zbroken = { ...good, env: [{ name: 'TOKEN', valueFrom: { secretKeyRef } }] }
  const scene = startScene({ nodes: [{ name: 'host1' }], skyhooks: { s: { packages: { good, zbroken } } } })
  await scene.until(
    () => scene.annotation('node1', reasonKey('s'))?.includes('ReferenceMissing') === true,
    'a missing Secret',
  )
  await scene.pass(60_000)
  const { gates } = await explanationIn(scene, 'node1')
  const messages = gates.flatMap(({ findings }) => findings.map(({ message }) => message))
  expect(messages.join('\n')).toContain('zbroken')
  expect(messages.filter((message) => message.includes('good'))).toEqual([])
})
