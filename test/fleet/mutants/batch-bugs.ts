/** Bugs in the batches of DeploymentPolicies: src/lease/policy, src/census and the slots of finished work. */
import type { Plan } from '../../kit/fleet/plan.ts'
import { all, change, type FleetMutant, hasControlPlanes } from './mutant.ts'

/** A first batch of two in the compartment of the control plane, for work without an interrupt: that goes one by one. */
const hasLooseCompartment = ({ skyhooks, policies = [] }: Plan): boolean =>
  policies.some(({ name, spec: { default: fallback, compartments = [] } }) => {
    const [strategy] = compartments.map((one) => one.strategy ?? fallback.strategy)
    const { packages = {} } = skyhooks.find(({ spec }) => spec.deploymentPolicy === name)?.spec ?? {}
    const isLoose = strategy?.fixed?.initialBatch === 2
    return isLoose && Object.values(packages).every(({ interrupt }) => interrupt === undefined)
  })

export const batchBugs: readonly FleetMutant[] = [
  {
    name: 'finished-slot-released-at-once',
    rule: 'batches',
    bug: 'a node that is done gives its slot back before its batch is counted',
    hasPolicies: true,
    changes: [
      change(
        'stages/skyhook/plan-skyhook.ts',
        "if (slot?.batch === 'open' && isInService)",
        "if (slot?.batch === 'open' && !isInService)",
      ),
    ],
  },
  {
    name: 'batch-over-beside-work',
    rule: 'batches',
    bug: 'a batch is over while one of its nodes is at work',
    hasPolicies: true,
    changes: [
      change('lease/policy/batch.ts', 'if (ended.length === 0 || slots.some(isAtWork))', 'if (ended.length === 0)'),
    ],
    mayShow: ({ nodes }) => nodes.length > 2,
  },
  {
    name: 'results-counted-again',
    rule: 'batches',
    bug: 'slots that failed in an earlier batch are results of the next one as well',
    hasPolicies: true,
    changes: [change('lease/policy/batch.ts', 'slot.epoch >= open.batch.epoch', 'slot.epoch >= 0')],
    mayShow: ({ nodes }) => nodes.length > 1,
  },
  {
    name: 'batch-above-the-ceiling',
    rule: 'budget',
    bug: 'the strategy alone decides how many nodes are out',
    hasPolicies: true,
    changes: [
      change(
        'lease/policy/batch.ts',
        'Math.min(ceiling, batch.size + failedBefore(open))',
        'batch.size + failedBefore(open)',
      ),
    ],
    mayShow: ({ nodes }) => nodes.length > 2,
  },
  {
    name: 'compartments-share-one-budget',
    rule: 'budget',
    bug: 'the budget of the default compartment is that of all compartments',
    hasPolicies: true,
    changes: [
      change(
        'lease/budget/budget.ts',
        'const { budget, strategy } = compartment',
        'const { budget = {}, strategy } = { ...compartment, budget: compartmentsOf(policy.spec).at(-1)?.budget }',
      ),
    ],
    mayShow: all(hasControlPlanes(2), hasLooseCompartment),
  },
  {
    name: 'series-of-a-renamed-policy-stay',
    rule: 'series-true',
    bug: 'the agent keeps the series of a Skyhook under each name that its policy has had',
    hasRenames: true,
    changes: [
      change(
        'daemon/census/supervisor.ts',
        'else ownSeries.set(line.subject, line.series)',
        'else ownSeries.set(line.subject + JSON.stringify(line.series.skyhook_rollout_ceiling?.map(([labels]) => ' +
          'labels)), line.series)',
      ),
    ],
    // a census that begins after the change has no series of before
    mayShow: ({ actions }) => actions.some(({ kind, atMs }) => kind === 'policy-renamed' && atMs > 180_000),
  },
  {
    name: 'stop-ignored',
    rule: 'batches',
    bug: 'nodes start although the failure threshold has stopped the rollout',
    hasPolicies: true,
    changes: [change('lease/policy/batch.ts', 'return batch.stopped ? 0 : Math', 'return Math')],
    mayShow: ({ nodes }) => nodes.length > 2,
  },
  {
    name: 'reset-repeated',
    rule: 'settles',
    bug: 'the batches start over at each turn of the census',
    hasPolicies: true,
    changes: [
      change(
        'census/batch-plan.ts',
        'const isReset = isCurrent && reset !== currentLedger.reset',
        'const isReset = isCurrent && reset !== undefined',
      ),
    ],
  },
  {
    name: 'last-batch-never-counted',
    rule: 'settles',
    bug: 'the census stops to look at the slots when all nodes are complete',
    hasPolicies: true,
    changes: [
      change(
        'census/slot-looks.ts',
        'const delayMs = known !== undefined',
        "const delayMs = nodes.every(({ status }) => status === 'complete') ? Infinity : known !== undefined",
      ),
    ],
  },
]
