import { expect, test } from 'vitest'
import type { AuditedRequest } from './audit-log.ts'
import { handOvers, mostAtOnce, mostSlots } from './budget-check.ts'

const request = (
  verb: string,
  index: number,
  receivedMs: number,
  more: Partial<AuditedRequest> = {},
): AuditedRequest => ({
  verb,
  resource: 'leases',
  name: `fleet-0123abcd.slot-${index}`,
  code: 200,
  receivedMs,
  answeredMs: receivedMs + 2,
  ...more,
})

const handedOver = [
  request('create', 0, 10),
  request('create', 0, 11, { code: 409 }),
  request('delete', 0, 100),
  request('create', 0, 150),
  request('delete', 0, 200),
]

test('a slot that goes from node to node is one slot', () => {
  expect(mostSlots(handedOver, 'fleet-0123abcd')).toBe(1)
})

test('two slots that are held at once are two, whichever indices they have', () => {
  expect(mostSlots([...handedOver, request('create', 1, 50)], 'fleet-0123abcd')).toBe(2)
})

test('refused creations and Leases of other Skyhooks are not slots', () => {
  const others = [
    request('create', 1, 20, { code: 409 }),
    request('create', 1, 20, { name: 'alone-0123abcd.slot-0' }),
    request('create', 1, 20, { name: 'fleet-0123abcd.ledger' }),
  ]
  expect(mostSlots([...handedOver, ...others], 'fleet-0123abcd')).toBe(1)
})

test('a decrease comes first of changes in the same millisecond', () => {
  expect(
    mostAtOnce([
      { atMs: 1, change: 1 },
      { atMs: 2, change: 1 },
      { atMs: 2, change: -1 },
    ]),
  ).toBe(1)
})

test('a hand-over lasts from the end of a deletion to the end of the next creation', () => {
  expect(handOvers(handedOver, 'fleet-0123abcd', 1)).toEqual([50])
})
