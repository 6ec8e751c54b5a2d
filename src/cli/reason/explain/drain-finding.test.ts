import { expect, test } from 'vitest'
import { viewOf } from '../../../../test/kit/objects/plan-builder.ts'
import type { Pod } from '../../../stages/model/pods.ts'
import { drainFinding } from './drain-finding.ts'

const node = { metadata: { name: 'n1', uid: 'n1-uid', resourceVersion: '1' } }
const podWith = (isReady: boolean): Pod => ({
  metadata: { name: 'shop-1', namespace: 'apps', uid: 'shop-1', resourceVersion: '1' },
  status: { phase: 'Running', conditions: [{ type: 'Ready', status: isReady ? 'True' : 'False' }] },
})
const budget = {
  namespace: 'apps',
  name: 'shop',
  selector: {},
  disruptionsAllowed: 0,
  desiredHealthy: 1,
  expectedPods: 1,
}

test.each([
  [true, 1, /^more healthy replicas/],
  [
    false,
    0,
    /^spec\.unhealthyPodEvictionPolicy: AlwaysAllow of the budget, because the pod itself is not Ready; or more /,
  ],
])('the way out of a budget, where its pod is Ready: %s', (isReady, currentHealthy, unblock) => {
  const found = drainFinding({
    view: viewOf({}),
    node,
    pods: [podWith(isReady)],
    budgets: [{ ...budget, currentHealthy }],
    settings: { skipNamespaces: [] } as never,
  })
  expect(found).toMatchObject({ cause: 'disruption-budget', unblock: expect.stringMatching(unblock) as string })
})
