import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decide } from '../../src/stages/decide.ts'
import { runsOf, seedOf } from '../kit/effort.ts'
import { counterexampleOf } from './counterexample.ts'
import { runScenario } from './played-scenario.ts'
import { type Features, skyhookSpec, scenarioEvent } from './scenario.ts'

/**
 * Random lives of one node: specs change, agent and host crash at any point, slots are lost, pods appear and refuse
 * eviction, people edit, reset, cordon, delete and create again. The invariants judge every effect as it happens, and
 * once nothing disturbs the node any longer, it must end as the last spec asks. test/mutants has wrong decisions that
 * these searches must catch: else their silence would prove nothing.
 */
const seed = seedOf(20_260_102)
const runs = runsOf(30, 600)

function search(features: Features, numRuns: number): string | undefined {
  const life = fc.property(
    skyhookSpec(features),
    fc.array(scenarioEvent(features), { maxLength: 40 }),
    (spec, scenarioEvents) => {
      runScenario(decide, spec, scenarioEvents)
    },
  )
  return counterexampleOf(life, { numRuns, seed })
}

describe('random lives', () => {
  test('a node keeps all invariants through random events and ends as its spec asks', () => {
    expect(search({ isKeeping: false }, runs)).toBeUndefined()
  })

  test('a node keeps all invariants where uninstall policies keep packages', () => {
    expect(search({ isKeeping: true }, runs / 2)).toBeUndefined()
  })

  test('a node keeps all invariants where its turn for a slot is far or near, and layers are slow or broken', () => {
    expect(search({ isKeeping: false, isDistant: true }, runs / 2)).toBeUndefined()
  })

  test('a node keeps all invariants where its Node is registered again or loses annotations at any moment', () => {
    expect(search({ isKeeping: false, isForgetful: true }, runs)).toBeUndefined()
  })
})
