import { describe, expect, test } from 'vitest'
import { groupPods } from './pods.ts'
import type { Pod } from '../model/pods.ts'

const pod = (change: Partial<Pod['metadata']> = {}, rest: Omit<Pod, 'metadata'> = {}): Pod => ({
  metadata: { name: 'p', namespace: 'shop', uid: 'u', resourceVersion: '1', ...change },
  status: { phase: 'Running' },
  ...rest,
})
const owner = (kind: string, controller = true): Partial<Pod['metadata']> => ({
  ownerReferences: [{ apiVersion: 'apps/v1', kind, name: 'o', uid: 'o', controller }],
})
const podNonInterrupt = { matchLabels: { workload: 'never-interrupt' } }

describe('draining a node', () => {
  test.each<[string, Pod, 'drained' | 'left']>([
    ['an ordinary pod', pod(owner('ReplicaSet')), 'drained'],
    ['a bare pod', pod(), 'drained'],
    ['a pending pod', pod({}, { status: { phase: 'Pending' } }), 'drained'],
    ['a pod of a DaemonSet', pod(owner('DaemonSet')), 'left'],
    ['a pod that a DaemonSet owns but does not control', pod(owner('DaemonSet', false)), 'drained'],
    ['a mirror pod', pod({ annotations: { 'kubernetes.io/config.mirror': 'x' } }), 'left'],
    ['a finished pod', pod({}, { status: { phase: 'Succeeded' } }), 'left'],
    ['a failed pod', pod({}, { status: { phase: 'Failed' } }), 'left'],
    ['a pod of a skipped namespace', pod({ namespace: 'kube-system' }), 'left'],
    [
      'a pod that tolerates the cordon',
      pod({}, { spec: { tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }] } }),
      'left',
    ],
    ['a pod that tolerates everything', pod({}, { spec: { tolerations: [{ operator: 'Exists' }] } }), 'left'],
    [
      'a pod that tolerates another taint',
      pod({}, { spec: { tolerations: [{ key: 'gpu', operator: 'Exists' }] } }),
      'drained',
    ],
  ])('a drain evicts or leaves %s as expected', (_, given, expected) => {
    expect(groupPods([given], undefined, ['kube-system']).toDrain).toHaveLength(expected === 'drained' ? 1 : 0)
  })

  test('protected pods are counted whoever owns them, and never evicted', () => {
    const labels = { workload: 'never-interrupt' }
    const pods = [pod({ labels }), pod({ labels, ...owner('DaemonSet') }), pod({ labels, namespace: 'kube-system' })]
    expect(groupPods(pods, podNonInterrupt, ['kube-system'])).toEqual({ protected: pods, toDrain: [] })
  })

  test('an empty selector protects nothing', () => {
    expect(groupPods([pod()], {}, []).protected).toEqual([])
  })

  test('a finished protected pod does not hold anything up', () => {
    expect(
      groupPods([pod({ labels: podNonInterrupt.matchLabels }, { status: { phase: 'Succeeded' } })], podNonInterrupt, [])
        .protected,
    ).toEqual([])
  })
})
