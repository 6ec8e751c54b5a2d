import { expect, test } from 'vitest'
import type { SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { endedPods } from './ended-pods.ts'
import { sampleSpec, sampleWorld } from './sample-world.ts'

const pods = '/api/v1/namespaces/apps/pods'
const exists = { operator: 'Exists' }
const named = { ...exists, key: 'node.kubernetes.io/unschedulable' }
type PodOptions = { readonly tolerations?: readonly object[]; readonly kind?: string }

function worldUnderCordon(drain: SkyhookSpec['drain'] = {}, hosts = 2) {
  const world = sampleWorld(endedPods, { spec: sampleSpec({ drain }), hosts })
  world.send('admin', 'POST', '/api/v1/namespaces', { metadata: { name: 'apps' } })
  world.cordon('n1')
  const put = (name: string, { tolerations = [], kind = 'ReplicaSet' }: PodOptions = {}): unknown =>
    world.send('workload', 'POST', pods, {
      metadata: { name, ownerReferences: [{ apiVersion: 'v1', kind, name: 'o', uid: 'o', controller: true }] },
      spec: { nodeName: 'n1', tolerations, containers: [{ name: 'main', image: 'none' }] },
    })
  const end = (name: string): void => {
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'apps' } }
    world.send('agent:n1', 'POST', `${pods}/${name}/eviction`, eviction)
    world.send('workload', 'DELETE', `${pods}/${name}`, { gracePeriodSeconds: 0 })
  }
  const reboot = (): readonly string[] => {
    world.tell('n1', { event: 'rebootRequested', answer: 'accepted', isLost: false })
    return world.violations
  }
  return { world, put, end, reboot }
}

const found = ['n1 asks for a reboot beside the running pod apps/p']

test.each<[string, SkyhookSpec['drain'], PodOptions, readonly string[]]>([
  ['an ordinary pod', {}, {}, found],
  ['a pod that tolerates everything', {}, { tolerations: [exists] }, found],
  ['a pod that tolerates everything and is to be left', { tolerating: 'leave' }, { tolerations: [exists] }, []],
  ['an ordinary pod where others are left', { tolerating: 'leave' }, {}, found],
  ['a pod that names the cordon', {}, { tolerations: [named] }, []],
  ['a pod of a Job that names the cordon', {}, { tolerations: [named], kind: 'Job' }, found],
  ['a pod that names the cordon and is to be waited for', { tolerating: 'wait' }, { tolerations: [named] }, found],
  ['a pod of a DaemonSet', {}, { kind: 'DaemonSet' }, []],
])('a reboot beside %s is judged by the spec', (_, drain, options, expected) => {
  const { world, put, reboot } = worldUnderCordon(drain)
  put('p', options)
  expect(reboot()).toEqual(expected)
  expect(world.checks()).toBe(1)
})

test('a reboot of the only node is allowed where drains are skipped there, and only while it is the only one', async () => {
  const { world, put, reboot } = worldUnderCordon({ singleNode: 'skip' }, 1)
  await world.pass(40)
  put('p')
  expect(reboot()).toEqual([])
  world.register('n9')
  await world.pass(6)
  expect(reboot()).toEqual(found)
})

test('an agent whose requests were slow until a moment ago may have counted a minute ago', async () => {
  const { world, put, reboot } = worldUnderCordon({ singleNode: 'skip' }, 1)
  put('p')
  world.setHealthy('n1', false)
  world.register('n9')
  await world.pass(20)
  world.setHealthy('n1', true)
  await world.pass(15)
  expect(reboot()).toEqual([])
  await world.pass(30)
  expect(reboot()).toEqual(found)
})

test('what came back after an eviction may end where the spec says evict, unless it is of a Job', () => {
  const { put, end, reboot } = worldUnderCordon({ tolerating: 'evict' })
  put('first', { tolerations: [exists] })
  end('first')
  put('again', { tolerations: [exists] })
  expect(reboot()).toEqual([])
  put('p', { tolerations: [exists], kind: 'Job' })
  expect(reboot()).toEqual(found)
})

test('an evicted pod that an older etcd brings back has come back', async () => {
  const { world, put, end, reboot } = worldUnderCordon({ tolerating: 'evict' })
  put('first', { tolerations: [exists] })
  const older = world.backUp()
  await world.pass(1)
  end('first')
  world.restore(older)
  world.sayReason('n1', 'DrainBlocked')
  await world.pass(2)
  expect(reboot()).toEqual([])
})

test('a pod that came after the last look, and a spec that was edited a moment ago, are no fault of the agent', async () => {
  const { world, put, reboot } = worldUnderCordon({ tolerating: 'leave' })
  put('p', { tolerations: [exists] })
  world.editSkyhook({ spec: { drain: { tolerating: 'wait' } } })
  expect(reboot()).toEqual([])
  await world.pass(6)
  world.send('workload', 'DELETE', `${pods}/p`, { gracePeriodSeconds: 0 })
  world.send('agent:n1', 'GET', '/api/v1/pods')
  put('p', { tolerations: [exists] })
  expect(reboot()).toEqual([])
  world.send('agent:n1', 'GET', '/api/v1/pods')
  expect(reboot()).toEqual(found)
})
