/**
 * Every state of two and of three nodes that work on one Skyhook, over the product's own decisions: `decide` with all
 * that belongs to it (lifecycle, slots, cordon, journal and annotations), the admission of slots, their confirmation
 * and the book of own slots. The tests state how many states there are, so that a change of a rule or of the model is
 * seen.
 */
import { describe, expect, test } from 'vitest'
import { isThorough } from '../../kit/effort.ts'
import type { FleetResult } from './explore.ts'
import { allFaults, interruptingLater, run, type Search } from './searches.ts'
import { variants } from './variants.ts'

const calm = { maxFaults: 0, faults: [] } as const
const oneFault = { maxFaults: 1, faults: allFaults } as const
type Expected = { readonly search: Search; readonly states: number; readonly thorough?: true }

const searches: Readonly<Record<string, Expected>> = {
  'two nodes while the budget goes from 2 to 1 to 0 to 1': {
    search: { nodes: 2, budgets: [2, 1, 0, 1], ...calm },
    states: 6057,
  },
  'two nodes with a budget of 1 and any fault': {
    search: { nodes: 2, budgets: [1], ...oneFault },
    states: 11_330,
    thorough: true,
  },
  'two nodes of the control plane that interrupt late': {
    search: { nodes: 2, budgets: [2], ...calm, isControlPlane: true, spec: interruptingLater },
    states: 1119,
  },
  'two nodes that leave the selector and come back': {
    search: { nodes: 2, budgets: [1], maxFaults: 2, faults: ['selector left'], spec: interruptingLater },
    states: 17_107,
    thorough: true,
  },
  'two nodes of the control plane that leave the selector and come back': {
    search: {
      nodes: 2,
      budgets: [2],
      maxFaults: 1,
      faults: ['selector left'],
      isControlPlane: true,
      spec: interruptingLater,
    },
    states: 27_512,
    thorough: true,
  },
  'three nodes while the budget goes from 2 to 1': {
    search: { nodes: 3, budgets: [2, 1], ...calm },
    states: 6852,
  },
  'two nodes that both join the control plane during their work': {
    search: { nodes: 2, budgets: [2], maxFaults: 2, faults: ['control-plane label'], spec: interruptingLater },
    states: 18_372,
    thorough: true,
  },
  'two nodes of the control plane that interrupt late, and one is killed or loses a slot': {
    search: {
      nodes: 2,
      budgets: [2],
      maxFaults: 1,
      faults: ['agent killed', 'slot deleted'],
      isControlPlane: true,
      spec: interruptingLater,
    },
    states: 48_549,
    thorough: true,
  },
  'one node and any two faults': {
    search: { nodes: 1, budgets: [1], maxFaults: 2, faults: allFaults },
    states: 26_380,
    thorough: true,
  },
  'two nodes while the budget falls to 1, and any fault': {
    search: { nodes: 2, budgets: [2, 1], ...oneFault },
    states: 199_942,
    thorough: true,
  },
  'two nodes while the budget falls to 0 and rises again, and any fault': {
    search: { nodes: 2, budgets: [1, 0, 1], ...oneFault },
    states: 91_405,
    thorough: true,
  },
  'two nodes of the control plane and any fault': {
    search: { nodes: 2, budgets: [2], ...oneFault, isControlPlane: true },
    states: 206_109,
    thorough: true,
  },
  'three nodes while the budget goes from 2 to 1 to 0 to 1': {
    search: { nodes: 3, budgets: [2, 1, 0, 1], ...calm },
    states: 53_360,
    thorough: true,
  },
  'three nodes with a budget of 1 and any fault': {
    search: { nodes: 3, budgets: [1], ...oneFault },
    states: 32_637,
    thorough: true,
  },
}

describe('a fleet under the rules of the product', () => {
  for (const [name, { search, states, thorough }] of Object.entries(searches))
    test.skipIf(thorough === true && !isThorough)(
      `${name}: every promise holds, and every state leads to completion`,
      // a violation is shown with its path
      () => expect(run(search)).toEqual(expect.objectContaining({ outcome: 'holds', states })),
    )
})

