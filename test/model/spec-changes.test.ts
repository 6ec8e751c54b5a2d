import { describe, expect, test } from 'vitest'
import type { PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { decide } from '../../src/stages/decide.ts'
import { pkg } from '../support/node-simulator-dsl.ts'
import { WatchedNode } from './invariants/index.ts'
import type { Decide } from '../support/node-simulator.ts'
import { mutants } from './mutants.ts'

/**
 * Another spec at every point of a life, and at every point the first one again soon after: whatever was under way, the
 * rules hold (rules.ts) and the node ends complete for the last spec.
 */
const cron = { type: 'service', services: ['cron'] } as const

const a = pkg('1.1.0', { interrupt: cron, configMap: { x: '1' }, configInterrupts: { x: { type: 'reboot' } } })
const b = pkg('1.0.0', { dependsOn: { a: '>=1.0 <3' } })
const spec = (packages: Readonly<Record<string, PackageSpec>>, more: Partial<SkyhookSpec> = {}): SkyhookSpec => ({
  packages,
  ...more,
})
const initialSpec = spec({ a, b })

const changedSpecs: Readonly<Record<string, SkyhookSpec>> = {
  'a higher version': spec({ a: { ...a, version: '2.0.0' }, b }),
  'a lower version': spec({ a: { ...a, version: '1.0.0' }, b }),
  'another image': spec({ a: { ...a, image: 'r/other' }, b }),
  'another configuration': spec({ a: { ...a, configMap: { x: '2' } }, b }),
  'an environment': spec({ a: { ...a, env: [{ name: 'E', value: '1' }] }, b }),
  'another interrupt': spec({ a: { ...a, interrupt: { type: 'reboot' } }, b }),
  'no interrupt': spec({ a: pkg('1.1.0', { configMap: { x: '1' } }), b }),
  'an interrupt of the other': spec({ a, b: { ...b, interrupt: { type: 'reboot' } } }),
  'no dependency': spec({ a, b: pkg('1.0.0') }),
  'a dependency the other way round': spec({ a: { ...a, dependsOn: { b: '1.0.0' } }, b: pkg('1.0.0') }),
  'one package less': spec({ b: pkg('1.0.0') }),
  'one package more': spec({ a, b, c: pkg('1.0.0', { interrupt: { type: 'noop' } }) }),
  'one after the other': spec({ a, b: pkg('1.0.0') }, { serial: true }),
  'a package to be uninstalled': spec({ a: { ...a, uninstall: { enabled: true, apply: true } }, b: pkg('1.0.0') }),
  'nothing at all': spec({}),
}

type Change = { readonly atTurn: number; readonly to: SkyhookSpec }

/** From nothing through the changes to the end; how many turns it took. */
function runToCompletion(decideUnderTest: Decide, changes: readonly Change[]): number {
  const node = new WatchedNode(decideUnderTest)
  node.apply('s', initialSpec)
  for (let turn = 0; turn < 400; turn++) {
    const due = changes.filter(({ atTurn }) => atTurn === turn)
    for (const { to } of due) node.apply('s', to)
    const isLast = changes.every(({ atTurn }) => atTurn <= turn)
    if (node.turn({}) || node.finish()) continue
    if (isLast && node.annotation('status_s') === 'complete' && node.slots.length === 0) return turn
    node.nowMs += 1_000
  }
  throw new Error(`never complete after ${JSON.stringify(changes)}`)
}

/** What is broken first when the spec changes to one of these at some turn and, if asked for, back two turns later. */
function firstViolation(
  decideUnderTest: Decide,
  specs: readonly SkyhookSpec[],
  isReverted: boolean,
): string | undefined {
  for (const to of specs)
    for (let atTurn = 1; atTurn <= turns; atTurn++)
      try {
        runToCompletion(decideUnderTest, [
          { atTurn, to },
          ...(isReverted ? [{ atTurn: atTurn + 2, to: initialSpec }] : []),
        ])
      } catch (error) {
        return `at turn ${atTurn}: ${String(error)}`
      }
  return undefined
}

const turns = runToCompletion(decide, [])
const timeoutMs = 60_000

describe('whenever the spec changes, the node ends as the last one says and no rule is broken on the way', () => {
  test.each(Object.entries(changedSpecs))(
    'to %s',
    (_, to) => expect(firstViolation(decide, [to], false)).toBeUndefined(),
    timeoutMs,
  )
  test.each(Object.entries(changedSpecs))(
    'to %s and back',
    (_, to) => expect(firstViolation(decide, [to], true)).toBeUndefined(),
    timeoutMs,
  )

  test('a decision that forgets the interrupt that is owed is found out', () => {
    const { mutant } = mutants['forgets the interrupt that is owed'] ?? {}
    expect(mutant && firstViolation(mutant, Object.values(changedSpecs), false)).toMatch(/ before |complete/)
  })

  test('at many points', () => expect(turns).toBeGreaterThan(20))
})
