import { expect, test } from 'vitest'
import { passUntil } from './event-loop.ts'
import { createSeededRandom, createVirtualClock } from './virtual-clock.ts'

test('timers of a virtual clock run in the order of their times, equal ones in the order of their starts', async () => {
  const clock = createVirtualClock()
  const random = createSeededRandom(5)
  const expected: { readonly atMs: number; readonly id: number }[] = []
  const fired: unknown[] = []
  for (let id = 0; id < 500; id++) {
    const atMs = Math.floor(random.number() * 100)
    const cancel = clock.startTimer(atMs, () => fired.push({ atMs: clock.monotonicMs(), id }))
    if (random.number() < 0.3) cancel()
    else expected.push({ atMs, id })
  }
  expect(clock.pendingTimers).toBe(expected.length)
  await clock.advance(100)
  expect(fired).toEqual(expected.toSorted((a, b) => a.atMs - b.atMs || a.id - b.id))
  expect(clock.pendingTimers).toBe(0)
})

test('a timer that a timer starts runs within the same advance if it is due by then, and not before', async () => {
  const clock = createVirtualClock()
  const fired: number[] = []
  const again = (): void => {
    fired.push(clock.monotonicMs())
    clock.startTimer(10, again)
  }
  clock.startTimer(10, again)
  await clock.advance(35)
  expect(fired).toEqual([10, 20, 30])
  await clock.advance(5)
  expect(fired).toEqual([10, 20, 30, 40])
})

test('time passes until a promise has its outcome, and no further than a tenth of a second', async () => {
  const clock = createVirtualClock(undefined, { settleTurns: 0 })
  const later = (how: (resolve: (value: string) => void, reject: (why: Error) => void) => void): Promise<string> =>
    new Promise((resolve, reject) => clock.startTimer(1_234, () => how(resolve, reject)))
  expect(
    await passUntil(
      clock,
      later((resolve) => resolve('there')),
    ),
  ).toBe('there')
  expect(clock.monotonicMs()).toBe(1_300)
  await expect(
    passUntil(
      clock,
      later((_, reject) => reject(new Error('gone'))),
    ),
  ).rejects.toThrow('gone')
})
