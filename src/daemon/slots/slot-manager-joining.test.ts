/** Slots of nodes that join the cluster, which have their own budget. */
import { expect, test } from 'vitest'
import { nodesPath } from '../../../test/kit/api-server/sample-server.ts'
import {
  heldBy,
  isHolding,
  runtimeRequiredTaint,
  startSlotManagerScene,
  type TestedManager,
} from '../../../test/kit/slots/slot-manager-scene.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'

/** The Node n1 has the taint of nodes that join. */
async function startJoiningScene() {
  const scene = await startSlotManagerScene()
  const putTaints = (name: string, taints: readonly object[]): void =>
    void scene.api.put(nodesPath, { metadata: { name }, spec: { taints } })
  putTaints('n1', [runtimeRequiredTaint])
  scene.putNode('n1', scene.api.get(nodesPath, 'n1') as KubernetesNode)
  return { ...scene, putTaints }
}

const kindsOf = (manager: TestedManager): string[] => manager.kinds().map(({ kind }) => kind)

test('joining nodes have a budget of their own beside that of the others', async () => {
  const { first, second, putSkyhook, readyManagerOf } = await startJoiningScene()
  const view = putSkyhook()
  const [third, fourth] = [await readyManagerOf('n3'), await readyManagerOf('n4')]
  await first.acquire(view, 'working', false)
  await second.acquire(view, 'working', false, true)
  await third.acquire(view, 'working', false, true)
  await fourth.acquire(view, 'working', false)
  expect([first, second, third, fourth].map(kindsOf)).toEqual([['slot'], ['bootstrap'], [], []])
  expect([heldBy(second).isBootstrap, heldBy(first).isBootstrap]).toEqual([true, undefined])
  expect([third.denials().get('s')?.message, fourth.denials().get('s')?.message]).toEqual([
    'the budget of 1 joining node is used up',
    'the budget of 1 node is used up',
  ])
  await second.release(heldBy(second))
  await third.acquire(view, 'working', false, true)
  expect(kindsOf(third)).toEqual(['bootstrap'])
})

test('a joining node starts under a count of the spec while the budget is 0', async () => {
  const { first, second, putSkyhook } = await startJoiningScene()
  const view = putSkyhook({ interruptionBudget: { count: 0 }, bootstrap: { count: 1 } })
  await first.acquire(view, 'working', false, true)
  await second.acquire(view, 'working', false)
  expect([kindsOf(first), kindsOf(second)]).toEqual([['bootstrap'], []])
})

test('no joining node starts under a budget of 0, and none asks', async () => {
  const { first, putSkyhook, listCount } = await startJoiningScene()
  const before = listCount()
  await first.acquire(putSkyhook({ interruptionBudget: { count: 0 } }), 'working', false, true)
  expect([kindsOf(first), first.denials().get('s')?.message, listCount()]).toEqual([
    [],
    'the budget for joining nodes is 0',
    before,
  ])
})

test('a joining node without any budget is counted like all others', async () => {
  const { first, putSkyhook } = await startJoiningScene()
  await first.acquire(putSkyhook({ interruptionBudget: {} }), 'working', false, true)
  expect(kindsOf(first)).toEqual(['unlimited'])
})

test.each([
  ['of the census, by a second LIST', {}, 1],
  ['of the spec, without another LIST', { bootstrap: { count: 2 } }, 0],
])('the slot of a joining node is confirmed by the count %s', async (_, spec, lists) => {
  const { first, putSkyhook, listCount } = await startJoiningScene()
  const view = putSkyhook(spec)
  await first.acquire(view, 'working', false, true)
  const before = listCount()
  await first.confirm(heldBy(first), view)
  expect([heldBy(first).ownership, listCount() - before]).toEqual(['confirmed', lists])
})

type JoiningScene = Awaited<ReturnType<typeof startJoiningScene>>

test.each<[string, (scene: JoiningScene) => void, string]>([
  [
    'whose taint is gone',
    ({ putTaints }) => putTaints('n1', []),
    'Node n1 has lost the taint skyhook.nvidia.com, it no longer joins',
  ],
  ['whose Node is gone', ({ api }) => api.remove(nodesPath, 'n1'), 'Node n1 was deleted'],
])('a joining node %s before its watch shows it gives its slot back', async (_, change, message) => {
  const scene = await startJoiningScene()
  const { first, putSkyhook, leaseCount } = scene
  const view = putSkyhook({ bootstrap: { count: 2 } })
  await first.acquire(view, 'working', false, true)
  change(scene)
  await first.confirm(heldBy(first), view)
  expect([isHolding(first), leaseCount(), first.denials().get('s')?.message]).toEqual([false, 0, message])
})

test('the slot of a joining node is given back when its budget falls', async () => {
  const { first, putSkyhook, leaseCount } = await startJoiningScene()
  await first.acquire(putSkyhook(), 'working', false, true)
  const view = putSkyhook({ bootstrap: { count: 0 } })
  await first.confirm(heldBy(first), view)
  expect([isHolding(first), leaseCount()]).toEqual([false, 0])
})
