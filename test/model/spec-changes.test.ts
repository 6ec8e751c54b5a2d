import { describe, expect, test } from 'vitest'
import type { PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { decide } from '../../src/stages/decide.ts'
import { pkg } from '../kit/node-simulator/node-simulator-dsl.ts'
import { roundStep } from '../kit/effort.ts'
import { WatchedNode } from './invariants/index.ts'
import { ReplayedDecisions } from './replayed-decisions.ts'

/**
 * The spec changes at every point of a rollout, and soon after changes back: whatever was under way, the invariants
 * hold and the node ends complete for the last spec.
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
  'another configMap': spec({ a: { ...a, configMap: { x: '2' } }, b }),
  'an environment variable': spec({ a: { ...a, env: [{ name: 'E', value: '1' }] }, b }),
  'another interrupt': spec({ a: { ...a, interrupt: { type: 'reboot' } }, b }),
  'no interrupt': spec({ a: pkg('1.1.0', { configMap: { x: '1' } }), b }),
  'an interrupt of the other package': spec({ a, b: { ...b, interrupt: { type: 'reboot' } } }),
  'no dependency': spec({ a, b: pkg('1.0.0') }),
  'a reversed dependency': spec({ a: { ...a, dependsOn: { b: '1.0.0' } }, b: pkg('1.0.0') }),
  'one package less': spec({ b: pkg('1.0.0') }),
  'one package more': spec({ a, b, c: pkg('1.0.0', { interrupt: { type: 'noop' } }) }),
  'serial packages': spec({ a, b: pkg('1.0.0') }, { serial: true }),
  'a package to be uninstalled': spec({ a: { ...a, uninstall: { enabled: true, apply: true } }, b: pkg('1.0.0') }),
  'no packages': spec({}),
}

type Change = { readonly atRound: number; readonly to: SkyhookSpec }

/** How many rounds it takes from nothing through the changes to completion. */
function runToCompletion(changes: readonly Change[], decideUnderTest = decide, onRound?: () => void): number {
  const node = new WatchedNode(decideUnderTest)
  node.apply('s', initialSpec)
  for (let round = 0; round < 400; round++) {
    onRound?.()
    const due = changes.filter(({ atRound }) => atRound === round)
    for (const { to } of due) node.apply('s', to)
    const isLast = changes.every(({ atRound }) => atRound <= round)
    if (node.reconcile() || node.finish()) continue
    if (isLast && node.annotation('status_s') === 'complete' && node.slots.length === 0) return round
    node.nowMs += 1_000
  }
  throw new Error(`never complete after ${JSON.stringify(changes)}`)
}

/** The first violation when the spec changes at any round and, if `isReverted`, back two rounds later. */
function firstViolation(to: SkyhookSpec, isReverted: boolean): string | undefined {
  const decisions = new ReplayedDecisions()
  runToCompletion([], decisions.recording(decide), () => decisions.beginRound())
  for (let atRound = 1; atRound <= rounds; atRound += roundStep)
    try {
      const back = isReverted ? [{ atRound: atRound + 2, to: initialSpec }] : []
      runToCompletion([{ atRound, to }, ...back], decisions.replaying(decide, atRound))
    } catch (error) {
      return `at round ${atRound}: ${String(error)}`
    }
  return undefined
}

const rounds = runToCompletion([])

describe('a spec change at every point', () => {
  test.each(Object.entries(changedSpecs))('a change to %s keeps all invariants and ends complete', (_, to) =>
    expect(firstViolation(to, false)).toBeUndefined(),
  )
  test.each(Object.entries(changedSpecs))('a change to %s and back keeps all invariants and ends complete', (_, to) =>
    expect(firstViolation(to, true)).toBeUndefined(),
  )

  test('an undisturbed rollout takes more than 20 rounds, so changes fall on many points', () =>
    expect(rounds).toBeGreaterThan(20))
})
