import { expect, test } from 'vitest'
import { cordonKey } from '../../src/schemas/annotations.ts'
import { skyhooksPath, skyhookTypeMeta } from '../../src/schemas/api.ts'
import { finalizerName, type Interrupt } from '../../src/schemas/skyhook.ts'
import { sampleSpec, sampleWorld } from './sample-world.ts'
import { budget } from './budget.ts'

const worldWith = (count: number | undefined, hosts = 3) =>
  sampleWorld(budget, { hosts, spec: sampleSpec({ interruptionBudget: count === undefined ? {} : { count } }) })

test('two hosts out under a budget of one are too many', () => {
  const world = worldWith(1)
  world.take('n1', 0)
  world.start('n1')
  world.take('n2', 1)
  world.start('n2')
  expect(world.violations).toEqual([
    'n2 went out for s on its read at 0 ms, when the budget was 1 and 1 others were out: n1',
  ])
})

test('two hosts out under a budget of two are allowed', () => {
  const world = worldWith(2)
  for (const [index, name] of ['n1', 'n2'].entries()) {
    world.take(name, index)
    world.start(name)
  }
  expect([world.violations, world.checks()]).toEqual([[], 2])
})

/** The Skyhook has a policy whose compartments `a` and `__default__` allow one host each. */
function worldWithPolicy(bootstrap?: { count: number }) {
  const world = sampleWorld(budget, {
    hosts: 3,
    spec: sampleSpec({ deploymentPolicy: 'careful', ...(bootstrap && { bootstrap }) }),
  })
  const path = '/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies'
  const one = { budget: { count: 1 }, strategy: { fixed: {} } }
  const compartment = { name: 'a', selector: { matchLabels: { a: 'true' } }, ...one }
  const body = { metadata: { name: 'careful' }, spec: { default: one, compartments: [compartment] } }
  world.send('admin', 'POST', path, body)
  const removeCompartment = () =>
    void world.send('admin', 'PATCH', `${path}/careful`, {
      spec: { compartments: [], default: { budget: { count: 1 } } },
    })
  return { ...world, removeCompartment }
}

test('two hosts out in a compartment of one are too many, although the policy allows two in all', () => {
  const world = worldWithPolicy()
  for (const [index, name] of ['n1', 'n2'].entries()) {
    world.take(name, index, 'slot', 'a')
    world.start(name)
  }
  expect(world.violations).toEqual([expect.stringContaining('n2 went out for s in compartment a on its read')])
})

test('the hosts of two compartments do not count for each other', () => {
  const world = worldWithPolicy()
  world.take('n1', 0, 'slot', 'a')
  world.start('n1')
  world.take('n2', 0, 'slot', '__default__')
  world.start('n2')
  expect([world.violations, world.checks()]).toEqual([[], 2])
})

test('a host of a compartment that the policy no longer has counts in the others', () => {
  const world = worldWithPolicy()
  world.take('n1', 0, 'slot', 'a')
  world.start('n1')
  world.removeCompartment()
  world.take('n2', 0, 'slot', '__default__')
  world.start('n2')
  expect(world.violations).toEqual([expect.stringContaining('n2 went out for s in compartment __default__')])
})

test('a host that lost its slot counts in the compartment of the next one', () => {
  const world = worldWithPolicy()
  world.take('n1', 0, 'slot', 'a')
  world.start('n1')
  world.create('n1', 0, 'slot', '__default__')
  world.take('n2', 1, 'slot', 'a')
  world.start('n2')
  expect(world.violations).toEqual([])
})

test.each<[string, string, number]>([
  ['of one compartment beyond bootstrap.count are too many', 'a', 1],
  ['of two compartments have bootstrap.count each', '__default__', 0],
])('joining hosts %s', (_, compartment, violations) => {
  const world = worldWithPolicy({ count: 1 })
  for (const [index, name] of ['n1', 'n2'].entries()) {
    world.taint(name, true)
    world.take(name, index, 'bootstrap', index === 0 ? 'a' : compartment)
    world.start(name)
  }
  expect(world.violations).toHaveLength(violations)
})

test('hosts without a budget go out together', () => {
  const world = worldWith(undefined)
  for (const [index, name] of ['n1', 'n2', 'n3'].entries()) {
    world.take(name, index)
    world.start(name)
  }
  expect(world.violations).toEqual([])
})

test('a cordon mark counts before the first step', () => {
  const world = worldWith(1)
  world.take('n1', 0)
  world.cordon('n1')
  world.take('n2', 1)
  world.start('n2')
  expect(world.violations).toHaveLength(1)
})

