import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decide } from '../../src/stages/decide.ts'
import { runScenario, skyhookSpec, scenarioEvent } from './scenario.ts'
import { mutants } from './mutants.ts'
import type { Decide } from '../support/node-simulator.ts'

/**
 * Random lives of one node: specs change, agent and host die at any point, slots get lost, pods come and refuse to go,
 * people edit, reset, cordon, delete and create again. Every effect is judged as it happens (rules.ts), and in the end,
 * when nothing disturbs any more, the node must come to rest as the last spec wants it. The same search must find the
 * fault in each of the wrong decisions, or its silence would mean nothing.
 */
const seed = Number(process.env['SEARCH_SEED'] ?? 20_260_102) // the same lives each time; another seed and more runs look further
const runs = Number(process.env['SEARCH_RUNS'] ?? 600)

function search(
  decideUnderTest: Decide,
  features: { readonly isKeeping: boolean },
  numRuns: number,
  from = seed,
  endOnFailure = false,
): string | undefined {
  const life = fc.property(
    skyhookSpec(features),
    fc.array(scenarioEvent(features), { maxLength: 40 }),
    (spec, scenarioEvents) => {
      runScenario(decideUnderTest, spec, scenarioEvents)
    },
  )
  const { failed, counterexample, errorInstance } = fc.check(life, { numRuns, seed: from, endOnFailure })
  return failed ? `${String(errorInstance)}\n${JSON.stringify(counterexample)}\nSEARCH_SEED=${from}` : undefined
}

describe('a node through every trouble', () => {
  test('keeps all rules on its way and ends as the spec says', () => {
    expect(search(decide, { isKeeping: false }, runs)).toBeUndefined()
  }, 60_000)

  test('also where packages are kept by their uninstall policy', () => {
    expect(search(decide, { isKeeping: true }, runs / 2)).toBeUndefined()
  }, 60_000)
})

describe('the search finds what is wrong with a decision that', () => {
  test.each(Object.entries(mutants))(
    '%s',
    (_, { mutant, expectedViolation }) => {
      expect(search(mutant, { isKeeping: false }, 3_000, 20_260_101, true)).toMatch(expectedViolation)
    },
    60_000,
  )
})
