import { describe, expect, test } from 'vitest'
import type { SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { decide } from '../../src/stages/decide.ts'
import type { StageEvent } from '../../src/stages/model/plan.ts'
import { pkg } from '../support/node-simulator-dsl.ts'
import { Rules } from './invariants.ts'
import { TroubledNode } from './faulty-node.ts'
import type { Decide } from './faulty-node.ts'

/**
 * Death at every point: between the journal of any decision and each of its actions the agent, or the host, dies once. The end
 * must be that of the undisturbed life, and a step may run twice only where its outcome was said to be unknown.
 */
type Death = { readonly atTurn: number; readonly afterActions: number; readonly of: 'agent' | 'host'; readonly loses: boolean }

const LIVES: Readonly<Record<string, readonly SkyhookSpec[]>> = {
  'an install of a chain': [{ packages: { a: pkg('1.0.0'), b: pkg('1.0.0', { dependsOn: { a: '1.0.0' } }) } }],
  'a reboot': [{ packages: { a: pkg('1.0.0', { interrupt: { type: 'reboot' } }), b: pkg('1.0.0') } }],
  'a reboot that the package requires': [
    { packages: { required: pkg('1.0.0', { interrupt: { type: 'reboot', when: 'required' } }), b: pkg('1.0.0') } },
  ],
  'a reboot that it does not': [{ packages: { a: pkg('1.0.0', { interrupt: { type: 'reboot', when: 'required' } }) } }],
  'a service interrupt of two': [
    {
      packages: {
        a: pkg('1.0.0', { interrupt: { type: 'service', services: ['cron'] } }),
        b: pkg('1.0.0', { interrupt: { type: 'service', services: ['containerd'] } }),
      },
    },
  ],
  'an upgrade, a configuration and a removal': [
    { packages: { a: pkg('1.0.0'), b: pkg('1.0.0', { configMap: { x: '1' } }), c: pkg('1.0.0') } },
    { packages: { a: pkg('2.0.0'), b: pkg('1.0.0', { configMap: { x: '2' }, configInterrupts: { x: { type: 'reboot' } } }) } },
  ],
  'a downgrade': [
    { serial: true, packages: { a: pkg('2.0.0'), b: pkg('1.0.0') } },
    { serial: true, packages: { a: pkg('1.0.0'), b: pkg('1.0.0') } },
  ],
}

type Lived = { readonly state: string | undefined; readonly ran: readonly string[]; readonly turns: number; readonly unknown: number }

function live(decideSo: Decide, specs: readonly SkyhookSpec[], death?: Death): Lived {
  const events: StageEvent[] = []
  const rules = new Rules(decideSo)
  const telling: Decide = (world, reasons) => {
    const plan = decideSo(world, reasons)
    events.push(...plan.events)
    return plan
  }
  const node = new TroubledNode(telling, rules)
  rules.node = node
  node.requiring.add('required')
  let turns = 0
  for (const spec of specs) {
    node.apply('s', spec)
    for (let round = 0; round < 400; round++) {
      const dies = death?.atTurn === turns++
      const moved = node.turn(dies ? { dieAfter: death.afterActions } : {})
      if (dies && death.of === 'agent') node.restartAgent()
      if (dies && death.of === 'host') node.powerCut(death.loses)
      if (moved || dies || node.finish()) continue
      if (node.annotation('status_s') === 'complete' && node.leases.length === 0) break
      node.nowMs += 1_000
    }
    expect([node.annotation('status_s'), node.leases, node.node.spec?.unschedulable === true]).toEqual(['complete', [], false])
    rules.isComplete('s', spec)
  }
  const unknown = events.filter(({ type }) => type === 'stepUnknown').length
  return { state: node.annotation('nodeState_s'), ran: node.ran.toSorted(), turns, unknown }
}

/** The first death after which the life ends otherwise, or runs what it had run. */
function firstDifference(decideSo: Decide, specs: readonly SkyhookSpec[]): string | undefined {
  const undisturbed = live(decideSo, specs)
  for (let atTurn = 0; atTurn < undisturbed.turns; atTurn++)
    for (const of of ['agent', 'host'] as const)
      for (const [afterActions, loses] of [
        [0, false],
        [1, false],
        [2, true],
        [9, false],
        [9, true],
      ] as const) {
        const death = { atTurn, afterActions, of, loses }
        const lived = live(decideSo, specs, death)
        if (lived.state !== undisturbed.state) return `${JSON.stringify(death)}: ${lived.state}`
        const repeated = lived.ran.length - undisturbed.ran.length
        if (repeated > lived.unknown || (of === 'agent' && repeated !== 0)) return `${JSON.stringify(death)}: ran ${lived.ran.join('; ')}`
      }
  return undefined
}

describe('wherever the agent or the host dies, the end is the same and nothing runs twice unsaid', () => {
  test.each(Object.entries(LIVES))(
    '%s',
    (_, specs) => {
      expect(firstDifference(decide, specs)).toBeUndefined()
    },
    60_000,
  )

  test('a decision that repeats a stage after each start of its agent is found out', () => {
    const repeating: Decide = (world, reasons) => {
      if (world.prepared.size > 0) return decide(world, reasons)
      const skyhooks = Object.entries(world.journal.skyhooks).map(([name, record]) => {
        const packages = Object.entries(record.packages).map(([key, { attempt: _attempt, ...entry }]) => [key, entry])
        return [name, { ...record, packages: Object.fromEntries(packages) as typeof record.packages }]
      })
      return decide(
        { ...world, journal: { ...world.journal, skyhooks: Object.fromEntries(skyhooks) as typeof world.journal.skyhooks } },
        reasons,
      )
    }
    const outcome = (): string => firstDifference(repeating, LIVES['an install of a chain'] ?? []) ?? 'nothing found'
    let found = ''
    try {
      found = outcome()
    } catch (error) {
      found = String(error)
    }
    expect(found).toMatch(/ran |beside another step|runs again/)
  })
})
