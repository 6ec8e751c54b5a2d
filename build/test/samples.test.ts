import { expect, test } from 'vitest'
import { numberOfCommit } from './commit.ts'
import { samplesOf } from './samples.ts'

const [one, other] = ['fea63d7a58e68aceb58496af822005f2d3e12c8e', '0000000c98b18f0eb2e1f1f34a36ee90c54b38d0']

test('the number of a commit is the same each time, and another one for another commit', () => {
  expect([numberOfCommit(one), numberOfCommit(other)]).toEqual([0xfea63d7, 0])
  expect(numberOfCommit('f'.repeat(40))).toBeLessThan(2 ** 28)
})

test('each sample moves with the commit, beside a part that stays', () => {
  const [here, there] = [samplesOf(one), samplesOf(other)]
  expect(here).toEqual(samplesOf(one))
  expect(here.fleets[0]).toEqual(there.fleets[0])
  expect(here.fleets[1]).not.toEqual(there.fleets[1])
  for (const part of ['mutants', 'crashPoints', 'chaos', 'searches'] as const)
    expect(here[part]).not.toEqual(there[part])
})

test('a tree without git has the fixed parts', () => {
  const { fleets, searches, chaos } = samplesOf(undefined)
  expect([fleets.length, searches]).toEqual([1, []])
  expect(chaos[0]?.slice(-2)).toEqual(['--seed', '1'])
})
