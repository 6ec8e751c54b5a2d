/** Agents and censuses of this version beside a ledger that a newer one has written. */
import { expect, test } from 'vitest'
import { ledgerAnnotation } from '../../../src/lease/ledger.ts'
import { readSlot, type Lease } from '../../../src/lease/slot.ts'
import { reasonKey } from '../../../src/schemas/annotations.ts'
import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { invariants } from '../invariants/all.ts'
import { hostOfClient } from '../invariants/cluster.ts'
import type { Invariant } from '../invariants/invariant.ts'
import { packageSpec } from './plan-skyhooks.ts'
import { skyhooksAtMs } from './plan-time.ts'
import type { Plan } from './plan.ts'
import { runPlan } from './run-plan.ts'

/** What happened while the ledger was of the newer version. */
type Meanwhile = {
  /** Slots that nodes took. */
  starts: number
  ledgerWrites: number
  readonly reasons: Set<string>
}

const newer = { id: 0, atMs: skyhooksAtMs + 4_000, kind: 'ledger-newer', node: 'host1', skyhook: 's1', forMs: 60_000 }

async function runBeside(
  spec: Partial<SkyhookSpec>,
): Promise<Meanwhile & { readonly violation: unknown; readonly met: number }> {
  const meanwhile: Meanwhile = { starts: 0, ledgerWrites: 0, reasons: new Set() }
  let isNewer = false
  const recorder: Invariant = {
    name: 'ledger-record',
    watch: () => ({
      on(event) {
        if (event.kind !== 'commit') return
        const { resource, type, version } = event.change
        const { annotations = {} } = version.object.metadata
        if (resource.plural === 'nodes' && isNewer) meanwhile.reasons.add(annotations[reasonKey('s1')] ?? '')
        if (resource.plural !== 'leases') return
        const isLedger = annotations[ledgerAnnotation] !== undefined
        if (isLedger && event.client === 'admin') isNewer = type !== 'DELETED'
        else if (isLedger && isNewer) meanwhile.ledgerWrites++
        const isSlot = readSlot(version.object as unknown as Lease) !== undefined
        const isStart = isSlot && type === 'ADDED' && hostOfClient(event.client, 'agent') !== undefined
        if (isStart && isNewer) meanwhile.starts++
      },
      checks: () => meanwhile.reasons.size,
    }),
  }
  const plan: Plan = {
    seed: 1,
    nodes: ['host1', 'host2', 'host3'].map((name) => ({ name, isControlPlane: false, pods: [] })),
    skyhooks: [
      {
        name: 's1',
        spec: {
          nodeSelectors: { matchLabels: { pool: 'a' } },
          packages: { p0a: packageSpec('p0a', { type: 'reboot' }) },
          ...spec,
        },
      },
    ],
    policies: [{ name: 'careful', spec: { default: { budget: { count: 2 }, strategy: { fixed: {} } } } }],
    actions: [newer],
    healsEarly: true,
  }
  const { violation, met } = await runPlan(plan, { invariants: [...invariants, recorder] })
  return { ...meanwhile, violation, met: met.length }
}

test.each<[string, Partial<SkyhookSpec>]>([
  ['batches', { deploymentPolicy: 'careful' }],
  ['a percentage', { interruptionBudget: { percent: 34 } }],
])(
  'nodes under %s start nothing by a ledger of a newer version, and go on when it is gone',
  async (_, spec) => {
    const { starts, ledgerWrites, reasons, violation, met } = await runBeside(spec)
    expect([violation, met, starts, ledgerWrites]).toEqual([undefined, 1, 0, 0])
    expect([...reasons].join()).toContain('the ledger has version 2, this agent reads version 1: upgrade the agent')
  },
  120_000,
)

test('nodes under a count need no ledger, and its newer version stays as it is', async () => {
  const { starts, ledgerWrites, violation } = await runBeside({ interruptionBudget: { count: 1 } })
  expect([violation, starts > 0, ledgerWrites]).toEqual([undefined, true, 0])
}, 120_000)
