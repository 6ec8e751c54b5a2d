import { describe, expect, test } from 'vitest'
import { controlPlaneScope, type Scope, skyhookScope, slotLabels } from '../../lease/names.ts'
import { readSlot, type Slot } from '../../lease/slot.ts'
import {
  confirmSlot,
  emptySlotBook,
  grantSlot,
  type HeldSlot,
  loadSlots,
  ownSlot,
  removeSlot,
  renewSlot,
  setControlPlaneSlot,
  slotOf,
  unusedControlPlaneSlot,
} from './slot-book.ts'

const a = { name: 'a', uid: 'a-uid' }
const b = { name: 'b', uid: 'b-uid' }

function slotIn(scope: Scope, name: string, kind: 'slot' | 'recovery' | 'control-plane' = 'slot'): Slot {
  const labels = slotLabels(scope, kind, 'node-1')
  const slot = readSlot({ metadata: { name, uid: `${name}-uid`, resourceVersion: '1', labels } })
  if (!slot) throw new Error('not a slot')
  return slot
}
const slotOfA = slotIn(skyhookScope(a), 'lease-a')
const slotOfB = slotIn(skyhookScope(b), 'lease-b')
const controlPlane = slotIn(controlPlaneScope, 'lease-cp', 'control-plane')
const holding = grantSlot(emptySlotBook, slotOfA, a, false, 1_000)
const entryOf = (book: typeof holding, lease = 'lease-a'): HeldSlot => {
  const entry = book.held.get(lease)
  if (!entry) throw new Error(`${lease} is not held`)
  return entry
}

describe('loading', () => {
  test('a slot belongs to the Skyhook whose uid hashes to its scope', () => {
    const book = loadSlots(emptySlotBook, [slotOfA, slotOfB], [a, b], 5)
    expect([...book.held.values()].map(({ skyhook, skyhookUid }) => [skyhook, skyhookUid])).toEqual([
      ['a', 'a-uid'],
      ['b', 'b-uid'],
    ])
  })

  test('a slot of a Skyhook that nobody knows has the name of its label and no uid', () => {
    const book = loadSlots(emptySlotBook, [slotOfA], [{ name: 'a', uid: 'another' }], 5)
    expect(entryOf(book)).toMatchObject({ skyhook: 'a', skyhookUid: undefined })
  })

  test.each([
    ['slot', false],
    ['recovery', true],
  ] as const)('a slot of kind %s loads with isConfirmed %s and is due for renewal', (kind, isConfirmed) => {
    const book = loadSlots(emptySlotBook, [slotIn(skyhookScope(a), 'lease-a', kind)], [a], 5)
    expect(entryOf(book)).toMatchObject({ isConfirmed, renewedAtMs: 0, grantedAtMs: 5 })
  })

  test("the control plane's slot is apart from those of Skyhooks", () => {
    const book = loadSlots(emptySlotBook, [controlPlane, slotOfA], [a], 5)
    expect([book.controlPlane?.name, [...book.held.keys()]]).toEqual(['lease-cp', ['lease-a']])
  })

  test('loading forgets what was held before', () => {
    const book = loadSlots(grantSlot(emptySlotBook, slotOfB, b, true, 1), [slotOfA], [a], 5)
    expect([...book.held.keys()]).toEqual(['lease-a'])
  })
})

describe('holding', () => {
  test('a granted slot counts from now', () => {
    const book = grantSlot(emptySlotBook, slotOfA, a, false, 1_000)
    expect(entryOf(book)).toEqual({
      slot: slotOfA,
      skyhook: 'a',
      skyhookUid: 'a-uid',
      isConfirmed: false,
      renewedAtMs: 1_000,
      grantedAtMs: 1_000,
    })
  })

  test('a recovery slot is granted as confirmed', () => {
    expect(entryOf(grantSlot(emptySlotBook, slotOfA, a, true, 1)).isConfirmed).toBe(true)
  })

  test('a confirmation counts as a renewal and keeps the moment of the grant', () => {
    const seen = { ...slotOfA, resourceVersion: '2' }
    expect(entryOf(confirmSlot(holding, seen, 3_000))).toMatchObject({
      slot: { resourceVersion: '2' },
      isConfirmed: true,
      renewedAtMs: 3_000,
      grantedAtMs: 1_000,
    })
  })

  test('a renewal confirms nothing', () => {
    const seen = { ...slotOfA, resourceVersion: '2' }
    expect(entryOf(renewSlot(holding, seen, 3_000))).toMatchObject({
      slot: { resourceVersion: '2' },
      isConfirmed: false,
      renewedAtMs: 3_000,
      grantedAtMs: 1_000,
    })
  })

  test('an answer that comes after the slot was given up brings nothing back', () => {
    const without = removeSlot(holding, 'lease-a')
    expect([renewSlot(without, slotOfA, 3_000).held.size, confirmSlot(without, slotOfA, 3_000).held.size]).toEqual([
      0, 0,
    ])
  })

  test('a renewal takes no confirmation back', () => {
    expect(entryOf(renewSlot(confirmSlot(holding, slotOfA, 2_000), slotOfA, 3_000)).isConfirmed).toBe(true)
  })

  test('a removed slot leaves the others', () => {
    const both = grantSlot(holding, slotOfB, b, false, 2_000)
    expect([...removeSlot(both, 'lease-a').held.keys()]).toEqual(['lease-b'])
  })

  test('a slot is found by the uid of its Skyhook', () => {
    expect([slotOf(holding, 'a-uid')?.slot.name, slotOf(holding, 'b-uid')]).toEqual(['lease-a', undefined])
  })

  test('a decision sees a held slot without the Lease itself', () => {
    expect(ownSlot(entryOf(holding))).toEqual({
      skyhook: 'a',
      skyhookUid: 'a-uid',
      lease: 'lease-a',
      phase: slotOfA.phase,
      confirmed: false,
      renewedAtMs: 1_000,
    })
  })

  test('no operation changes the book it is given', () => {
    grantSlot(holding, slotOfB, b, false, 1)
    removeSlot(holding, 'lease-a')
    expect([...holding.held.keys()]).toEqual(['lease-a'])
  })
})

describe('the control plane', () => {
  const guarded = setControlPlaneSlot(holding, controlPlane)

  test('its slot stays while a Skyhook holds one', () => {
    expect(unusedControlPlaneSlot(guarded)).toBeUndefined()
  })

  test('its slot goes with the last slot that leaves', () => {
    expect(unusedControlPlaneSlot(guarded, 'lease-a')).toBe(controlPlane)
    const both = grantSlot(guarded, slotOfB, b, false, 1)
    expect(unusedControlPlaneSlot(both, 'lease-a')).toBeUndefined()
  })

  test('its slot goes where nothing is held', () => {
    expect(unusedControlPlaneSlot(setControlPlaneSlot(emptySlotBook, controlPlane))).toBe(controlPlane)
    expect(unusedControlPlaneSlot(emptySlotBook)).toBeUndefined()
  })
})
