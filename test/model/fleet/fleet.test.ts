/**
 * Every state of two and of three nodes that work on one Skyhook, over the product's own decisions: `decide` with all
 * that belongs to it (lifecycle, slots, cordon, journal and annotations), the admission of slots, their confirmation
 * and the book of own slots. The tests state how many states there are, so that a change of a rule or of the model is
 * seen.
 */
import { describe, expect, test } from 'vitest'
import { isThorough } from '../../kit/effort.ts'
import { explore, interruptingLater, type Search } from './explore.ts'
import { variants } from './variants.ts'
import { allFaults } from './world.ts'

type Expected = readonly [fleet: string, states: number, search: Search]

const isControlPlane = true
const spec = interruptingLater

const sample: readonly Expected[] = [
  ['two nodes while the budget goes from 2 to 1 to 0 to 1', 6057, { nodes: 2, budgets: [2, 1, 0, 1] }],
  ['two nodes of the control plane that interrupt late', 1119, { nodes: 2, budgets: [2], isControlPlane, spec }],
  ['three nodes while the budget goes from 2 to 1', 6852, { nodes: 3, budgets: [2, 1] }],
]

const others: readonly Expected[] = [
  ['two nodes with a budget of 1 and any fault', 11_414, { nodes: 2, budgets: [1], faults: allFaults }],
  [
    'two nodes that leave the selector and come back',
    21_008,
    { nodes: 2, budgets: [1], maxFaults: 2, faults: ['selector left'], spec },
  ],
  [
    'two nodes of the control plane that leave the selector and come back',
    29_864,
    { nodes: 2, budgets: [2], faults: ['selector left'], isControlPlane, spec },
  ],
  [
    'two nodes that both join the control plane during their work',
    18_372,
    { nodes: 2, budgets: [2], maxFaults: 2, faults: ['control-plane label'], spec },
  ],
  [
    'two nodes of the control plane that interrupt late, and one is killed or loses a slot',
    48_549,
    { nodes: 2, budgets: [2], faults: ['agent killed', 'slot deleted'], isControlPlane, spec },
  ],
  ['one node and any two faults', 26_844, { nodes: 1, budgets: [1], maxFaults: 2, faults: allFaults }],
  ['two nodes while the budget falls to 1, and any fault', 201_977, { nodes: 2, budgets: [2, 1], faults: allFaults }],
  [
    'two nodes while the budget falls to 0 and rises again, and any fault',
    92_546,
    { nodes: 2, budgets: [1, 0, 1], faults: allFaults },
  ],
  [
    'two nodes of the control plane and any fault',
    217_077,
    { nodes: 2, budgets: [2], faults: allFaults, isControlPlane },
  ],
  ['three nodes while the budget goes from 2 to 1 to 0 to 1', 53_360, { nodes: 3, budgets: [2, 1, 0, 1] }],
  ['three nodes with a budget of 1 and any fault', 32_859, { nodes: 3, budgets: [1], faults: allFaults }],
]

describe('a fleet under the rules of the product', () => {
  test.each(isThorough ? [...sample, ...others] : sample)(
    '%s: every promise holds, and every state leads to completion',
    // a violation is shown with its path
    (_, states, search) => expect(explore(search)).toEqual(expect.objectContaining({ outcome: 'holds', states })),
  )
})

describe('wrong rules', () => {
  test.each(Object.entries(variants))('the search catches a fleet that %s', (_, { rules, search, violation }) =>
    expect(explore(search, rules)).toMatchObject({ outcome: 'violated', violation }),
  )
})