test('a host that read earlier and goes out later counts for one that read in between', () => {
  const world = worldWith(1)
  world.take('n1', 0)
  world.take('n2', 1)
  world.start('n2')
  expect(world.violations).toEqual([])
  world.start('n1')
  expect(world.violations).toEqual([expect.stringContaining('n2 went out')])
})

test('a budget that falls while a host is out does not forbid it', () => {
  const world = worldWith(2)
  for (const [index, name] of ['n1', 'n2'].entries()) {
    world.take(name, index)
    world.start(name)
  }
  world.editSkyhook({ spec: { interruptionBudget: { count: 1 } } })
  expect(world.violations).toEqual([])
})

test('a host that reads after the budget fell may not go out beside another', () => {
  const world = worldWith(2)
  world.take('n1', 0)
  world.start('n1')
  world.editSkyhook({ spec: { interruptionBudget: { count: 1 } } })
  world.take('n2', 1)
  world.start('n2')
  expect(world.violations).toHaveLength(1)
})

test('a host that is done makes room', () => {
  const world = worldWith(1)
  world.take('n1', 0)
  world.complete('n1')
  world.release('agent:n1', 0)
  world.take('n2', 0)
  world.start('n2')
  expect(world.violations).toEqual([])
})

test('a host between two packages counts while it keeps its slot', () => {
  const world = worldWith(1)
  world.take('n1', 0)
  world.complete('n1')
  world.take('n2', 1)
  world.start('n2')
  expect(world.violations).toEqual([])
  world.start('n1')
  expect(world.violations).toEqual([expect.stringContaining('n2 went out')])
})

test('a host that goes out without any read is found', () => {
  const world = worldWith(1)
  world.start('n1')
  expect(world.violations).toEqual(['n1 goes out for s (stepStarted) without a confirming read'])
})

test('a host whose slot a person deleted does not count until its agent has a slot again', () => {
  const world = worldWith(1)
  world.take('n1', 0)
  world.start('n1')
  world.release('admin', 0)
  world.take('n2', 0)
  world.start('n2')
  expect(world.violations).toEqual([])
})

test('a host whose slot a person deleted counts again after five minutes', async () => {
  const world = worldWith(1)
  world.take('n1', 0)
  world.start('n1')
  world.release('admin', 0)
  await world.pass(302)
  world.take('n2', 0)
  world.start('n2')
  expect(world.violations).toHaveLength(1)
})

test('a host that counts again after a slot of its own is one too many for the next', () => {
  const world = worldWith(1)
  world.take('n1', 0)
  world.start('n1')
  world.release('admin', 0)
  world.take('n1', 0)
  world.take('n2', 1)
  world.start('n2')
  expect(world.violations).toHaveLength(1)
})

/** The slot of n1, which is out, is deleted and taken again, while n2 asks for one. */
function takenAgain(world: ReturnType<typeof worldWith>, listSlots: () => void, isListedLate = false): void {
  world.take('n1', 0)
  world.start('n1')
  world.release('admin', 0)
  if (!isListedLate) listSlots()
  world.create('n1', 0)
  if (isListedLate) listSlots()
  world.create('n2', 1)
  world.readSkyhook('n2')
  world.start('n2')
}

test.each([
  ['of the scope', 'skyhook.nvidia.com/name=s'],
  ['of the scope and the control plane', 'skyhook.nvidia.com/name in (,s)'],
])('a host whose slot a person deleted does not count for an admission by a LIST %s from meanwhile', (_, selector) => {
  const world = worldWith(1)
  takenAgain(world, () => world.listSlots('n2', selector))
  expect(world.violations).toEqual([])
})

test('a host whose slot a person deleted counts for an admission by a LIST that shows its next slot', () => {
  const world = worldWith(1)
  takenAgain(world, () => world.listSlots('n2'), true)
  expect(world.violations).toEqual([expect.stringContaining('n2 went out')])
})

test('hosts do not count after etcd was restored until their agents have slots again', () => {
  const world = worldWith(1)
  const backup = world.backUp()
  world.take('n1', 0)
  world.start('n1')
  world.restore(backup)
  world.take('n2', 0)
  world.start('n2')
  expect(world.violations).toEqual([])
})

test('a host that gives its slot back half changed still counts', () => {
  const world = worldWith(1)
  world.take('n1', 0)
  world.start('n1')
  world.release('agent:n1', 0)
  world.take('n2', 0)
  world.start('n2')
  expect(world.violations).toHaveLength(1)
})

