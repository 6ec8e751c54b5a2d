/** Bugs in the batches of DeploymentPolicies, those of the Skyhook operator among them: each of its defects in
 * docs/compatibility.md is a bug here. */
import type { Plan } from '../../kit/fleet/plan.ts'
import { all, edit, fleet, hasControlPlanes, inFile, type Mutant } from '../mutant.ts'

/** A first batch of two in the compartment of the control plane, for work without an interrupt: that goes one by one. */
const hasLooseCompartment = ({ skyhooks, policies = [] }: Plan): boolean =>
  policies.some(({ name, spec: { default: fallback, compartments = [] } }) => {
    const [strategy] = compartments.map((one) => one.strategy ?? fallback.strategy)
    const { packages = {} } = skyhooks.find(({ spec }) => spec.deploymentPolicy === name)?.spec ?? {}
    const isLoose = strategy?.fixed?.initialBatch === 2
    return isLoose && Object.values(packages).every(({ interrupt }) => interrupt === undefined)
  })

const batch = inFile('lease/policy/batch.ts', 'lease/policy/batch.test.ts')
const compartments = inFile('lease/policy/compartments.ts', 'lease/policy/compartments.test.ts')
const ceiling = inFile('lease/rule.ts', 'census/ledger/batch-plan.test.ts')
const plan = inFile('census/ledger/batch-plan.ts', 'census/ledger/batch-plan.test.ts')
const looks = inFile('census/ledger/batch-plan.ts', 'census/reconcile/batches.test.ts')
const reconcile = inFile('census/reconcile/reconcile.ts', 'census/reconcile/batches.test.ts')
const status = inFile('census/status/compartment-status.ts', 'census/status/status.test.ts')
const conditions = inFile('census/status/conditions.ts', 'census/status/status.test.ts')
const gates = inFile('stages/skyhook/gates.ts', 'stages/behavior/batches.test.ts')
const policyRead = inFile('daemon/slots/confirmation.ts', 'daemon/slots/batches.test.ts')
const finished = inFile('daemon/slots/own-slots.ts', 'daemon/slots/batches.test.ts')

