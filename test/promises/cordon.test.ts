import { expect, test } from 'vitest'
import { cordon } from './cordon.ts'
import { sampleWorld } from './sample-world.ts'

const world = () => sampleWorld(cordon)
const setCordon = (one: ReturnType<typeof world>, client: string, unschedulable: true | null) =>
  one.patchNode(client, 'n1', { spec: { unschedulable } })

test("an agent's own cordon may go", () => {
  const one = world()
  one.cordon('n1')
  one.uncordon('n1')
  expect([one.violations, one.checks()]).toEqual([[], 2])
})

test("an agent that takes off an administrator's cordon is found", () => {
  const one = world()
  setCordon(one, 'admin', true)
  one.cordon('n1')
  one.uncordon('n1')
  expect(one.violations).toEqual(['agent:n1 takes off the cordon that an administrator set on n1'])
})

test('an administrator who uncordons gives the cordon up', () => {
  const one = world()
  setCordon(one, 'admin', true)
  setCordon(one, 'admin', null)
  one.cordon('n1')
  one.uncordon('n1')
  expect(one.violations).toEqual([])
})

test.each([
  ['is still there when etcd is restored is found if it goes', true, 1],
  ['was lifted before the state that etcd is restored to may go', null, 0],
] as const)("an agent's memory of an administrator's cordon that %s", (_, unschedulable, found) => {
  const one = world()
  one.annotate('n1', { 'skyhook.nvidia.com/cordon_s': 'true', 'skyhook.nvidia.com/cordoned-before': 'true' })
  setCordon(one, 'kubelet:n1', unschedulable)
  one.restore(one.backUp())
  setCordon(one, 'agent:n1', true)
  setCordon(one, 'agent:n1', null)
  expect(one.violations).toHaveLength(found)
})

test('a mark on a schedulable Node is found when it lasts', async () => {
  const one = world()
  one.annotate('n1', { 'skyhook.nvidia.com/cordon_s': 'true' })
  await one.pass(60)
  expect(one.violations).toEqual([])
  await one.pass(40)
  expect(one.violations[0]).toContain('carries the cordon mark of s and is schedulable')
})

test('a cordon that nobody accounts for is found when it lasts', async () => {
  const one = world()
  setCordon(one, 'agent:n1', true)
  await one.pass(100)
  expect(one.violations[0]).toContain('neither a mark nor an administrator says why')
})

test("an administrator's cordon may last", async () => {
  const one = world()
  setCordon(one, 'admin', true)
  await one.pass(200)
  expect(one.violations).toEqual([])
})

test('a wrong cordon is no fault of an agent that is away', async () => {
  const one = world()
  one.setHealthy('n1', false)
  setCordon(one, 'agent:n1', true)
  await one.pass(200)
  expect(one.violations).toEqual([])
})
