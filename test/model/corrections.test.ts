import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { censusNode } from '../../src/census/model/cluster-view.ts'
import { finalizerName, type SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { decide } from '../../src/stages/decide.ts'
import { planFinalizer } from '../../src/census/model/finalizer.ts'
import { countsOf } from '../kit/objects/census-objects.ts'
import { runsOf, seedOf } from '../kit/effort.ts'
import { corrected, failBySpec, failingSpec, repaired } from './failing-specs.ts'
import { counterexampleOf } from './counterexample.ts'
import { Scenario } from './played-scenario.ts'
import { scenarioEvent, skyhookSpec, type Features, type ScenarioEvent } from './scenario.ts'

/**
 * From every state with failing steps, a spec whose steps succeed leads to complete, and nothing else is needed. States
 * come from random lives in which nearly every spec fails; whether a step fails follows from what it runs with.
 */
const seed = seedOf(20_260_104)
const runs = runsOf(10, 200)

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

function failingScenario(first: SkyhookSpec, events: readonly ScenarioEvent[]): Scenario {
  const scenario = new Scenario(decide, first)
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
    if (begun.length === 0 || !String(error).includes('never complete')) throw error
    scenario.play({ kind: 'spec changed', spec: corrected(spec, '2') })
    scenario.end()
  }
}

type Life = readonly [first: SkyhookSpec, events: readonly ScenarioEvent[], last: SkyhookSpec | null]

const life = (features: Features): fc.Arbitrary<Life> =>
  fc.tuple(failingSpec(features), failingLife(features), fc.option(skyhookSpec(features), { nil: null, freq: 1 }))

/** The last spec is another one, or the current one repaired. */
function live([first, events, last]: Life): void {
  const specs = events.flatMap((event) => (event.kind === 'spec changed' ? [event.spec] : []))
  correct(failingScenario(first, events), last ?? repaired(specs.at(-1) ?? first))
}

const search = (features: Features): string | undefined =>
  counterexampleOf(fc.property(life(features), live), { numRuns: runs, seed })

/** Whatever fails: once the Skyhook is being deleted, its finalizer goes. */
function deletionEnds(scenario: Scenario): void {
  const { node } = scenario
  scenario.calm()
  scenario.play({ kind: 'deletion requested' })
  const view = node.views.get('s')
  if (!view) return
  scenario.liveUntil(node.nowMs + 3_600_000)
  const skyhook = { ...view, metadata: { ...view.metadata, finalizers: [finalizerName] } }
  const counts = countsOf(skyhook, [censusNode(node.node)])
  const { nowMs } = node
  const look = { slots: [], looks: 1, atMs: 0 }
  const plan = planFinalizer({ skyhook, counts, isDead: () => false, deletionObservedAtMs: 0, look, nowMs })
  expect([plan.action, node.slots]).toEqual(['remove', []])
}

describe('a correction', () => {
  test('a spec whose steps succeed leads from every failing state to complete', () => {
    expect(search({ isKeeping: false })).toBeUndefined()
  })

  test('a spec whose steps succeed leads from every failing state to complete where policies keep packages', () => {
    expect(search({ isKeeping: true })).toBeUndefined()
  })
})

test('the deletion of a Skyhook ends from every failing state', () => {
  const features = { isKeeping: true }
  const deleted = fc.property(life(features), ([first, events]) => deletionEnds(failingScenario(first, events)))
  expect(counterexampleOf(deleted, { numRuns: runs, seed })).toBeUndefined()
})
