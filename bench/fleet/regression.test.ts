import { expect, test } from 'vitest'
import { regressionsOf } from './regression.ts'
import type { FleetResult, RolloutResult } from './result.ts'

const rollout: RolloutResult = {
  seconds: { makespan: 10, ideal: 8, firstNode: 1, medianNode: 5, status: 11 },
  requestsPerNode: 4,
  requestsByVerb: { 'patch nodes': 3, 'create leases': 1 },
  conflicts: 0,
  tooManyRequests: 0,
  watchEventsPerNode: 1,
  watchKiBPerNode: 1,
  etcdKiBPerNode: 1,
  serverCpuSeconds: 1,
  etcdCpuSeconds: 1,
  agentCpuMsPerNode: 1,
  serverRssMiB: 1,
  agentRssMiB: 1,
  machineBusy: 1,
  budget: { limit: 2, mostSlots: 2, mostHostsOut: 2, violations: 0 },
  longestSilentMs: 0,
  warnings: {},
}
const resultWith = (changes: Partial<RolloutResult>): FleetResult => ({
  name: 'fleet-20-none-none',
  probeMs: 1,
  startSeconds: 1,
  aloneSeconds: 1,
  rollout: { ...rollout, ...changes },
})
const committed = resultWith({})
const regressions = (changes: Partial<RolloutResult>): string[] => regressionsOf(resultWith(changes), committed, 20)

test('a run like the committed one has no regression', () => {
  expect(regressions({})).toEqual([])
})

test('a run that costs less has no regression', () => {
  expect(regressions({ requestsPerNode: 3, requestsByVerb: { 'patch nodes': 2, 'create leases': 1 } })).toEqual([])
})

test('one more request of each node is a regression', () => {
  expect(regressions({ requestsByVerb: { 'patch nodes': 3, 'create leases': 2 } })).toEqual([
    expect.stringContaining('"create leases"'),
  ])
})

test('two more writes of each Node are a regression, and one is none', () => {
  expect(regressions({ requestsByVerb: { 'patch nodes': 4 } })).toEqual([])
  expect(regressions({ requestsByVerb: { 'patch nodes': 5 } })).toHaveLength(1)
})

test('a watch that the API server has ended explains the requests that follow', () => {
  const requestsByVerb = { ...rollout.requestsByVerb, 'list leases': 1 }
  const warnings = { 'watch interrupted: the API server ended the watch N s early': 20 }
  expect(regressions({ requestsByVerb, warnings })).toEqual([])
  expect(regressions({ requestsByVerb })).toHaveLength(1)
})

test('a kind of request that no committed run has is a regression', () => {
  expect(regressions({ requestsByVerb: { ...rollout.requestsByVerb, 'list pods': 1 } })).toEqual([
    expect.stringContaining('"list pods"'),
  ])
})

test('looks at the election are not a regression', () => {
  expect(regressions({ requestsByVerb: { ...rollout.requestsByVerb, 'get election': 3 } })).toEqual([])
})

test('a refusal because of too many requests is a regression', () => {
  expect(regressions({ tooManyRequests: 1 })).toHaveLength(1)
})

test('a violated budget is a regression', () => {
  expect(regressions({ budget: { limit: 2, mostSlots: 3, mostHostsOut: 2, violations: 1 } })).toHaveLength(1)
})

test('a slow machine is not a regression', () => {
  const seconds = { firstNode: 10, medianNode: 50, status: 110, makespan: 100, ideal: 5 }
  expect(regressions({ seconds })).toEqual([])
})