test('a host that leaves the selector half changed counts no more once its step has ended', () => {
  const world = worldWith(1)
  world.take('n1', 0)
  const end = world.start('n1')
  world.label('n1', { pool: 'y' })
  world.take('n2', 1)
  world.start('n2')
  expect(world.violations).toHaveLength(1)
  world.violations.length = 0
  end()
  world.take('n3', 2)
  world.start('n3')
  expect(world.violations.filter((one) => one.includes('n3') && one.includes('n1'))).toEqual([])
})

test('a host that leaves the selector between its reboot and its last stage is not out for a restart of another Skyhook', () => {
  const asking = (interrupt: Interrupt) => ({ a: { version: '1.0.0', image: 'registry.test/a', interrupt } })
  const world = sampleWorld(budget, { spec: sampleSpec({ packages: asking({ type: 'reboot' }) }) })
  const packages = asking({ type: 'service', services: ['web'] })
  const spec = { nodeSelectors: { matchLabels: { role: 'x' } }, packages }
  world.send('admin', 'POST', skyhooksPath, { ...skyhookTypeMeta, metadata: { name: 't' }, spec })
  world.label('n1', { role: 'x' })
  world.take('n1', 0)
  world.complete('n1')
  world.run('n1', 'config', { skyhook: 't' })
  world.annotate('n1', { [cordonKey('s')]: 'true', [cordonKey('t')]: 'true' })
  world.tell('n1', { event: 'restartRequested', unit: 'web.service' })
  world.label('n1', { pool: 'y' })
  world.annotate('n1', { [cordonKey('s')]: null })
  world.release('agent:n1', 0)
  world.take('n2', 0)
  world.start('n2')
  expect(world.violations.filter((one) => one.includes(' for s'))).toEqual([])
})

/** It left the selector half changed and gave its slot back. */
function worldWithLeft(): ReturnType<typeof worldWith> {
  const world = worldWith(1)
  world.take('n1', 0)
  const end = world.start('n1')
  world.label('n1', { pool: 'y' })
  end()
  world.release('agent:n1', 0)
  world.label('n1', { pool: 'x' })
  return world
}

test('a host that comes back half changed does not go out without a confirming read', () => {
  const world = worldWithLeft()
  world.start('n1')
  expect(world.violations).toEqual(['n1 goes out for s (stepStarted) without a confirming read'])
})

test('a host that comes back half changed is one too many beside another', () => {
  const world = worldWithLeft()
  world.take('n2', 0)
  world.start('n2')
  world.take('n1', 1)
  world.start('n1')
  expect(world.violations).toEqual([expect.stringContaining('n1 went out')])
})

test('a host that comes back half changed goes out where the budget allows it', () => {
  const world = worldWithLeft()
  world.take('n1', 0)
  world.start('n1')
  expect([world.violations, world.checks()]).toEqual([[], 2])
})

const ofPercent = (percent: number) =>
  sampleWorld(budget, { hosts: 4, spec: sampleSpec({ interruptionBudget: { percent } }) })

/** n1 and n2 go out: half of four nodes, and all of two. */
function halfGoesOut(world: ReturnType<typeof ofPercent>): readonly string[] {
  for (const [index, name] of ['n1', 'n2'].entries()) {
    world.take(name, index)
    world.start(name)
  }
  return world.violations
}

test('a percentage is of the Nodes that exist', () => {
  expect(halfGoesOut(ofPercent(50))).toEqual([])
  expect(halfGoesOut(ofPercent(49))).toEqual([expect.stringContaining('the budget was 1 and 1 others were out')])
})

test('a percentage is never of Nodes that are gone, whatever has been counted', async () => {
  const world = ofPercent(50)
  for (const name of ['n3', 'n4']) world.deleteNode(name)
  await world.pass(6)
  expect(halfGoesOut(world)).toEqual([expect.stringContaining('n2 went out')])
})

test.each([
  ['may be of Nodes that have just left the selector', 30, 0],
  ['is not of Nodes that left the selector long ago', 350, 1],
])('a percentage %s', async (_, seconds, violations) => {
  const world = ofPercent(50)
  await world.pass(1)
  for (const name of ['n3', 'n4']) world.label(name, { pool: 'y' })
  await world.pass(seconds)
  expect(halfGoesOut(world)).toHaveLength(violations)
})

