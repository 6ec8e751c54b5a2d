import { expect, test } from 'vitest'
import { faultNames } from './fault-names.ts'
import { allCases, caseName, sample, sampleWithRegressions, split, spread } from './matrix.ts'

const points = { service: ['a#1', 'b#1'], reboot: ['c#1'], change: ['d#1'] }

test('the matrix combines every failpoint with every fault', () => {
  const cases = allCases(points)
  expect(cases).toHaveLength(4 * faultNames.length)
  expect(new Set(cases.map(caseName)).size).toBe(cases.length)
  expect(allCases(points, { fault: 'power cut', workload: 'service' }).map(({ point }) => point)).toEqual([
    'a#1',
    'b#1',
  ])
})

test('a sample covers all workloads and faults, and a shift gives another one', () => {
  const numbers = Array.from({ length: 100 }, (_, index) => index)
  expect(sample(numbers, 4)).toEqual([0, 25, 50, 75])
  expect(sample(numbers, 4, 30)).toEqual([30, 55, 80, 5])
  expect(sample(numbers, 200)).toEqual(numbers)
})

test('a sample contains each known weak spot once', () => {
  const cases = allCases({ ...points, service: ['fsync:interrupts#1', ...points.service] })
  const regression = { workload: 'service', fault: 'agent killed', point: 'fsync:interrupts#1' }
  expect(sampleWithRegressions(cases, 1, 3)).toEqual([regression, cases[3]])
  expect(sampleWithRegressions(cases, cases.length, 0)).toHaveLength(cases.length)
})

test('spreading puts trials of every kind first and loses none', () => {
  const numbers = Array.from({ length: 100 }, (_, index) => index)
  expect(spread(numbers).toSorted((a, b) => a - b)).toEqual(numbers)
  expect(
    new Set(
      spread(numbers)
        .slice(0, 10)
        .map((number) => Math.floor(number / 25)),
    ).size,
  ).toBe(4)
  expect([spread([]), spread(['a'])]).toEqual([[], ['a']])
})

test('a fault that affects all nodes runs in rounds', () => {
  const { single, rounds } = split(allCases(points), 3)
  expect(single).toHaveLength(4 * (faultNames.length - 1))
  expect(rounds.map((round) => round.length)).toEqual([3, 1])
})
