import { expect, test } from 'vitest'
import { indexedName, skyhookScope, slotLabels } from '../../lease/names.ts'
import { readSlot, type Slot } from '../../lease/slot.ts'
import * as slotBook from './slot-book.ts'

function slotIn(name: string, resourceVersion = '1'): Slot {
  const scope = skyhookScope({ name, uid: `${name}-uid` })
  const labels = slotLabels(scope, 'slot', 'node-1')
  const slot = readSlot({ metadata: { name: indexedName(scope, 0), uid: `${name}-uid`, resourceVersion, labels } })
  if (!slot) throw new Error('not a slot')
  return slot
}
/** The versions of the specs that admit a slot. */
const [first, later] = [{ generation: 3 }, { generation: 4 }]
const a = slotIn('a')
const b = slotIn('b')
const holding = slotBook.granted(slotBook.emptySlotBook, a, first, 1_000)
const ownershipOf = (book: slotBook.SlotBook, slot = a): string | undefined => book.held.get(slot.uid)?.ownership

test('a granted slot is owned from now, under the spec that was admitted', () => {
  expect(holding.held.get(a.uid)).toEqual({
    slot: a,
    ownership: 'owned',
    admittedUnder: first,
    renewedAtMs: 1_000,
    grantedAtMs: 1_000,
  })
})

test('a granted slot ends what the book had under its name', () => {
  const recreated = { ...a, uid: 'another uid' }
  const book = slotBook.granted(holding, recreated, later, 2_000)
  expect([[...book.held.keys()], ownershipOf(slotBook.seen(book, a, 3_000))]).toEqual([['another uid'], undefined])
})

test('a confirmation counts as a renewal and keeps the moment of the grant', () => {
  expect(slotBook.confirmed(holding, slotIn('a', '2'), later, 3_000).held.get(a.uid)).toMatchObject({
    slot: { resourceVersion: '2' },
    ownership: 'confirmed',
    admittedUnder: later,
    renewedAtMs: 3_000,
    grantedAtMs: 1_000,
  })
})

test('a renewal proves that the slot is ours, and confirms nothing', () => {
  const doubtful = slotBook.deletionSeen(holding, a.uid)
  const writing = slotBook.writing(doubtful, a.uid)
  expect([ownershipOf(doubtful), ownershipOf(slotBook.renewed(writing, a, 3_000))]).toEqual(['seen', 'owned'])
  expect(ownershipOf(slotBook.renewed(slotBook.confirmed(holding, a, first, 2_000), a, 3_000))).toBe('owned')
})

test('a slot that nobody here knows is seen, and due for renewal', () => {
  expect(slotBook.seen(slotBook.emptySlotBook, a, 5).held.get(a.uid)).toMatchObject({
    ownership: 'seen',
    renewedAtMs: 0,
    grantedAtMs: 5,
  })
})

test('an event does not overwrite an answer', () => {
  expect(slotBook.seen(holding, slotIn('a', '0'), 5)).toBe(holding)
})

test('an answer that comes after the slot ended brings nothing back', () => {
  const without = slotBook.ended(holding, a.uid)
  expect([
    slotBook.renewed(without, a, 3_000).held.size,
    slotBook.confirmed(without, a, first, 3_000).held.size,
  ]).toEqual([0, 0])
})

test('an event from before its end brings no slot back, and one after its deletion does', () => {
  const without = slotBook.ended(holding, a.uid)
  expect(slotBook.seen(without, a, 5)).toBe(without)
  expect(ownershipOf(slotBook.seen(slotBook.deletionSeen(without, a.uid), a, 5))).toBe('seen')
})

test('a deletion that the watch shows puts the slot in doubt, and not the others', () => {
  const both = slotBook.granted(slotBook.confirmed(holding, a, first, 1_000), b, first, 1_000)
  const doubtful = slotBook.deletionSeen(both, a.uid)
  expect(doubtful.held.get(a.uid)).toMatchObject({ ownership: 'seen', renewedAtMs: 0 })
  expect(ownershipOf(doubtful, b)).toBe('owned')
})

test('a LIST without a fresh grant puts it in doubt and does not forget it', () => {
  expect(ownershipOf(slotBook.listed(holding, [], 2_000))).toBe('seen')
  expect(ownershipOf(slotBook.listed(holding, [a], 2_000))).toBe('owned')
})

test('a LIST shows a slot that was ended, as after a restore of etcd', () => {
  const without = slotBook.ended(holding, a.uid)
  expect(ownershipOf(slotBook.listed(without, [a], 2_000))).toBe('seen')
})

test('no operation changes the book it is given', () => {
  slotBook.granted(holding, b, first, 1)
  slotBook.ended(holding, a.uid)
  slotBook.listed(holding, [b], 1)
  expect([[...holding.held.keys()], holding.ended.size, ownershipOf(holding)]).toEqual([['a-uid'], 0, 'owned'])
})

test.each<[string, (book: slotBook.SlotBook) => slotBook.SlotBook]>([
  ['creation', (book) => slotBook.granted(book, a, first, 2_000)],
  ['renewal', (book) => slotBook.renewed(book, a, 2_000)],
  ['confirmation', (book) => slotBook.confirmed(book, a, first, 2_000)],
])('a slot is in doubt if its deletion is shown before its %s is answered', (kind, answered) => {
  const before = kind === 'creation' ? slotBook.seen(slotBook.emptySlotBook, a, 1_000) : holding
  const book = answered(slotBook.deletionSeen(slotBook.writing(before, a.uid), a.uid))
  expect([ownershipOf(book), book.held.get(a.uid)?.renewedAtMs]).toEqual(['seen', 0])
})

test('an uid is forgotten once an answer and the watch agree that its slot is gone', () => {
  const answeredFirst = slotBook.deletionSeen(slotBook.ended(holding, a.uid), a.uid)
  const shownFirst = slotBook.ended(slotBook.deletionSeen(holding, a.uid), a.uid)
  const nothing = { ...slotBook.emptySlotBook, gone: [a.uid] }
  expect([answeredFirst, shownFirst]).toEqual([nothing, nothing])
})

test.each<[string, (book: slotBook.SlotBook) => slotBook.SlotBook]>([
  ['grant', (book) => slotBook.granted(book, slotIn('a', '2'), later, 2_000)],
  ['renewal', (book) => slotBook.renewed(book, slotIn('a', '2'), 2_000)],
  ['confirmation', (book) => slotBook.confirmed(book, slotIn('a', '2'), later, 2_000)],
])('a slot whose deletion is under way stays so after the answer to a %s that was sent before', (_, answered) => {
  expect(ownershipOf(answered(slotBook.releasing(holding, a.uid)))).toBe('releasing')
})

test('a grant that is entered after its slot has gone changes nothing', () => {
  const next = slotBook.granted(slotBook.ended(holding, a.uid), { ...a, uid: 'another uid' }, first, 2_000)
  expect(slotBook.granted(next, a, first, 3_000)).toBe(next)
})
