/** A confirmation is an answer about one moment: work starts soon after it, or the node asks again. */
import { expect, test } from 'vitest'
import { NodeSimulator } from '../../../test/kit/node-simulator/node-simulator.ts'
import { pkg } from '../../../test/kit/node-simulator/node-simulator-dsl.ts'
import type { Action } from '../model/plan.ts'

const isConfirmation = (action: Action): boolean => action.do === 'confirmSlot'

/** A confirmed slot, and pods that nobody has listed yet: the pace of the Skyhook needs them. */
function heldUpNode(): NodeSimulator {
  const node = new NodeSimulator()
  node.arePodsUnknown = true
  node.apply('s', {
    interruptionBudget: { count: 1 },
    pace: { minReadySeconds: 5 },
    packages: { a: pkg('1.0.0') },
  })
  for (let round = 0; round < 50 && node.slots[0]?.ownership !== 'confirmed'; round++) node.step()
  expect([node.slots[0]?.ownership, node.executedSteps]).toEqual(['confirmed', []])
  return node
}

const unanswered = (actions: readonly Action[]): Action[] => actions.filter((action) => !isConfirmation(action))

test('work does not start under a confirmation that is ten minutes old', () => {
  const node = heldUpNode()
  for (let minute = 0; minute < 10; minute++) {
    node.nowMs += 60_000
    node.step(unanswered)
  }
  node.arePodsUnknown = false
  for (let round = 0; round < 3; round++) node.step(unanswered)
  expect([node.slots[0]?.ownership, node.executedSteps]).toEqual(['confirmed', []])
  node.settle()
  expect(node.status()).toBe('complete')
})

test('work that was held up for less than a minute has its slot confirmed again before it starts', () => {
  const node = heldUpNode()
  node.nowMs += 30_000
  node.arePodsUnknown = false
  let asked = 0
  for (let round = 0; round < 10 && node.executedSteps.length === 0; round++)
    node.step((actions) => {
      asked += actions.filter(isConfirmation).length
      return [...actions]
    })
  expect([asked, node.executedSteps.length]).toEqual([1, 1])
})

test('a node that is held up asks once in a minute', () => {
  const node = heldUpNode()
  let asked = 0
  for (let second = 0; second < 300; second++) {
    node.nowMs += 1_000
    node.step((actions) => {
      asked += actions.filter(isConfirmation).length
      return [...actions]
    })
  }
  expect(asked).toBe(5)
})
