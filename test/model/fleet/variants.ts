/**
 * Wrong rules of the model itself, each of which looks right, what each breaks, and a search that finds it. What is
 * wrong in the product's own rules is a row of test/mutants.
 */
import type { Search } from './explore.ts'
import type { FleetRules } from './rules.ts'

type Wrong = {
  readonly rules: Partial<FleetRules>
  readonly search: Search
  readonly violation: string
}

export const variants: Readonly<Record<string, Wrong>> = {
  'forgets an unanswered creation': {
    rules: { remembersUnanswered: false },
    search: { nodes: 1, budgets: [2], faults: ['commit late'] },
    violation: 'the agent created two slots of one scope',
  },
  'trusts a slot after an unanswered release': {
    rules: { doubtsReleases: false },
    search: { nodes: 1, budgets: [2, 1], faults: ['commit late'] },
    violation: 'released the slot (skyhook) before the uncordon',
  },
  'looks for its slots only when it starts': {
    rules: { followsOwnSlots: false },
    search: { nodes: 2, budgets: [1], faults: ['commit late'] },
    violation: 'never complete',
  },
  'lets time free a slot': {
    rules: { isListed: (_, isSilent) => !isSilent },
    search: { nodes: 2, budgets: [2, 1], faults: ['agent killed'] },
    violation: '2 nodes are out, the budget was 1',
  },
}
