import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { decide } from '../../src/stages/decide.ts'
import type { Decide } from '../support/node-simulator.ts'
import { corrected, failBySpec, failingSpec } from './failing-specs.ts'
import { Scenario, scenarioEvent, skyhookSpec, type Features, type ScenarioEvent } from './scenario.ts'

/**
 * From every state with failing steps, a spec whose steps succeed leads to complete, and nothing else is needed. States
 * come from random lives in which nearly every spec fails; whether a step fails follows from what it runs with.
 */
const seed = Number(process.env['SEARCH_SEED'] ?? 20_260_104)
const runs = Number(process.env['SEARCH_RUNS'] ?? 100)

const failingLife = (features: Features): fc.Arbitrary<readonly ScenarioEvent[]> =>
  fc.array(
    fc.oneof(
      { weight: 5, arbitrary: scenarioEvent(features) },
      { weight: 2, arbitrary: failingSpec(features).map((spec): ScenarioEvent => ({ kind: 'spec changed', spec })) },
      { weight: 3, arbitrary: fc.constant<ScenarioEvent>({ kind: 'time goes by' }) },
      { weight: 1, arbitrary: fc.constant<ScenarioEvent>({ kind: 'deletion requested' }) },
    ),
    { maxLength: 30 },
  )

function failingScenario(decideUnderTest: Decide, first: SkyhookSpec, events: readonly ScenarioEvent[]): Scenario {
  const scenario = new Scenario(decideUnderTest, first)
  failBySpec(scenario.node)
  for (const event of events) scenario.play(event)
  return scenario
}

/** Versions whose uninstall is under way. */
const uninstalls = ({ node }: Scenario): string[] =>
  Object.entries(node.journal.skyhooks['s']?.packages ?? {}).flatMap(([key, { progress }]) =>
    progress.stage === 'uninstall' && progress.state !== 'retained' ? [key] : [],
  )

/**
 * The spec itself may begin an uninstall of another version, with the configuration of that version: if that fails it
 * needs a correction of its own.
 */
function correct(scenario: Scenario, spec: SkyhookSpec): void {
  const before = uninstalls(scenario)
  scenario.play({ kind: 'spec changed', spec: corrected(spec, '1') })
  try {
    scenario.end()
  } catch (error) {
    const begun = uninstalls(scenario).filter((key) => !before.includes(key))
    if (begun.length === 0) throw error
    scenario.play({ kind: 'spec changed', spec: corrected(spec, '2') })
    scenario.end()
  }
}

function search(
  decideUnderTest: Decide,
  features: Features,
  numRuns: number,
  endOnFailure = false,
): string | undefined {
  const life = fc.property(
    failingSpec(features),
    failingLife(features),
    skyhookSpec(features),
    (first, events, last) => {
      correct(failingScenario(decideUnderTest, first, events), last)
    },
  )
  const { failed, counterexample, errorInstance } = fc.check(life, { numRuns, seed, endOnFailure })
  return failed ? `${String(errorInstance)}\n${JSON.stringify(counterexample)}\nSEARCH_SEED=${seed}` : undefined
}

describe('a correction', () => {
  test('a spec whose steps succeed leads from every failing state to complete', () => {
    expect(search(decide, { isKeeping: false }, runs)).toBeUndefined()
  }, 120_000)

  test('a spec whose steps succeed leads from every failing state to complete where policies keep packages', () => {
    expect(search(decide, { isKeeping: true }, runs)).toBeUndefined()
  }, 120_000)
})
