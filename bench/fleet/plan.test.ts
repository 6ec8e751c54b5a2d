import { expect, test } from 'vitest'
import { planName, policyOf, specOf, turnsOf, type FleetPlan } from './plan.ts'

const plan: FleetPlan = {
  nodes: 100,
  budget: '10%',
  strategy: 'none',
  interrupt: 'service',
  skyhooks: 1,
  stepMs: 0,
  workers: 1,
  idleSeconds: 0,
  restart: false,
}

test.each<[string, Partial<FleetPlan>, number]>([
  ['all at once', { budget: 'none' }, 1],
  ['ten at a time', {}, 10],
  ['a last turn that is not full', { nodes: 101, budget: '10' }, 11],
  ['batches of 1, 2, 4, 8 and 10', { strategy: 'exponential' }, 13],
  ['one node with batches', { nodes: 1, strategy: 'exponential' }, 1],
])('turns: %s', (_, change, turns) => {
  expect(turnsOf({ ...plan, ...change })).toBe(turns)
})

test('a plan with batches has its budget in a policy, and a name of its own', () => {
  const batches: FleetPlan = { ...plan, strategy: 'exponential' }
  expect(policyOf(batches)).toEqual({ default: { budget: { percent: 10 }, strategy: { exponential: {} } } })
  expect(specOf(batches, {})).toMatchObject({ deploymentPolicy: 'batches' })
  expect(specOf(batches, {})).not.toHaveProperty('interruptionBudget')
  expect([planName(plan), planName(batches)]).toEqual([
    'fleet-100-10percent-service',
    'fleet-100-10percent-service-exponential',
  ])
  expect(policyOf(plan)).toBeUndefined()
})