const twoNodes = { nodes: 2, budgets: [1], maxFaults: 1 } as const

/** What each breaks, and where that is found. */
const violations: Readonly<Record<keyof typeof variants, { readonly search: Search; readonly violation: string }>> = {
  'admits any free index below the budget': {
    search: { nodes: 2, budgets: [2, 1], ...calm },
    violation: '2 nodes are out, the budget was 1',
  },
  'counts the holders instead of those above the index': {
    search: { nodes: 2, budgets: [1], ...calm },
    violation: '2 nodes are out, the budget was 1',
  },
  'leaves recovery slots out': {
    search: { ...twoNodes, faults: ['slot deleted'] },
    violation: '2 nodes are out, the budget was 1',
  },
  'starts without a confirmation': {
    search: { nodes: 2, budgets: [2, 1], ...calm },
    violation: 'work begins under a slot that was not confirmed for its spec',
  },
  'starts under the confirmation of an earlier spec': {
    search: { nodes: 1, budgets: [2, 1], ...calm },
    violation: 'work begins under a slot that was not confirmed for its spec',
  },
  'never lists again before it starts': {
    search: { nodes: 2, budgets: [2, 1], ...calm },
    violation: '2 nodes are out, the budget was 1',
  },
  'confirms started work by the budget': {
    search: { nodes: 1, budgets: [1, 0, 1], maxFaults: 1, faults: ['agent killed'] },
    violation: 'released the slot (skyhook) before the uncordon',
  },
  'releases before the uncordon': {
    search: { nodes: 1, budgets: [1], ...calm },
    violation: 'released the slot (skyhook) before the uncordon',
  },
  'forgets that the node was cordoned before': {
    search: { nodes: 1, budgets: [1], maxFaults: 1, faults: ['cordon by the administrator'] },
    violation: "lost the administrator's cordon",
  },
  'forgets an unanswered creation': {
    search: { nodes: 1, budgets: [2], maxFaults: 1, faults: ['commit late'] },
    violation: 'the agent created two slots of one scope',
  },
  'trusts a slot after an unanswered release': {
    search: { nodes: 1, budgets: [2, 1], maxFaults: 1, faults: ['commit late'] },
    violation: 'released the slot (skyhook) before the uncordon',
  },
  'looks for its slots only when it starts': {
    search: { ...twoNodes, faults: ['commit late'] },
    violation: 'never complete',
  },
  "asks for the control plane's slot only before it starts": {
    search: { nodes: 2, budgets: [2], ...calm, isControlPlane: true, spec: interruptingLater },
    violation: 'two nodes of the control plane are out of service',
  },
  'lets a node that gave its slot back continue without asking': {
    search: { ...twoNodes, faults: ['selector left'], spec: interruptingLater },
    violation: '2 nodes are out, the budget was 1',
  },
  'ignores the journal after a new registration': {
    search: { nodes: 1, budgets: [1], maxFaults: 1, faults: ['Node deleted'] },
    violation: 'a half changed node asks for room',
  },
  'works under a slot that is in doubt': {
    search: { nodes: 1, budgets: [1], maxFaults: 1, faults: ['agent killed'] },
    violation: 'a step starts without a slot',
  },
  'lets time free a slot': {
    search: { ...twoNodes, budgets: [2, 1], faults: ['agent killed'] },
    violation: '2 nodes are out, the budget was 1',
  },
  'keeps a slot that nothing needs': {
    search: { nodes: 1, budgets: [1], maxFaults: 1, faults: ['Node deleted'] },
    violation: 'never complete',
  },
}

describe('wrong rules', () => {
  test.each(Object.entries(violations))('the search catches a fleet that %s', (name, { search, violation }) => {
    const result: FleetResult = run(search, variants[name as keyof typeof variants])
    expect(result).toMatchObject({ outcome: 'violated', violation })
  })
})
