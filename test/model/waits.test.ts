import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Interrupt, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { decide } from '../../src/stages/decide.ts'
import { runsOf, seedOf } from '../kit/effort.ts'
import type { Decide } from '../kit/node-simulator/node-simulator.ts'
import { cron, reboot } from '../kit/node-simulator/node-simulator-dsl.ts'
import { counterexampleOf } from './counterexample.ts'
import { Scenario } from './played-scenario.ts'
import type { ScenarioEvent } from './scenario.ts'

/** What holds a node up, or no longer does, with much time in between. */
const waits: readonly ScenarioEvent[] = [
  ...Array.from({ length: 8 }, (): ScenarioEvent => ({ kind: 'time goes by' })),
  { kind: 'pod created', name: 'cart', refuses: true, isProtected: false },
  { kind: 'pod created', name: 'job', refuses: false, isProtected: true },
  { kind: 'pods allow eviction' },
  { kind: 'protected pods end' },
  { kind: 'slots granted', granted: false },
  { kind: 'slots granted', granted: true },
  { kind: 'slots confirmed', confirmed: false },
  { kind: 'slots confirmed', confirmed: true },
  { kind: 'annotated', key: 'pause', on: true },
  { kind: 'annotated', key: 'pause', on: false },
  { kind: 'layers', areSlow: true, areBroken: true },
  { kind: 'layers', areSlow: false, areBroken: false },
  { kind: 'turn', isFar: true },
  { kind: 'steps fail', of: 'a' },
  { kind: 'labelled', key: 'pool', value: 'y' },
  { kind: 'labelled', key: 'pool', value: 'x' },
]

/** A package for which the node has to be drained. */
const spec: fc.Arbitrary<SkyhookSpec> = fc.record({
  nodeSelectors: fc.constant({ matchLabels: { pool: 'x' } }),
  podNonInterruptLabels: fc.constant({ matchLabels: { workload: 'never' } }),
  packages: fc.record({
    a: fc.record({
      version: fc.constantFrom('1.0.0', '1.1.0'), // the layers of one of them may be broken
      image: fc.constant('r/pkg'),
      interrupt: fc.constantFrom<Interrupt[]>(cron, reboot),
    }),
  }),
  drain: fc.constantFrom<NonNullable<SkyhookSpec['drain']>[]>(
    { yieldAfterSeconds: 30 },
    { yieldAfterSeconds: 30, cordon: 'late' },
    { timeoutSeconds: 20, onTimeout: 'release' },
  ),
})

const usualSeed = 20_260_104

/** `Scenario` throws where plans ask to be made again at once, over and over. */
function search(decideUnderTest: Decide, seed: number): string | undefined {
  const life = fc.property(
    spec,
    fc.array(fc.constantFrom(...waits), { minLength: 10, maxLength: 30 }),
    (initial, events) => {
      const scenario = new Scenario(decideUnderTest, initial)
      for (const event of events) scenario.play(event)
    },
  )
  return counterexampleOf(life, { numRuns: runsOf(20, 500), seed })
}

test('a node that waits makes no plan again without a pause or an action', () => {
  expect(search(decide, seedOf(usualSeed))).toBeUndefined()
})

test('the search catches a plan that asks again for a moment that has passed', () => {
  const repeating: Decide = (snapshot, reasons) => {
    const plan = decide(snapshot, reasons)
    const drains = Object.values(snapshot.journal.skyhooks).map(({ drain }) => drain)
    const pausedUntilMs = drains.flatMap((drain) => (drain?.state === 'paused' ? [drain.untilMs] : []))
    return { ...plan, requeueAtMs: Math.min(plan.requeueAtMs, ...pausedUntilMs) }
  }
  // some seeds have no life that meets the mistake
  expect(search(repeating, usualSeed)).toContain('busy loop')
})
