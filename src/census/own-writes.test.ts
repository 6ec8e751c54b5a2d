import { beforeEach, expect, test } from 'vitest'
import { createVirtualClock, type VirtualClock } from '../../test/support/virtual-clock.ts'
import { createOwnWrites, type OwnWrites } from './own-writes.ts'

type Versioned = { metadata: { resourceVersion: string } }
const version = (resourceVersion: string): Versioned => ({ metadata: { resourceVersion } })
let clock: VirtualClock
let own: OwnWrites<Versioned>
let oldWatches: number
beforeEach(() => {
  clock = createVirtualClock(undefined, { settleTurns: 0 })
  oldWatches = 0
  own = createOwnWrites(clock, () => void oldWatches++)
})

test('the own copy is used until the watch shows the last write', () => {
  expect(own.latest()).toBeUndefined()
  own.begin().written(version('11'))
  own.begin().written(version('12'))
  own.observed('11')
  expect(own.latest()).toEqual(version('12'))
  own.observed('12')
  expect(own.latest()).toBeUndefined()
})

test('the own copy is dropped once the watch shows a later write', () => {
  own.begin().written(version('11'))
  own.observed('13')
  expect(own.latest()).toBeUndefined()
})

test('a write that the watch shows before the response is not kept', () => {
  const write = own.begin()
  own.observed('11')
  own.observed('12') // someone else, meanwhile
  write.written(version('11'))
  expect(own.latest()).toBeUndefined()
})

test('an earlier write that the watch shows during the next one changes nothing', () => {
  own.begin().written(version('11'))
  const write = own.begin()
  own.observed('11')
  write.written(version('12'))
  expect(own.latest()).toEqual(version('12'))
})

test('after a LIST the own copy is dropped, and so is that of a write in progress', () => {
  own.begin().written(version('11'))
  const write = own.begin()
  own.listed()
  expect(own.latest()).toBeUndefined()
  write.written(version('12'))
  expect(own.latest()).toBeUndefined()
})

test('a conflict drops the own copy, and the next write waits longer each time until the watch shows something', async () => {
  own.begin().written(version('11'))
  const pausesMs = []
  for (let conflicts = 0; conflicts < 3; conflicts++) {
    own.begin().conflicted()
    pausesMs.push(own.notBeforeMs() - clock.monotonicMs())
    await clock.advance(10_000)
  }
  expect([own.latest(), pausesMs]).toEqual([undefined, [500, 1_000, 2_000]])
  own.observed('13')
  expect(own.notBeforeMs()).toBe(-Infinity)
})

test('a conflict whose cause the watch showed before the response causes no pause', () => {
  const write = own.begin()
  own.observed('11')
  write.conflicted()
  expect(own.notBeforeMs()).toBe(-Infinity)
})

test('a second conflict says that the watch is old, unless the watch has shown something', () => {
  own.begin().conflicted()
  expect(oldWatches).toBe(0)
  own.begin().conflicted()
  expect(oldWatches).toBe(1)
  const write = own.begin()
  own.observed('13')
  write.conflicted()
  expect(oldWatches).toBe(1)
})
