import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decide } from '../../src/stages/decide.ts'
import { Scenario, scenarioEvent } from './scenario.ts'
import { FaultyNode } from './faulty-node.ts'
import type { Decide } from '../support/node-simulator.ts'

/** What stands in annotations is written by anybody; what a decision makes of it must be a decision. */
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
 * A life in which annotations are scribbled upon at any time; true once the node came to rest, or was held for a reason
 * it tells.
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

describe('whatever is written into the annotations', () => {
  const scenarioParts = (keys: readonly string[]) =>
    fc.array(fc.oneof({ weight: 2, arbitrary: scenarioEvent() }, { weight: 1, arbitrary: hostileEdit(keys) }), {
      maxLength: 25,
    })
  const counterexampleOf = (property: fc.IProperty<unknown>): string | undefined => {
    const { failed, counterexample, errorInstance, seed } = fc.check(property, {
      numRuns: 250,
      seed: Number(process.env['SEARCH_SEED'] ?? 20_260_103),
    })
    return failed ? `${String(errorInstance)}\n${JSON.stringify(counterexample)}\nseed ${seed}` : undefined
  }

  test('of our own, the node ends as the spec says', () => {
    expect(
      counterexampleOf(fc.property(scenarioParts(agentKeys), (parts) => runHostileScenario(decide, parts).end())),
    ).toBeUndefined()
  }, 60_000)

  test('of the cordon, decide answers, twice alike, and settles', () => {
    const property = fc.property(scenarioParts([...agentKeys, ...cordonKeys]), (parts) =>
      runHostileScenario(decide, parts).settle(),
    )
    expect(counterexampleOf(property)).toBeUndefined()
  }, 60_000)

  test('a decision that trusts them is found out', () => {
    const trusting: Decide = (snapshot, reasons) => {
      JSON.parse(snapshot.node.metadata.annotations?.['skyhook.nvidia.com/nodeState_s'] ?? '{}')
      return decide(snapshot, reasons)
    }
    expect(
      counterexampleOf(fc.property(scenarioParts(agentKeys), (parts) => runHostileScenario(trusting, parts).settle())),
    ).toContain('JSON')
  })
})

describe('the cost of a decision', () => {
  /** Of a node on which everything is complete, as an agent spends its life. */
  test('with 50 Skyhooks of 5 packages', () => {
    const node = new FaultyNode(decide, {})
    const packages = Object.fromEntries(
      ['a', 'b', 'c', 'd', 'e'].map((name) => [
        name,
        { version: '1.0.0', image: 'r/pkg', configMap: { x: name.repeat(200) }, env: [{ name: 'E', value: name }] },
      ]),
    )
    for (let index = 0; index < 50; index++) node.apply(`s${index}`, { packages })
    for (let round = 0; round < 3_000; round++) {
      const moved = node.turn()
      if (node.finish() || moved) continue
      if (node.slots.length === 0 && node.annotation('status_s9') === 'complete') break
      node.nowMs += 1_000
    }
    node.nowMs += 60_000
    node.turn()
    expect([...node.views.keys()].filter((name) => node.annotation(`status_${name}`) !== 'complete')).toEqual([])
    const snapshot = node.snapshot()
    const times: number[] = []
    for (let round = 0; round < 50; round++) {
      const before = process.threadCpuUsage() // the time of others on a busy machine is not ours
      const plan = decide(snapshot, node.lastReasons)
      const { user, system } = process.threadCpuUsage(before)
      times.push((user + system) / 1000)
      expect(plan.actions).toEqual([])
    }
    const median = times.toSorted((a, b) => a - b)[25] ?? Infinity
    console.info(
      `decide with 250 complete packages: median ${median.toFixed(2)} ms, worst ${Math.max(...times).toFixed(2)} ms`,
    )
    expect(median).toBeLessThan(50) // 20 ms on a machine of the smallest size
  }, 60_000)
})
