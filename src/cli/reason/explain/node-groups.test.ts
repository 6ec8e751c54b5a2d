import { expect, test } from 'vitest'
import type { GateName } from '../../../schemas/catalogue/reason-codes.ts'
import type { NodeExplanation } from './explain-node.ts'
import type { Cause, Finding } from './finding.ts'
import { nodeGroups } from './node-groups.ts'

function heldUp(node: string, gate: GateName, cause: Cause, pod: string): NodeExplanation {
  const objects = [
    { kind: 'Node', name: node },
    { kind: 'Pod', namespace: 'a', name: pod },
  ]
  const verdict: Finding = { gate, cause, objects, message: '', sinceMs: undefined, unblock: '', command: '' }
  const none = { published: undefined, disagreement: undefined, doubt: undefined }
  return { skyhook: 's', node, state: 'held-up', verdict, gates: [], ...none }
}
const groupsOf = (...found: readonly NodeExplanation[]): readonly (readonly string[])[] =>
  nodeGroups(found).map(({ nodes }) => nodes)

test('nodes whose agents have the same problem are one group, although each agent has a pod of its own', () => {
  const nodes = ['n1', 'n2', 'n3'].map((node) => heldUp(node, 'agent', 'agent-too-old', `skyhookd-${node}`))
  expect(groupsOf(...nodes)).toEqual([['n1', 'n2', 'n3']])
})

test('nodes that wait for different pods are different groups', () => {
  const nodes = ['n1', 'n2'].map((node) => heldUp(node, 'drain', 'protected-pod', `training-${node}`))
  expect(groupsOf(...nodes)).toEqual([['n1'], ['n2']])
})
