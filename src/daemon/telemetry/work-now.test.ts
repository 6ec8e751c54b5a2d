import { expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { pkg } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import { workNow } from './work-now.ts'

test('metrics tell the age of the running step, and the attempts of a stage that fails', () => {
  const node = new NodeSimulator()
  node.hangingPackages.add('b')
  node.exitCodes.set('a apply', 1)
  node.apply('s', { packages: { a: pkg('1.0.0'), b: pkg('1.0.0') } })
  const startMs = node.nowMs
  node.settleFor(60_000)
  const now = workNow(node.journal, startMs + 60_000)
  expect([...now.stepAges]).toEqual([['apply', 60]])
  expect(now.failedAttempts).toBe(4)
  expect(now.nextAttempt).toBeGreaterThan(0)
  expect(workNow(node.journal, startMs + 3_600_000)).toMatchObject({ nextAttempt: 0 })
})
