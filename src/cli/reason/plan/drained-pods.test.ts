import { expect, test } from 'vitest'
import type { Pod } from '../../../stages/model/pods.ts'
import { drainedPods, podsToEvict } from './drained-pods.ts'

const pod = (name: string, labels: Record<string, string> = {}, rest: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name, namespace: 'shop', uid: name, resourceVersion: '1', labels, ...rest },
  spec: { nodeName: 'n1', tolerations: [] },
  status: { phase: 'Running' },
})
const owned = {
  ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'r', uid: 'r', controller: true }],
}
const budget = (name: string, matchLabels: Record<string, string>, disruptionsAllowed: number) => ({
  namespace: 'shop',
  name,
  selector: { matchLabels },
  disruptionsAllowed,
  currentHealthy: 1,
  desiredHealthy: 1,
  expectedPods: 1,
})

const cordonTaint = 'node.kubernetes.io/unschedulable'

const question = {
  pods: [
    pod('cart-1', { app: 'cart' }, owned),
    pod('cart-2', { app: 'cart' }, owned),
    pod('both', { app: 'cart', tier: 'db' }, owned),
    pod('bare'),
    pod('train', { app: 'train' }, owned),
    { ...pod('done'), status: { phase: 'Succeeded' } },
    pod('leaving', {}, { ...owned, deletionTimestamp: '2026-11-23T08:00:00Z' }),
    { ...pod('system'), metadata: { ...pod('system').metadata, namespace: 'kube-system' } },
  ],
  budgets: [budget('free', { app: 'cart' }, 1), budget('db', { tier: 'db' }, 0)],
  rules: { podNonInterruptLabels: { matchLabels: { app: 'train' } } },
  skipNamespaces: ['kube-system'],
}

test('a drain lists who leaves, who holds it up, and the sum of the pods of each budget', () => {
  expect(drainedPods(question)).toEqual({
    leaving: ['shop/bare', 'shop/both', 'shop/cart-1', 'shop/cart-2', 'shop/leaving'],
    bare: ['shop/bare'],
    protected: ['shop/train'],
    contested: ['shop/both'],
    budgets: [
      { budget: 'shop/db', pods: 1, allowed: 0 },
      { budget: 'shop/free', pods: 3, allowed: 1 },
    ],
  })
})

test('answers of dry runs are counted by budget; pods on their way out are not asked about', () => {
  const answers = new Map([
    ['both', { answer: 'refused' }],
    ['cart-1', { answer: 'granted' }],
    ['cart-2', { answer: 'granted' }],
  ] as const)
  const found = drainedPods({ ...question, answers })
  expect(found.unanswered).toEqual({ pods: 1, why: 'there are too many to ask about' })
  expect(found.budgets).toEqual([
    { budget: 'shop/db', pods: 1, allowed: 0, refused: 1 },
    { budget: 'shop/free', pods: 3, allowed: 1, refused: 1 },
  ])
  expect(podsToEvict(question).map(({ metadata }) => metadata.name)).toEqual(['cart-1', 'cart-2', 'both', 'bare'])
})

test('a drain lists who is waited for and who is left, of those that tolerate the cordon', () => {
  const [exists] = [{ operator: 'Exists' }] as const
  const job = {
    ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid: 'j', controller: true }],
  }
  const pods = [
    { ...pod('train-1', {}, job), spec: { nodeName: 'n1', tolerations: [exists], restartPolicy: 'Never' } },
    { ...pod('log', {}, owned), spec: { nodeName: 'n1', tolerations: [{ ...exists, key: cordonTaint }] } },
  ]
  const named = (tolerating?: 'evict' | 'wait' | 'leave') => {
    const drain = tolerating === undefined ? {} : { tolerating }
    const { leaving, waited, left } = drainedPods({ ...question, pods, rules: { drain } })
    return { leaving, waited, left }
  }
  const [train, log] = ['shop/train-1', 'shop/log']
  expect(named()).toEqual({ leaving: [train], left: [log] })
  expect(named('evict')).toEqual({ leaving: [log, train] })
  expect(named('wait')).toEqual({ leaving: [], waited: [log, train] })
  expect(named('leave')).toEqual({ leaving: [], left: [log, train] })
})
