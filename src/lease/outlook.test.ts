import { expect, test } from 'vitest'
import { labelKeys, skyhookScope } from './names.ts'
import { type KnownOfLine, needsAllSlots, outlookOf } from './outlook.ts'
import { newLease, readSlot, type Slot, type SlotTarget } from './slot.ts'

const scope = skyhookScope({ name: 's', uid: '3f2504e0-4f89-11d3-9a0c-0305e82c3301' })
const progress = { phase: 'working', generation: 1, packages: [] } as const

function slotOf(target: SlotTarget, change: Record<string, undefined> = {}): Slot {
  const node = { name: `n-${JSON.stringify(target).length}`, uid: 'uid', bootId: 'boot' }
  const lease = newLease(scope, target, node, progress, 0)
  const metadata = { ...lease.metadata, uid: 'lease', resourceVersion: '1' }
  const labels = Object.fromEntries(Object.entries({ ...metadata.labels, ...change }).filter(([, value]) => value))
  return readSlot({ ...lease, metadata: { ...metadata, labels } } as never) as Slot
}
const slotsAt = (...indices: number[]): Slot[] => indices.map((index) => slotOf({ index }))

test.each<[string, readonly Slot[], number, boolean]>([
  ['all of them are held', slotsAt(0, 1, 2), 3, false],
  ['one is free', slotsAt(0, 2), 3, false],
  ['an index is free after a cut, and may not be taken', slotsAt(1, 4, 5), 3, true],
  ['a slot has no index', [...slotsAt(0, 1), slotOf({ kind: 'recovery' })], 3, true],
  ['an older agent holds one', [slotOf({ index: 0 }, { [labelKeys.slotIndex]: undefined })], 3, true],
])('some slots show what is free or not: %s', (_, slots, limit, expected) => {
  expect(needsAllSlots(slots, scope, limit)).toBe(expected)
})

const known: KnownOfLine = {
  nodeUid: 'node-1',
  limit: 40,
  dependsOnLedger: false,
  queue: { matched: 400, waiters: 1 },
  unchangedMs: 0,
  hasLine: true,
  needsAllSlots: false,
  others: 400,
  isCountAwaited: false,
  free: undefined,
  asleep: { ms: 0, done: 0 },
  answerMs: 0,
  lot: 0.9,
}

test('a node in line watches some of many slots, or all where these do not show what is free', () => {
  const ofMany = { ...known, queue: { matched: 400, waiters: 90 }, nodeUid: 'node-0' }
  const watchedBy = (change: Partial<KnownOfLine>) => {
    const outlook = outlookOf({ ...ofMany, queue: { matched: 91, waiters: 90 }, ...change }, 0.5)
    return outlook.is === 'in-line' ? outlook.watched : outlook.is
  }
  expect(watchedBy({}).length).toBeLessThanOrEqual(4)
  expect(watchedBy({ needsAllSlots: true })).toBe('all')
  expect(watchedBy({ limit: 4, queue: { matched: 91, waiters: 1 } })).toBe('all')
})

test('one of those who see a free slot asks for each step, about', () => {
  const askMs = (change: Partial<KnownOfLine>) => {
    const outlook = outlookOf({ ...known, ...change }, 0.5)
    return outlook.is === 'free' ? outlook.askMs : outlook.is
  }
  expect(askMs({ free: 1 })).toBe(20) // the last one
  expect(askMs({ free: 0 })).toBe('in-line')
  const many = { queue: { matched: 91, waiters: 90 }, needsAllSlots: true }
  expect([1, 2].map((free) => askMs({ ...many, free }))).toEqual([90 * 20, 45 * 20])
  expect(askMs({ ...many, free: 1, answerMs: 25 })).toBe(90 * 50)
})
