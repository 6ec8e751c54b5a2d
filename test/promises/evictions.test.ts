import { expect, test } from 'vitest'
import { evictions } from './evictions.ts'
import { sampleSpec, sampleWorld } from './sample-world.ts'

const pods = (namespace: string): string => `/api/v1/namespaces/${namespace}/pods`

type PodOptions = { readonly labels?: Record<string, string>; readonly namespace?: string; readonly node?: string }

function worldWithPod({ labels = {}, namespace = 'default', node = 'n1' }: PodOptions = {}) {
  const world = sampleWorld(evictions, {
    spec: sampleSpec({ podNonInterruptLabels: { matchLabels: { keep: 'yes' } } }),
  })
  const spec = { nodeName: node, containers: [{ name: 'main', image: 'none' }] }
  world.send('workload', 'POST', pods(namespace), { metadata: { name: 'p', labels }, spec })
  const evict = (client = 'agent:n1'): unknown =>
    world.send(client, 'POST', `${pods(namespace)}/p/eviction`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'p', namespace },
    })
  return { world, evict, listPods: () => world.send('agent:n1', 'GET', '/api/v1/pods') }
}

test('an eviction under a cordon is allowed', () => {
  const { world, evict } = worldWithPod()
  world.cordon('n1')
  evict()
  expect([world.violations, world.checks()]).toEqual([[], 1])
})

test('an eviction without a cordon is found', () => {
  const { world, evict } = worldWithPod()
  evict()
  expect(world.violations).toEqual(['n1 evicts default/p without a cordon'])
})

test('an eviction of a protected pod is found', () => {
  const { world, evict } = worldWithPod({ labels: { keep: 'yes' } })
  world.cordon('n1')
  evict()
  expect(world.violations).toEqual(['n1 evicts the protected pod default/p'])
})

test('an eviction of a pod that no drain may touch is found', () => {
  const { world, evict } = worldWithPod({ namespace: 'kube-system' })
  world.cordon('n1')
  evict()
  expect(world.violations).toEqual(['n1 evicts kube-system/p, which no drain may touch'])
})

test('an eviction from another node is found', () => {
  const { world, evict } = worldWithPod({ node: 'n2' })
  world.cordon('n1')
  evict()
  expect(world.violations).toEqual(['n1 evicts default/p of another node'])
})

test('a pod that its owner deletes is no concern of the rule', () => {
  const { world, evict } = worldWithPod({ labels: { keep: 'yes' } })
  evict('workload')
  expect([world.violations, world.checks()]).toEqual([[], 0])
})

test('a deletion that nobody asked for is found', () => {
  const { world } = worldWithPod()
  world.cordon('n1')
  world.send('agent:n1', 'DELETE', `${pods('default')}/p`)
  expect(world.violations).toEqual(['n1 deletes the pod p instead of evicting it'])
})

test('an interrupt beside a protected pod that the last look showed is found', () => {
  const { world, listPods } = worldWithPod({ labels: { keep: 'yes' } })
  world.cordon('n1')
  listPods()
  world.tell('n1', { event: 'restartRequested', unit: 'x.service' })
  expect(world.violations).toEqual(['n1 restarts x.service while the protected pod p runs'])
})

test('an interrupt beside a protected pod that came after the last look is allowed', () => {
  const { world, listPods } = worldWithPod()
  world.cordon('n1')
  listPods()
  const spec = { nodeName: 'n1', containers: [{ name: 'main', image: 'none' }] }
  world.send('workload', 'POST', pods('default'), { metadata: { name: 'q', labels: { keep: 'yes' } }, spec })
  world.tell('n1', { event: 'restartRequested', unit: 'x.service' })
  expect([world.violations, world.checks()]).toEqual([[], 1])
})

test('an eviction after an older copy of etcd took the cordon off is allowed until a second after the agent wrote its Node', async () => {
  const { world, evict } = worldWithPod()
  const backup = world.backUp()
  world.cordon('n1')
  world.restore(backup)
  evict()
  expect(world.violations).toEqual([])

  const next = worldWithPod()
  next.world.restore(next.world.backUp())
  next.world.annotate('n1', { seen: 'true' })
  await next.world.pass(1)
  next.evict()
  expect(next.world.violations).toHaveLength(1)
})
