import { expect, test } from 'vitest'
import { sampleSpec, sampleWorld } from './sample-world.ts'
import { slotsKept } from './slots-kept.ts'

type World = ReturnType<typeof sampleWorld>
const say = (world: World, status: string): unknown => world.annotate('n1', { 'skyhook.nvidia.com/status_s': status })

test('a slot that goes back after the package is complete is allowed once the Node says so, or why not', () => {
  const world = sampleWorld(slotsKept)
  world.take('n1')
  world.complete('n1')
  say(world, 'in_progress')
  world.release('agent:n1')
  expect(world.violations).toEqual([expect.stringContaining('its Node says in_progress of s, which is complete')])
  world.take('n1')
  world.run('n1', 'config-check')
  world.sayReason('n1', 'Paused')
  world.release('agent:n1')
  world.take('n1')
  world.run('n1', 'config-check')
  world.sayNothing('n1')
  say(world, 'complete')
  world.release('agent:n1')
  expect([world.violations.length, world.checks()]).toEqual([1, 3])
})

test('a slot may go after the Node has said complete, although an edit asks for more by then', () => {
  const world = sampleWorld(slotsKept)
  world.take('n1')
  world.complete('n1')
  say(world, 'complete')
  say(world, 'in_progress')
  world.release('agent:n1')
  expect([world.violations, world.checks()]).toEqual([[], 1])
})

test('a slot under which nothing ran may go whatever the Node says', () => {
  const world = sampleWorld(slotsKept)
  world.take('n1')
  world.complete('n1')
  say(world, 'complete')
  world.release('agent:n1')
  world.take('n1')
  say(world, 'in_progress')
  world.release('agent:n1')
  expect([world.violations, world.checks()]).toEqual([[], 2])
})

test('a slot that goes while a step of a Skyhook that is gone runs is found', () => {
  const world = sampleWorld(slotsKept)
  world.take('n1')
  const skyhookUid = world.server.object('skyhooks', undefined, 's')?.metadata.uid
  world.tell('n1', { event: 'stepStarted', step: world.step('apply', { skyhookUid }) })
  const slot = world.server.objects('leases')[0]?.metadata.name
  world.send('admin', 'DELETE', '/apis/skyhook.nvidia.com/v1alpha1/skyhooks/s')
  world.send('agent:n1', 'DELETE', `/apis/coordination.k8s.io/v1/namespaces/skyhook/leases/${slot}`)
  expect(world.violations).toEqual([expect.stringContaining('while it runs a apply of s')])
})

test('a slot that goes back after the first step is found', () => {
  const world = sampleWorld(slotsKept)
  world.take('n1')
  world.run('n1', 'apply')
  world.release('agent:n1')
  expect(world.violations).toEqual([expect.stringContaining('while it is half changed: s/a')])
})

test('a slot that goes back before the uncordon is found', () => {
  const world = sampleWorld(slotsKept)
  world.take('n1')
  world.cordon('n1')
  world.release('agent:n1')
  expect(world.violations).toEqual([expect.stringContaining('carries the cordon mark of s')])
})

test('a slot that a person deletes is no fault of the agent', () => {
  const world = sampleWorld(slotsKept)
  world.take('n1')
  world.run('n1', 'apply')
  world.release('admin')
  expect(world.violations).toEqual([])
})

test('the twin of a slot may go while the host is half changed', () => {
  const world = sampleWorld(slotsKept)
  world.take('n1', 0)
  world.take('n1', 1)
  world.run('n1', 'apply')
  world.release('agent:n1', 1)
  expect(world.violations).toEqual([])
})

test('the slot of a host that left the selector may go between two steps, and not during one', () => {
  const world = sampleWorld(slotsKept)
  world.take('n1')
  const end = world.start('n1')
  world.label('n1', { pool: 'y' })
  end()
  world.release('agent:n1')
  expect(world.violations).toEqual([])
  world.label('n2', { pool: 'y' })
  world.take('n2')
  world.start('n2')
  world.release('agent:n2')
  expect(world.violations).toHaveLength(1)
})

test('the slot of a host may go once its Skyhook is being deleted and asks for no uninstall', () => {
  const world = sampleWorld(slotsKept)
  world.take('n1')
  const end = world.start('n1')
  world.editSkyhook({ metadata: { finalizers: ['example.com/theirs'] } })
  world.send('admin', 'DELETE', '/apis/skyhook.nvidia.com/v1alpha1/skyhooks/s')
  end()
  world.release('agent:n1')
  expect(world.violations).toEqual([])
})

test('the slot of a host whose state a person cleared may go', () => {
  const world = sampleWorld(slotsKept)
  world.annotate('n1', { 'skyhook.nvidia.com/nodeState_s': '{}' })
  world.take('n1')
  world.run('n1', 'apply')
  world.annotate('n1', { 'skyhook.nvidia.com/nodeState_s': null }, 'admin')
  world.release('agent:n1')
  expect(world.violations).toEqual([])
})

const reboot = {
  packages: { a: { version: '1.0.0', image: 'registry.test/a', interrupt: { type: 'reboot' as const } } },
}

test('the slot of an installation with an interrupt may go after post-interrupt only', () => {
  const world = sampleWorld(slotsKept, { spec: sampleSpec(reboot) })
  world.take('n1')
  world.complete('n1')
  world.release('agent:n1')
  expect(world.violations).toHaveLength(1)

  const next = sampleWorld(slotsKept, { spec: sampleSpec(reboot) })
  next.take('n1')
  next.complete('n1')
  next.tell('n1', { event: 'rebootRequested', answer: 'accepted', isLost: false })
  for (const mode of ['post-interrupt', 'post-interrupt-check']) next.run('n1', mode)
  say(next, 'complete')
  next.release('agent:n1')
  expect(next.violations).toEqual([])
})

test('the slot of a new configuration may go after config, also where the package has an interrupt', () => {
  const world = sampleWorld(slotsKept, { spec: sampleSpec(reboot) })
  world.take('n1')
  world.complete('n1')
  world.tell('n1', { event: 'rebootRequested', answer: 'accepted', isLost: false })
  for (const mode of ['post-interrupt', 'post-interrupt-check']) world.run('n1', mode)
  for (const mode of ['config', 'config-check']) world.run('n1', mode)
  say(world, 'complete')
  world.release('agent:n1')
  expect(world.violations).toEqual([])
})

test('the slot of a package that only its configuration installs may go after post-interrupt only', () => {
  const world = sampleWorld(slotsKept, { spec: sampleSpec(reboot) })
  world.take('n1')
  for (const mode of ['config', 'config-check']) world.run('n1', mode)
  world.release('agent:n1')
  expect(world.violations).toHaveLength(1)
})

test('the slot of a joining node may go once its work has one that counts', () => {
  const world = sampleWorld(slotsKept)
  world.take('n1', 0, 'bootstrap')
  world.run('n1', 'apply')
  world.take('n1')
  world.release('agent:n1', 0, 'bootstrap')
  expect([world.violations, world.checks()]).toEqual([[], 0])
  world.release('agent:n1')
  expect(world.violations).toHaveLength(1)
})

test('an agent that cannot know of a mark which an older copy of etcd brought back may release its slot', () => {
  const world = sampleWorld(slotsKept)
  world.take('n1')
  world.cordon('n1')
  world.restore(world.backUp())
  world.release('agent:n1')
  expect(world.violations).toEqual([])
})
