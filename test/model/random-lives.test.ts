import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decide } from '../../src/stages/decide.ts'
import { isThorough, runsOf, seedOf } from '../kit/effort.ts'
import { counterexampleOf } from './counterexample.ts'
import { runScenario } from './played-scenario.ts'
import { type Features, skyhookSpec, scenarioEvent } from './scenario.ts'
import { mutants } from './mutants.ts'
import type { Decide } from '../kit/node-simulator/node-simulator.ts'

/**
 * Random lives of one node: specs change, agent and host crash at any point, slots are lost, pods appear and refuse
 * eviction, people edit, reset, cordon, delete and create again. The invariants judge every effect as it happens, and
 * once nothing disturbs the node any longer, it must end as the last spec asks. The same search must catch every
 * mutant, or its silence would prove nothing.
 */
const seed = seedOf(20_260_102)
const runs = runsOf(30, 600)

function search(
  decideUnderTest: Decide,
  features: Features,
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
  return counterexampleOf(life, { numRuns, seed: from, endOnFailure })
}

describe('random lives', () => {
  test('a node keeps all invariants through random events and ends as its spec asks', () => {
    expect(search(decide, { isKeeping: false }, runs)).toBeUndefined()
  })

  test('a node keeps all invariants where uninstall policies keep packages', () => {
    expect(search(decide, { isKeeping: true }, runs / 2)).toBeUndefined()
  })

  test('a node keeps all invariants where its turn for a slot is far or near, and layers are slow or broken', () => {
    expect(search(decide, { isKeeping: false, isDistant: true }, runs / 2)).toBeUndefined()
  })

  test('a node keeps all invariants where its Node is registered again or loses annotations at any moment', () => {
    expect(search(decide, { isKeeping: false, isForgetful: true }, runs)).toBeUndefined()
  })
})

describe.skipIf(!isThorough)('mutants', () => {
  test.each(Object.entries(mutants))(
    'the search catches a decision that %s',
    (_, { mutant, expectedViolation, needs }) => {
      expect(search(mutant, { isKeeping: false, ...needs }, 3_000, 20_260_101, true)).toMatch(expectedViolation)
    },
  )
})