test('a percentage may be of Nodes that left the selector long ago while no agent could count', async () => {
  const world = ofPercent(50)
  await world.pass(1)
  for (const name of ['n3', 'n4']) world.label(name, { pool: 'y' })
  for (const name of ['n1', 'n2', 'n3', 'n4']) world.setHealthy(name, false)
  await world.pass(350)
  expect(halfGoesOut(world)).toEqual([])
})

test('joining nodes count among themselves', () => {
  const world = worldWith(1)
  for (const name of ['n1', 'n2']) world.taint(name, true)
  world.take('n1', 0, 'bootstrap')
  world.start('n1')
  world.take('n3')
  world.start('n3')
  expect(world.violations).toEqual([])
  world.take('n2', 1, 'bootstrap')
  world.start('n2')
  expect(world.violations).toEqual([expect.stringContaining('n2 went out')])
})

test('the spec may name a budget for joining nodes', () => {
  const world = sampleWorld(budget, {
    hosts: 2,
    spec: sampleSpec({ interruptionBudget: { count: 1 }, bootstrap: { count: 2 } }),
  })
  for (const [index, name] of ['n1', 'n2'].entries()) {
    world.taint(name, true)
    world.take(name, index, 'bootstrap')
    world.start(name)
  }
  expect([world.violations, world.checks()]).toEqual([[], 2])
})

test('work under way on a joining node counts once its taint is gone and it has a slot that says so', () => {
  const world = worldWith(1)
  world.taint('n1', true)
  world.take('n1', 0, 'bootstrap')
  world.start('n1')
  world.taint('n1', false)
  world.take('n2')
  world.start('n2')
  expect(world.violations).toEqual([])
  world.take('n1', 1)
  world.take('n3', 2)
  world.start('n3')
  expect(world.violations).toEqual([expect.stringContaining('2 others were out: n1, n2')])
})

test.each([
  ['lifts its taint itself is one too many beside a node in service', 1, ['n1 went out for s on its read']],
  ['may lift its taint where the budget has a place for it', 2, []],
])('a joining host that %s', (_, count, violations) => {
  const world = worldWith(count)
  world.taint('n1', true)
  world.take('n1', 0, 'bootstrap')
  world.take('n2')
  for (const name of ['n1', 'n2']) world.start(name)
  world.taint('n1', false, 'agent:n1')
  expect(world.violations).toEqual(violations.map((text) => expect.stringContaining(text)))
})

test.each([
  ['beside a node in service while it uninstalls what required its taint', 'deleted', 0],
  ['beside a node in service until its static pods run after a boot', 'booted', 0],
  ['with the nodes in service if it only has to lift its taint', 'complete', 1],
  ['with the nodes in service once its static pods run', 'running', 1],
])('a joining host counts %s', (_, state, violations) => {
  const packages = { a: { version: '1.0.0', image: 'registry.test/a', uninstall: { enabled: true } } }
  const world = sampleWorld(budget, { spec: sampleSpec({ runtimeRequired: true, packages }) })
  world.taint('n1', true)
  world.take('n1', 0, 'bootstrap')
  world.complete('n1')
  world.release('agent:n1', 0, 'bootstrap')
  world.editSkyhook({ metadata: { finalizers: [finalizerName] } })
  if (state === 'deleted') world.send('admin', 'DELETE', `${skyhooksPath}/s`)
  world.send('kubelet:n1', 'POST', '/api/v1/namespaces/kube-system/pods', {
    metadata: { name: 'etcd', annotations: { 'kubernetes.io/config.mirror': 'manifest' } },
    spec: { nodeName: 'n1', containers: [{ name: 'etcd', image: 'none' }] },
  })
  if (state === 'booted' || state === 'running') world.tell('n1', { event: 'wentDown', bootId: 'b', how: 'shutdown' })
  if (state === 'running') world.tell('n1', { event: 'staticPodsRun' })
  world.take('n2')
  world.start('n2', 'uninstall')
  world.take('n1', 0, 'bootstrap')
  world.start('n1', 'uninstall')
  expect(world.violations).toHaveLength(violations)
})

test('a joining host that has lifted its taint itself counts at once for the next one', () => {
  const world = worldWith(1)
  world.taint('n1', true)
  world.take('n1', 0, 'bootstrap')
  world.start('n1')
  world.taint('n1', false, 'agent:n1')
  expect(world.violations).toEqual([])
  world.take('n2')
  world.start('n2')
  expect(world.violations).toEqual([expect.stringContaining('1 others were out: n1')])
})

