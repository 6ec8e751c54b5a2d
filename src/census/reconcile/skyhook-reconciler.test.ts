import { beforeEach, expect, test } from 'vitest'
import { createVirtualClock, type VirtualClock } from '../../../test/kit/virtual-clock.ts'
import { createOwnWrites, type OwnWrites } from './skyhook-reconciler.ts'

let clock: VirtualClock
let own: OwnWrites
let oldWatches: number
beforeEach(() => {
  clock = createVirtualClock(undefined, { settleTurns: 0 })
  oldWatches = 0
  own = createOwnWrites(clock, () => void oldWatches++)
})
/** How long the census still waits for the watch, in ms. */
const unseenMs = (): number => Math.max(0, own.unseenUntilMs() - clock.monotonicMs())

test('a write is unseen until the watch shows the object, and for a second at most', async () => {
  expect([unseenMs(), own.observed()]).toEqual([0, false])
  own.begin().written()
  expect([unseenMs(), own.observed(), unseenMs()]).toEqual([1_000, true, 0])
  own.begin().written()
  await clock.advance(1_000)
  expect(unseenMs()).toBe(0)
})

test('a write that the watch shows before the response is seen', () => {
  const write = own.begin()
  own.observed()
  write.written()
  expect(unseenMs()).toBe(0)
})

test('the next write after a conflict waits longer each time until the watch shows something', async () => {
  const pausesMs = []
  for (let conflicts = 0; conflicts < 3; conflicts++) {
    own.begin().conflicted()
    pausesMs.push(own.notBeforeMs() - clock.monotonicMs())
    await clock.advance(10_000)
  }
  expect([unseenMs(), pausesMs]).toEqual([0, [500, 1_000, 2_000]])
  own.observed()
  expect(own.notBeforeMs()).toBe(-Infinity)
})

test('a conflict whose cause the watch showed before the response causes no pause', () => {
  const write = own.begin()
  own.observed()
  write.conflicted()
  expect(own.notBeforeMs()).toBe(-Infinity)
})

test('a second conflict shows that the watch is old, unless the watch has shown something', () => {
  own.begin().conflicted()
  expect(oldWatches).toBe(0)
  own.begin().conflicted()
  expect(oldWatches).toBe(1)
  const write = own.begin()
  own.observed()
  write.conflicted()
  expect(oldWatches).toBe(1)
})
