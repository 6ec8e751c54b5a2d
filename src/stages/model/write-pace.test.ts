import { expect, test } from 'vitest'
import { settleMs } from './write-pace.ts'

test('A wait is written once it has lasted 0.7 s, and in a large cluster when it is the turn of the node.', () => {
  expect([settleMs({}), settleMs({ spreadMs: 100 }), settleMs({ spreadMs: 6_000 })]).toEqual([700, 700, 6_000])
})
