import { expect, test } from 'vitest'
import { editKinds, faultKinds, planOf } from './plan.ts'

test('a seed always gives the same plan', () => {
  expect(planOf(7, 60_000)).toEqual(planOf(7, 60_000))
  expect(planOf(7, 60_000)).not.toEqual(planOf(8, 60_000))
})

test('every kind of fault and edit comes once within two minutes', () => {
  for (const seed of [1, 2, 3, 4, 5]) {
    const kinds = new Set(planOf(seed, 120_000).map(({ kind }) => kind))
    expect([...faultKinds, ...editKinds].filter((kind) => !kinds.has(kind))).toEqual([])
  }
})

test('the actions of a plan are in the order of their times and end with its duration', () => {
  const times = planOf(3, 300_000).map(({ atMs }) => atMs)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
  expect(times.at(-1)).toBeLessThan(300_000)
})
