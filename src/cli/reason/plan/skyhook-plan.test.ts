import { expect, test } from 'vitest'
import type { Pod } from '../../../stages/model/pods.ts'
import { known, unknown } from '../../../stages/model/snapshot.ts'
import type { NodePlan } from './plan-node.ts'
import { joiningNodes } from './skyhook-plan.ts'

const plans = [
  ['n1', true],
  ['n2', true],
  ['n3', false],
].map(([node, isJoining]) => ({ node, isJoining }) as NodePlan)
const on = (nodeName: string, namespace = 'apps'): Pod => ({
  metadata: { name: 'shop', namespace, uid: '', resourceVersion: '' },
  spec: { nodeName },
})

test('a closed node joins the cluster unless a pod that must leave is there', () => {
  const found = joiningNodes(plans, {}, known([on('n1'), on('n2', 'kube-system')]), ['kube-system'])
  expect(found).toEqual({ certain: new Set(['n2']), possible: new Set() })
})

test('where pods may not be read, closed nodes may join the cluster', () => {
  const found = joiningNodes(plans, {}, unknown('you may not read Pods'), [])
  expect(found).toEqual({ certain: new Set(), possible: new Set(['n1', 'n2']) })
})
