import { expect, test } from 'vitest'
import { actionKinds } from '../../kit/fleet/action-kinds.ts'
import { phases } from '../../kit/fleet/phase.ts'
import { planRun } from './plan-run.ts'
import { pairs, pairsOf } from './steering.ts'

const nameOf = ({ kind, phase }: (typeof pairs)[number]): string => `${kind} in ${phase}`

test('every fault and edit has its turn in every phase that it can be met in', () => {
  const counts = new Map(pairs.map((pair) => [nameOf(pair), 0]))
  for (let seed = 1; seed <= pairs.length; seed++)
    for (const pair of pairsOf(seed).slice(0, 4)) counts.set(nameOf(pair), (counts.get(nameOf(pair)) ?? 0) + 1)
  expect([new Set(counts.values()), counts.size]).toEqual([new Set([4]), pairs.length])
})

test('a pair that often misses its turn has more of them', () => {
  const counts = new Map<string, number>()
  for (let seed = 1; seed <= 20_000; seed++)
    for (const pair of pairsOf(seed)) counts.set(nameOf(pair), (counts.get(nameOf(pair)) ?? 0) + 1)
  const often = [...counts].filter(([, count]) => count > 200).map(([name]) => name)
  expect(often.toSorted()).toEqual(['agent-upgraded in down', 'services-fail in waiting'])
})

test('a pair that cannot exist says why', () => {
  const reasons = Object.values(actionKinds).flatMap(({ impossible = {} }) => Object.values(impossible))
  expect(pairs.length + reasons.length).toBe(Object.keys(actionKinds).length * phases.length)
  expect(reasons.filter((reason) => reason.length < 10)).toEqual([])
})

test('a plan has its pairs, each for whichever node comes into the phase first', () => {
  const steered = planRun(7).actions.filter(({ node, during }) => node === undefined && during !== undefined)
  expect(steered.map(({ kind, during }) => `${kind} in ${during}`).toSorted()).toEqual(
    pairsOf(7).map(nameOf).toSorted(),
  )
})
