import { expect, test } from 'vitest'
import { denied, noDenials, requestNow, waitedMs, withoutDenial } from './denials.ts'

const full = denied(noDenials, 'a', { message: 'full', retryInMs: 30_000 }, 1_000)

test('a denial names the reason and the next request', () => {
  expect(full.get('a')).toEqual({ message: 'full', nextRequestAtMs: 31_000, sinceMs: 1_000 })
})

test('a second denial counts from the first', () => {
  const again = denied(full, 'a', { message: 'still full', retryInMs: 200 }, 5_000)
  expect(again.get('a')).toEqual({ message: 'still full', nextRequestAtMs: 5_200, sinceMs: 1_000 })
})

test('a slot that may be free makes the next request due at once', () => {
  expect(requestNow(full, 'a').get('a')).toEqual({ message: 'full', nextRequestAtMs: 0, sinceMs: 1_000 })
})

test('a slot that nobody waits for changes nothing', () => {
  expect(requestNow(full, 'b')).toBe(full)
})

test('a granted slot ends the wait of its Skyhook alone', () => {
  const both = denied(full, 'b', { message: 'full', retryInMs: 1 }, 2_000)
  expect([...withoutDenial(both, 'a').keys()]).toEqual(['b'])
})

test('a wait lasts from the first denial and is zero without one', () => {
  expect([waitedMs(full, 'a', 4_000), waitedMs(full, 'b', 4_000)]).toEqual([3_000, 0])
})

test('no operation changes the denials it is given', () => {
  denied(full, 'b', { message: 'm', retryInMs: 1 }, 1)
  withoutDenial(full, 'a')
  requestNow(full, 'a')
  expect(full.get('a')).toMatchObject({ nextRequestAtMs: 31_000 })
})

test('a node that waits for the slot of the control plane asks at once when it becomes free', () => {
  const waiting = denied(noDenials, 'a', { message: 'taken', retryInMs: 60_000, waitsFor: 'control-plane' }, 1_000)
  expect(requestNow(waiting, 'a').get('a')).toMatchObject({ nextRequestAtMs: 0, waitsFor: 'control-plane' })
})

test('a slot that becomes free changes nothing for who waits for something else', () => {
  const changed = denied(noDenials, 'a', { message: 'changed', retryInMs: 1_000, waitsFor: 'spec' }, 1_000)
  expect(requestNow(changed, 'a')).toBe(changed)
})
