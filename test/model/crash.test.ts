import { describe, expect, test } from 'vitest'
import { isRunning } from '../../src/schemas/package-record.ts'
import type { SkyhookSpec } from '../../src/schemas/skyhook.ts'
import { decide } from '../../src/stages/decide.ts'
import { dropAttempt } from '../../src/stages/model/transitions.ts'
import { pkg } from '../kit/node-simulator/node-simulator-dsl.ts'
import { roundStep } from '../kit/effort.ts'
import { WatchedNode } from './invariants/index.ts'
import type { Decide } from '../kit/node-simulator/node-simulator.ts'
import { ReplayedDecisions } from './replayed-decisions.ts'

/**
 * A crash at every point: the agent or the host dies once between the journal of any decision and each of its actions.
 * The end must be that of the undisturbed run, and a step may run twice only where its outcome was reported as unknown.
 */
type Crash = {
  readonly atRound: number
  readonly afterActions: number
  readonly of: 'agent' | 'host'
  readonly losesWrites: boolean
}

const specHistories: Readonly<Record<string, readonly SkyhookSpec[]>> = {
  'an install of a chain': [{ packages: { a: pkg('1.0.0'), b: pkg('1.0.0', { dependsOn: { a: '1.0.0' } }) } }],
  'a reboot': [{ packages: { a: pkg('1.0.0', { interrupt: { type: 'reboot' } }), b: pkg('1.0.0') } }],
  'a reboot that the package requires': [
    { packages: { required: pkg('1.0.0', { interrupt: { type: 'reboot', when: 'required' } }), b: pkg('1.0.0') } },
  ],
  'a reboot that the package does not require': [
    { packages: { a: pkg('1.0.0', { interrupt: { type: 'reboot', when: 'required' } }) } },
  ],
  'a merged service interrupt of two packages': [
    {
      packages: {
        a: pkg('1.0.0', { interrupt: { type: 'service', services: ['cron'] } }),
        b: pkg('1.0.0', { interrupt: { type: 'service', services: ['containerd'] } }),
      },
    },
  ],
  'an upgrade, a configuration and a removal': [
    { packages: { a: pkg('1.0.0'), b: pkg('1.0.0', { configMap: { x: '1' } }), c: pkg('1.0.0') } },
    {
      packages: {
        a: pkg('2.0.0'),
        b: pkg('1.0.0', { configMap: { x: '2' }, configInterrupts: { x: { type: 'reboot' } } }),
      },
    },
  ],
  'a downgrade': [
    { serial: true, packages: { a: pkg('2.0.0'), b: pkg('1.0.0') } },
    { serial: true, packages: { a: pkg('1.0.0'), b: pkg('1.0.0') } },
  ],
}

type RunResult = {
  readonly state: string | undefined
  readonly executedSteps: readonly string[]
  readonly rounds: number
  readonly unknown: number
}

function runToCompletion(
  decideUnderTest: Decide,
  specs: readonly SkyhookSpec[],
  { crash, onRound }: { readonly crash?: Crash; readonly onRound?: () => void } = {},
): RunResult {
  const node = new WatchedNode(decideUnderTest)
  node.requiringPackages.add('required')
  let rounds = 0
  for (const spec of specs) {
    node.apply('s', spec)
    for (const lastRound = rounds + 400; rounds < lastRound; ) {
      onRound?.()
      const isCrashRound = crash?.atRound === rounds++
      const moved = node.reconcile(isCrashRound ? { crashAfterActions: crash.afterActions } : {})
      if (isCrashRound && crash.of === 'agent') node.restartAgent()
      if (isCrashRound && crash.of === 'host') node.reboot(crash.losesWrites)
      if (moved || isCrashRound || node.finish()) continue
      if (node.annotation('status_s') === 'complete' && node.slots.length === 0) break
      node.nowMs += 1_000
    }
    expect([node.annotation('status_s'), node.slots, node.node.spec?.unschedulable === true]).toEqual([
      'complete',
      [],
      false,
    ])
    node.assertComplete('s', spec)
  }
  const unknown = node.events.filter(({ type }) => type === 'stepUnknown').length
  return {
    state: node.annotation('nodeState_s'),
    executedSteps: [...node.executedSteps, ...node.executedInterrupts].toSorted(),
    rounds,
    unknown,
  }
}

/** The first crash that changes the end, or repeats a step without need. */
function firstDifference(decideUnderTest: Decide, specs: readonly SkyhookSpec[]): string | undefined {
  const decisions = new ReplayedDecisions()
  const onRound = (): void => decisions.beginRound()
  const baseline = runToCompletion(decisions.recording(decideUnderTest), specs, { onRound })
  for (let atRound = 0; atRound < baseline.rounds; atRound += roundStep)
    for (const victim of ['agent', 'host'] as const)
      for (const [afterActions, losesWrites] of [
        [0, false],
        [1, false],
        [2, true],
        [9, false],
        [9, true],
      ] as const) {
        const crash = { atRound, afterActions, of: victim, losesWrites }
        const run = runToCompletion(decisions.replaying(decideUnderTest, atRound), specs, { crash })
        if (run.state !== baseline.state) return `${JSON.stringify(crash)}: ${run.state}`
        const repeated = run.executedSteps.length - baseline.executedSteps.length
        if (repeated > run.unknown || (victim === 'agent' && repeated !== 0))
          return `${JSON.stringify(crash)}: ran ${run.executedSteps.join('; ')}`
      }
  return undefined
}

describe('crashes at every point', () => {
  test.each(Object.entries(specHistories))(
    'a crash during %s changes neither the end nor repeats a step silently',
    (_, specs) => {
      expect(firstDifference(decide, specs)).toBeUndefined()
    },
  )

  test('the check catches a decision that repeats a stage after each restart of its agent', () => {
    const repeating: Decide = (snapshot, reasons) => {
      if (snapshot.preparations.size > 0) return decide(snapshot, reasons)
      const skyhooks = Object.entries(snapshot.journal.skyhooks).map(([name, record]) => {
        const packages = Object.entries(record.packages).map(([key, entry]) => [
          key,
          isRunning(entry) ? dropAttempt(entry) : entry,
        ])
        return [name, { ...record, packages: Object.fromEntries(packages) as typeof record.packages }]
      })
      return decide(
        {
          ...snapshot,
          journal: { ...snapshot.journal, skyhooks: Object.fromEntries(skyhooks) as typeof snapshot.journal.skyhooks },
        },
        reasons,
      )
    }
    const outcome = (): string =>
      firstDifference(repeating, specHistories['an install of a chain'] ?? []) ?? 'found nothing'
    let found = ''
    try {
      found = outcome()
    } catch (error) {
      found = String(error)
    }
    expect(found).toMatch(/ran |beside another step|runs again|succeeds a second time/)
  })
})
