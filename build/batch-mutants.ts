/**
 * Deliberate bugs in the batches of DeploymentPolicies, those of the Skyhook operator among them: each of its defects
 * in docs/compatibility.md is a bug here or in test/fleet/mutants.
 */
import type { Mutant } from './mutant-tree.ts'

const inFile =
  (file: string, test: string) =>
  (name: string, search: string, replace: string): Mutant => ({ name, file, search, replace, tests: [test] })

const batch = inFile('lease/policy/batch.ts', 'lease/policy/batch.test.ts')
const compartments = inFile('lease/policy/compartments.ts', 'lease/policy/compartments.test.ts')
const ceiling = inFile('lease/rule.ts', 'census/batch-plan.test.ts')
const plan = inFile('census/batch-plan.ts', 'census/batch-plan.test.ts')
const looks = inFile('census/slot-looks.ts', 'census/batches.test.ts')
const reconcile = inFile('census/reconcile.ts', 'census/batches.test.ts')
const status = inFile('census/compartment-status.ts', 'census/status.test.ts')
const conditions = inFile('census/conditions.ts', 'census/status.test.ts')
const gates = inFile('stages/skyhook/gates.ts', 'stages/behavior/batches.test.ts')

export const batchMutants: readonly Mutant[] = [
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
  gates('tainted nodes take places', 'return taints.length > 0', 'return false'),
  ceiling('maxCount caps nothing', 'Math.min(maxCount, percentOf(percent, matched))', 'percentOf(percent, matched)'),
  reconcile('the wait of the census before is forgotten', 'nowMs - waitedSeconds * 1_000', 'nowMs'),
  looks(
    'a census that begins does not look beside work',
    'known !== undefined && isBusy(compartment)',
    'isBusy(compartment)',
  ),
  reconcile('the ledger of a newer version is written over', 'newerLedger !== undefined ||', ''),
]