test('a joining host whose Node was deleted lifts its taint beside a node in service', () => {
  const world = worldWith(1)
  world.taint('n1', true)
  world.take('n1', 0, 'bootstrap')
  world.start('n1')
  world.deleteNode('n1')
  world.release('garbage-collector', 0, 'bootstrap')
  world.register('n1')
  world.taint('n1', true)
  world.take('n2')
  world.start('n2')
  world.taint('n1', false, 'agent:n1')
  expect(world.violations).toEqual([])
})

test('a joining host that was admitted with a place in the budget lifts its taint after the budget fell', () => {
  const world = worldWith(2)
  world.taint('n1', true)
  world.take('n1', 0, 'bootstrap')
  world.take('n2')
  for (const name of ['n1', 'n2']) world.start(name)
  world.editSkyhook({ spec: { interruptionBudget: { count: 1 } } })
  world.taint('n1', false, 'agent:n1')
  expect(world.violations).toEqual([])
})

test('a joining host counts with the nodes in service once its agent has created a slot of their budget', () => {
  const world = worldWith(1)
  for (const name of ['n1', 'n2']) world.taint(name, true)
  world.take('n1', 0, 'bootstrap')
  world.start('n1')
  world.release('admin', 0, 'bootstrap')
  world.recover('n1')
  world.take('n2', 0, 'bootstrap')
  world.start('n2')
  expect(world.violations).toEqual([])
  world.take('n3', 0)
  world.start('n3')
  expect(world.violations).toEqual([expect.stringContaining('1 others were out: n1')])
})

test('a joining host that loses its taint before its cordon counts with the nodes in service', () => {
  const world = worldWith(1)
  for (const name of ['n1', 'n2']) world.taint(name, true)
  world.take('n1', 0, 'bootstrap')
  world.taint('n1', false)
  world.recover('n1')
  world.start('n1')
  world.take('n2', 1, 'bootstrap')
  world.start('n2')
  expect(world.violations).toEqual([])
  world.take('n3', 0)
  world.start('n3')
  expect(world.violations).toEqual([expect.stringContaining('1 others were out: n1')])
})

test('a joining host that goes on under a recovery slot did not count for those that joined meanwhile', () => {
  const world = worldWith(1)
  for (const name of ['n1', 'n2']) world.taint(name, true)
  world.take('n1', 0, 'bootstrap')
  world.cordon('n1')
  world.uncordon('n1')
  world.release('admin', 0, 'bootstrap')
  world.recover('n1')
  world.take('n2', 0, 'bootstrap')
  world.start('n2')
  world.cordon('n1')
  expect(world.violations).toEqual([])
})

test('a host whose taint came back with an older etcd does not count any more', () => {
  const world = worldWith(1)
  world.taint('n1', true)
  world.take('n1', 0, 'bootstrap')
  const backup = world.backUp()
  world.taint('n1', false)
  world.start('n1')
  world.restore(backup)
  world.recover('n1')
  world.take('n2', 0)
  world.start('n2')
  expect(world.violations).toEqual([])
})

test('a host that was done before another one asked was not out then, also if an older etcd shows its cordon', () => {
  const world = worldWith(1)
  world.take('n1', 0)
  world.cordon('n1')
  const backup = world.backUp()
  world.release('admin', 0)
  const giveBack = world.recover('n1')
  world.complete('n1')
  world.uncordon('n1')
  giveBack()
  world.take('n2', 0)
  world.start('n2')
  world.restore(backup)
  expect(world.violations).toEqual([])
})

test('a joining host whose Node was deleted counts with the nodes in service once it has a recovery slot', () => {
  const world = worldWith(1)
  for (const name of ['n1', 'n2']) world.taint(name, true)
  world.take('n1', 0, 'bootstrap')
  world.run('n1', 'apply')
  world.deleteNode('n1')
  world.release('garbage-collector', 0, 'bootstrap')
  world.register('n1')
  world.taint('n1', true)
  world.recover('n1')
  world.start('n1', 'config')
  world.take('n2', 0, 'bootstrap')
  world.start('n2')
  expect(world.violations).toEqual([])
})

/** n1 asked, lost Node and slot before it went out, and took a recovery slot for the registration that is gone. */
function worldWithFormerSlot() {
  const world = worldWith(1)
  world.take('n1', 0)
  const uid = world.uidOf('n1')
  world.deleteNode('n1')
  world.release('garbage-collector', 0)
  world.register('n1')
  return { world, giveBack: world.recover('n1', uid) }
}

