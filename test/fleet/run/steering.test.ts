import { expect, test } from 'vitest'
import { actionKinds } from './action-kinds.ts'
import { phases } from './phase.ts'
import { planRun } from './plan-run.ts'
import { pairs, pairsOf } from './steering.ts'

const nameOf = ({ kind, phase }: (typeof pairs)[number]): string => `${kind} in ${phase}`

test('every fault and edit has its turn in every phase that it can be met in', () => {
  const counts = new Map(pairs.map((pair) => [nameOf(pair), 0]))
  for (let seed = 1; seed <= pairs.length; seed++)
    for (const pair of pairsOf(seed)) counts.set(nameOf(pair), (counts.get(nameOf(pair)) ?? 0) + 1)
  expect([new Set(counts.values()), counts.size]).toEqual([new Set([4]), pairs.length])
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