export const batchBugs: readonly Mutant[] = [
  policyRead('the ledger of a policy is not looked up again', 'if (spec?.deploymentPolicy) return false', ''),
  finished('a batch is over while its epoch is open', 'batch.epoch > epoch', 'batch.epoch >= epoch'),
  policyRead(
    'a policy of another generation is believed',
    '(now.metadata.generation ?? 0) === policy.generation',
    'true',
  ),
  batch(
    'a node that recovers keeps the batches from going on',
    '(isOfEpoch(open, slot) || (isOfScope(open, slot) && slot.epoch === undefined))',
    'isOfScope(open, slot)',
  ),
  plan(
    'nodes that arrive complete are results of a batch',
    "verdict.verdict === 'over' ? verdict.next : batch",
    "verdict.verdict === 'over' ? { ...verdict.next, completed: counts.complete } : batch",
  ),
  plan(
    'nodes that arrive failing are results of a batch',
    "verdict.verdict === 'over' ? verdict.next : batch",
    "verdict.verdict === 'over' ? { ...verdict.next, " +
      "failed: counts.nodes.filter((one) => one.status === 'erroring').length } : batch",
  ),
  plan('only holders of slots did not wait', '!isInLine(node) || holders', 'holders'),
  plan('a finished node waits for the next batch', '|| holders.has(node.name)', ''),
  plan('each turn counts who waited when the batch began', 'batch.epoch === before?.epoch', 'before === null'),
  compartments('a compartment without a strategy has none', 'strategy ?? fallback.strategy', 'strategy ?? {}'),
  compartments(
    'overlap ranks the strategy that is inherited',
    'rank: safetyRank(strategy)',
    'rank: safetyRank(strategy ?? fallback.strategy)',
  ),
  plan(
    'the last batch is not evaluated',
    'const verdict = judge(input, compartment, batch, slots)',
    'if (isComplete) return batch\n    const verdict = judge(input, compartment, batch, slots)',
  ),
  plan(
    'the batches start over as long as a node has the work of before',
    'isCurrent && currentLedger.applied !== counts.applied',
    'isCurrent && counts.complete < counts.nodes.length',
  ),
  plan(
    'a reset beside other work keeps the open batch',
    'if (isNextRollout) return',
    'if (isNextRollout && !isReset) return',
  ),
  conditions(
    'the condition of a policy that is no longer named stays',
    '  types.add(policyNotFound) //',
    '  if (skyhook.spec.deploymentPolicy) types.add(policyNotFound) //',
  ),
  status('no condition shows a stop', 'if (stopped.length > 0) return', 'if (false) return'),
  plan('a batch waits for ignored nodes', '|| isIgnored ||', '||'),
  plan('a batch waits for tainted nodes', "|| status === 'blocked' ||", '||'),
  gates('ignored nodes take places', 'isIgnored(snapshot) ? {', 'false ? {'),
  gates(
    'tainted nodes take places',
    'if (taints.length === 0) return undefined',
    'if (taints.length < 99) return undefined',
  ),
  ceiling('maxCount caps nothing', 'Math.min(maxCount, percentOf(percent, matched))', 'percentOf(percent, matched)'),
  reconcile('the wait of the census before is forgotten', 'nowMs - waitedSeconds * 1_000', 'nowMs'),
  looks(
    'a census that begins does not look beside work',
    'known !== undefined && isBusy(compartment)',
    'isBusy(compartment)',
  ),
  reconcile('the ledger of a newer version is written over', 'newerLedger !== undefined ||', ''),
  {
    name: 'a node that is done gives its slot back before its batch is counted',
    edits: [
      edit(
        'stages/skyhook/plan-skyhook.ts',
        "if (slot?.batch === 'open' && isInService)",
        "if (slot?.batch === 'open' && !isInService)",
      ),
    ],
    caughtBy: [fleet('batches', 'finished-slot-released-at-once', { policies: 'given' })],
  },
  {
    name: 'a batch is over while one of its nodes is at work',
    edits: [
      edit('lease/policy/batch.ts', 'if (ended.length === 0 || slots.some(isAtWork))', 'if (ended.length === 0)'),
    ],
    caughtBy: [
      fleet('batches', 'batch-over-beside-work', { policies: 'given', mayShow: ({ nodes }) => nodes.length > 2 }),
    ],
  },
  {
    name: 'slots that failed in an earlier batch are results of the next one as well',
    edits: [edit('lease/policy/batch.ts', 'slot.epoch >= open.batch.epoch', 'slot.epoch >= 0')],
    caughtBy: [
      fleet('batches', 'results-counted-again', { policies: 'given', mayShow: ({ nodes }) => nodes.length > 1 }),
    ],
  },
  {
    name: 'the strategy alone decides how many nodes are out',
    edits: [
      edit(
        'lease/policy/batch.ts',
        'Math.min(ceiling, batch.size + failedBefore(open))',
        'batch.size + failedBefore(open)',
      ),
    ],
    caughtBy: [
      fleet('budget', 'batch-above-the-ceiling', { policies: 'given', mayShow: ({ nodes }) => nodes.length > 2 }),
    ],
  },
  {
    name: 'the budget of the default compartment is that of all compartments',
    edits: [
      edit(
        'lease/budget/budget.ts',
        'const { budget, strategy } = compartment',
        'const { budget = {}, strategy } = { ...compartment, budget: compartmentsOf(policy.spec).at(-1)?.budget }',
      ),
    ],
    caughtBy: [
      fleet('budget', 'compartments-share-one-budget', {
        policies: 'given',
        mayShow: all(hasControlPlanes(2), hasLooseCompartment),
      }),
    ],
  },
  {
    name: 'the agent keeps the series of a Skyhook under each name that its policy has had',
    edits: [
      edit(
        'daemon/census/supervisor.ts',
        'else ownSeries.set(line.subject, line.series)',
        'else ownSeries.set(line.subject + JSON.stringify(line.series.skyhook_rollout_ceiling?.map(([labels]) => ' +
          'labels)), line.series)',
      ),
    ],
    caughtBy: [
      fleet('series-true', 'series-of-a-renamed-policy-stay', {
        policies: 'renamed',
        // a census that begins after the change has no series of before
        mayShow: ({ actions }) => actions.some(({ kind, atMs }) => kind === 'policy-renamed' && atMs > 180_000),
      }),
    ],
  },
  {
    name: 'nodes start although the failure threshold has stopped the rollout',
    edits: [edit('lease/policy/batch.ts', 'return batch.stopped ? 0 : Math', 'return Math')],
    caughtBy: [fleet('batches', 'stop-ignored', { policies: 'given', mayShow: ({ nodes }) => nodes.length > 2 })],
  },
  {
    name: 'the batches start over at each turn of the census',
    edits: [
      edit(
        'census/ledger/batch-plan.ts',
        'const isReset = isCurrent && reset !== currentLedger.reset',
        'const isReset = isCurrent && reset !== undefined',
      ),
    ],
    caughtBy: [fleet('settles', 'reset-repeated', { policies: 'given' })],
  },
  {
    name: 'the census stops to look at the slots when all nodes are complete',
    edits: [
      edit(
        'census/ledger/batch-plan.ts',
        'const delayMs = known !== undefined',
        "const delayMs = nodes.every(({ status }) => status === 'complete') ? Infinity : known !== undefined",
      ),
    ],
    caughtBy: [fleet('settles', 'last-batch-never-counted', { policies: 'given' })],
  },
]