test('a host whose agent exchanges the slot of an earlier registration goes out on its read from before', () => {
  const { world, giveBack } = worldWithFormerSlot()
  giveBack()
  world.recover('n1')
  world.cordon('n1')
  expect([world.violations, world.checks()]).toEqual([[], 1])
})

/** Somebody took the slot of n1 away before it went out, and its first request is carried out a second time. */
function worldWithLateCreation() {
  const world = worldWith(1)
  world.take('n1', 0)
  world.release('admin', 0)
  world.create('n1', 0)
  return world
}

test('A host whose slot is created again by a late request goes out under a recovery slot on its read from before.', () => {
  const world = worldWithLateCreation()
  world.recover('n1')
  world.cordon('n1')
  expect([world.violations, world.checks()]).toEqual([[], 1])
})

test('A host between two packages whose slot is created again by a late request continues under a recovery slot.', () => {
  const world = worldWith(1)
  world.take('n1', 0)
  world.complete('n1')
  world.release('admin', 0)
  world.create('n1', 0)
  world.recover('n1')
  world.cordon('n1')
  expect([world.violations, world.checks()]).toEqual([[], 2])
})

test('A host whose slot is created again by a late request does not go out under that slot without a read.', () => {
  const world = worldWithLateCreation()
  world.cordon('n1')
  expect(world.violations).toEqual([expect.stringContaining('without a confirming read')])
})

test('a host that takes a slot of the indices after one of an earlier registration has to read again', () => {
  const { world, giveBack } = worldWithFormerSlot()
  giveBack()
  world.create('n1', 0)
  world.cordon('n1')
  expect(world.violations).toEqual([expect.stringContaining('without a confirming read')])
})

test('a host that gives back the slot of its registration does not go out on its read from before', () => {
  const { world, giveBack } = worldWithFormerSlot()
  giveBack()
  const giveBackNext = world.recover('n1')
  giveBackNext()
  world.recover('n1')
  world.cordon('n1')
  expect(world.violations).toEqual([expect.stringContaining('without a confirming read')])
})

test('a change that was begun for a Skyhook of the same name and another uid does not count', () => {
  const world = worldWith(1)
  world.take('n1', 0)
  world.run('n1', 'apply', { skyhookUid: 'another' })
  world.take('n2', 1)
  world.start('n2')
  expect(world.violations).toEqual([])
})

test('a step that still runs for a Skyhook of the same name and another uid counts', () => {
  const world = worldWith(1)
  world.take('n1', 0)
  world.tell('n1', { event: 'stepStarted', step: world.step('apply', { skyhookUid: 'another' }) })
  world.take('n2', 1)
  world.start('n2')
  expect(world.violations).toHaveLength(1)
})

test('a change that was begun for this Skyhook counts between its steps', () => {
  const world = worldWith(1)
  const skyhookUid = world.server.object('skyhooks', undefined, 's')?.metadata.uid
  world.take('n1', 0)
  world.run('n1', 'apply', { skyhookUid })
  world.take('n2', 1)
  world.start('n2')
  expect(world.violations).toHaveLength(1)
})

/** n1 has marks of `s`, whose work is finished, and of `other`, for which a service restarts; then it takes `s` off. */
function restartForAnother(finish: boolean) {
  const world = worldWith(1)
  const body = { metadata: { name: 'other' }, spec: sampleSpec({}) }
  world.send('admin', 'POST', '/apis/skyhook.nvidia.com/v1alpha1/skyhooks', body)
  world.take('n1', 0)
  world.cordon('n1')
  world.start('n1')()
  if (finish) for (const mode of ['apply-check', 'config', 'config-check']) world.run('n1', mode)
  world.patchNode('agent:n1', 'n1', { metadata: { annotations: { [cordonKey('other')]: 'true' } } })
  world.run('n1', 'apply', { skyhook: 'other', unit: 'other.service' })
  world.tell('n1', { event: 'restartRequested', unit: 'x.service' })
  world.patchNode('agent:n1', 'n1', { metadata: { annotations: { [cordonKey('s')]: null } } })
  world.take('n2', 1)
  world.start('n2')
  return world.violations.filter((one) => one.includes(' for s '))
}

test('a restart for another Skyhook does not count for one that is finished and leaves its cordon', () => {
  expect(restartForAnother(true)).toEqual([])
})

test('a restart beside open work of two Skyhooks counts for both', () => {
  expect(restartForAnother(false)).toEqual([expect.stringContaining('n2 went out')])
})
