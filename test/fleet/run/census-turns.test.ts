/** Fleets in which agents are elected whose censuses cannot list the cluster, beside one that can after a while. */
import { expect, test } from 'vitest'
import { invariants } from '../../promises/all.ts'
import type { Invariant } from '../../promises/promised.ts'
import { packageSpec } from '../../kit/fleet/plan-skyhooks.ts'
import type { Plan } from '../../kit/fleet/plan.ts'
import { runPlan } from '../../kit/fleet/run-plan.ts'

/** Before the first agent starts. */
const silentFromMs = 500
/** What `counted` promises, from when on one can count. */
const maxUncountedMs = 180_000

/** `silentMs`: by host, for how long no LIST of its census is answered. */
const plan = (silentMs: readonly number[]): Plan => ({
  seed: 1,
  nodes: silentMs.map((_, index) => ({ name: `host${index + 1}`, isControlPlane: false, pods: [] })),
  skyhooks: [
    {
      name: 's1',
      spec: {
        nodeSelectors: { matchLabels: { pool: 'a' } },
        interruptionBudget: { percent: 50 },
        packages: { p0a: packageSpec('p0a') },
      },
    },
  ],
  actions: silentMs.flatMap((forMs, index) =>
    forMs === 0
      ? []
      : [{ id: index, atMs: silentFromMs, kind: 'census-lists-silent', node: `host${index + 1}`, forMs }],
  ),
})

function recordTurns() {
  const elected: string[] = []
  let countedAtMs = Infinity
  const recorder: Invariant = {
    name: 'turns',
    watch: () => ({
      on(event, atMs) {
        if (event.kind === 'log' && event.line.message === 'elected for the census' && countedAtMs === Infinity)
          elected.push(event.host)
        if (event.kind === 'commit' && event.client.startsWith('census:') && event.change.resource.plural === 'leases')
          countedAtMs = Math.min(countedAtMs, atMs)
      },
      checks: () => elected.length,
    }),
  }
  return { recorder, elected, countedAtMs: () => countedAtMs }
}

const [shortMs, longMs] = [120_000, 345_000]

test.each([
  ['one', [shortMs]],
  ['two', [shortMs, longMs]],
  ['two, the other one', [longMs, shortMs]],
  ['two, one of which can count sooner', [70_000, longMs]],
  ['two, the other one of which can count sooner', [longMs, 70_000]],
  ['two, both of which can count then', [shortMs, shortMs]],
  ['three', [shortMs, longMs, 0]],
  ['three, none of which can count at first', [shortMs, longMs, longMs]],
  ['eight', [shortMs, longMs, 0, 0, 0, 0, 0, 0]],
] as const)('in a fleet of %s, who can count after a while does so in time', async (_, silentMs) => {
  const { recorder, elected, countedAtMs } = recordTurns()
  const { violation } = await runPlan(plan(silentMs), { invariants: [...invariants, recorder] })
  expect(violation).toBeUndefined()
  expect(countedAtMs()).toBeLessThan(silentFromMs + Math.min(...silentMs.filter((forMs) => forMs > 0)) + maxUncountedMs)
  expect(elected.length).toBeLessThanOrEqual(1 + countedAtMs() / 60_000)
})
