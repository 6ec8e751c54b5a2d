import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decide } from '../../src/stages/decide.ts'
import { runsOf, seedOf } from '../kit/effort.ts'
import { counterexampleOf } from './counterexample.ts'
import { Scenario } from './played-scenario.ts'
import { scenarioEvent } from './scenario.ts'
import type { Decide } from '../kit/node-simulator/node-simulator.ts'

/** Anyone can write annotations; whatever they hold, the outcome must be a decision. */
const hostileText = fc.oneof(
  fc.string(),
  fc.json(),
  fc.constantFrom(
    '',
    'null',
    '0',
    '[]',
    '{}',
    '{"a|1.0.0":null}',
    '{"a|1.0.0":[]}',
    '{"":{}}',
    '{"|":{"stage":"apply"}}',
    '{"__proto__":{"stage":"config"}}',
  ),
  fc.constantFrom(
    '{"rev":"1","sha256":1}',
    '{"rev":1,"sha256":""}',
    '{"rev":-1,"sha256":"x","reboots":[]}',
    '{"rev":1e309,"sha256":"x"}',
  ),
  fc
    .record({
      key: fc.constantFrom('a|1.0.0', 'a|2.0.0', 'b|1.0.0', 'x|1', 'a', 'a|1.0.0|2'),
      stage: fc.constantFrom<unknown[]>(
        'apply',
        'config',
        'interrupt',
        'post-interrupt',
        'uninstall',
        'upgrade',
        'dance',
        7,
        null,
      ),
      state: fc.constantFrom<unknown[]>('complete', 'in_progress', 'erroring', 'skipped', 'unknown', 'x', 7, null),
    })
    .map(({ key, stage, state }) =>
      JSON.stringify({ [key]: { name: 'a', version: '1.0.0', image: 'r/pkg', stage, state } }),
    ),
)
const agentKeys = ['nodeState_s', 'journal_s', 'reason_s', 'status_s'] as const
const cordonKeys = ['cordon_s', 'cordon_x', 'cordoned-before', 'keep-off-before', 'keep-cordoned'] as const
const hostileEdit = (keys: readonly string[]): fc.Arbitrary<{ readonly key: string; readonly text: string | null }> =>
  fc.record({ key: fc.constantFrom(...keys), text: fc.option(hostileText, { nil: null }) })

/**
 * A scenario in which annotations are overwritten at any time.
 */
function runHostileScenario(
  decideUnderTest: Decide,
  scenarioParts: readonly (Parameters<Scenario['play']>[0] | { readonly key: string; readonly text: string | null })[],
): Scenario {
  const scenario = new Scenario(decideUnderTest, {
    packages: {
      a: { version: '1.0.0', image: 'r/pkg', interrupt: { type: 'noop' } },
      b: { version: '1.0.0', image: 'r/pkg' },
    },
  })
  for (const part of scenarioParts) {
    if ('kind' in part) scenario.play(part)
    else
      scenario.node.edit((annotations) => {
        scenario.node.evidence.forgetCompletion('s')
        if (part.text === null) delete annotations[`skyhook.nvidia.com/${part.key}`]
        else annotations[`skyhook.nvidia.com/${part.key}`] = part.text
      })
  }
  return scenario
}

describe('hostile annotations', () => {
  const scenarioParts = (keys: readonly string[]) =>
    fc.array(fc.oneof({ weight: 2, arbitrary: scenarioEvent() }, { weight: 1, arbitrary: hostileEdit(keys) }), {
      maxLength: 25,
    })
  const lives = { numRuns: runsOf(60, 250), seed: seedOf(20_260_103) }

  test('a node with arbitrary text in its own annotations ends as its spec asks', () => {
    const property = fc.property(scenarioParts(agentKeys), (parts) => runHostileScenario(decide, parts).end())
    expect(counterexampleOf(property, lives)).toBeUndefined()
  })

  test('decide stays level-triggered and settles with arbitrary text in all annotations', () => {
    const property = fc.property(scenarioParts([...agentKeys, ...cordonKeys]), (parts) =>
      runHostileScenario(decide, parts).settle(),
    )
    expect(counterexampleOf(property, lives)).toBeUndefined()
  })

  test('the search catches a decision that trusts annotations', () => {
    const trusting: Decide = (snapshot, reasons) => {
      JSON.parse(snapshot.node.metadata.annotations?.['skyhook.nvidia.com/nodeState_s'] ?? '{}')
      return decide(snapshot, reasons)
    }
    const property = fc.property(scenarioParts(agentKeys), (parts) => runHostileScenario(trusting, parts).settle())
    expect(counterexampleOf(property, lives)).toContain('JSON')
  })
})
