import { expect, test } from 'vitest'
import { type FleetScene, startScene } from '../../../test/kit/fleet/fleet-scene.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { publishedOf } from '../../schemas/published.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { conditionOf, statusOf } from '../model/skyhook-status.ts'

const packageWith = (value: string) => ({ spec: { packages: { p0a: { configMap: { x: value } } } } })

const skyhookIn = ({ simulation }: FleetScene): Skyhook | undefined =>
  simulation.server.object('skyhooks', undefined, 's') as Skyhook | undefined

const isReady = (scene: FleetScene): boolean => {
  const skyhook = skyhookIn(scene)
  const ready = skyhook && conditionOf(statusOf(skyhook), 'Ready')
  return ready?.status === 'True' && ready.observedGeneration === skyhook?.metadata.generation
}

/** Virtual ms until it holds, looked at every 5 ms. */
async function msUntil(scene: FleetScene, isReached: () => boolean): Promise<number> {
  let ms = 0
  for (; !isReached(); ms += 5) await scene.pass(5)
  return ms
}

async function completeScene(): Promise<FleetScene> {
  const scene = startScene({ skyhooks: { s: { interruptionBudget: { count: 2 } } } })
  for (const name of ['host1', 'host2']) scene.host(name).conditions.change({ stepMs: 10 })
  await scene.until(() => isReady(scene), 'the first rollout')
  await scene.pass(30_000)
  return scene
}

test('a Skyhook is Ready within 100 ms of its last node', async () => {
  const scene = await completeScene()
  scene.editSkyhook('s', packageWith('1'))
  const generation = skyhookIn(scene)?.metadata.generation
  const isCompleteBy = (node: KubernetesNode): boolean => {
    const { status, companion } = publishedOf(node, 's')
    return status === 'complete' && companion?.completedBy?.generation === generation
  }
  const nodesMs = await msUntil(scene, () => ['node1', 'node2'].every((name) => isCompleteBy(scene.node(name))))
  expect(nodesMs).toBeLessThan(900)
  expect(await msUntil(scene, () => isReady(scene))).toBeLessThanOrEqual(100)
})

test('a Skyhook that returns to its previous work waits a second for nodes that have nothing to write', async () => {
  const scene = await completeScene()
  scene.editSkyhook('s', packageWith('1'))
  scene.editSkyhook('s', { spec: { packages: { p0a: { configMap: null } } } })
  expect(await msUntil(scene, () => isReady(scene))).toBeGreaterThanOrEqual(1_000)
})
