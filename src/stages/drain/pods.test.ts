import { describe, expect, test } from 'vitest'
import { groupPods, ownerKeyOf } from './pods.ts'
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
const protecting = { podNonInterruptLabels: podNonInterrupt }
const facts = { skipNamespaces: ['kube-system'] }

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
    ['a pod that tolerates everything', pod({}, { spec: { tolerations: [{ operator: 'Exists' }] } }), 'drained'],
    [
      'a pod that tolerates another taint',
      pod({}, { spec: { tolerations: [{ key: 'gpu', operator: 'Exists' }] } }),
      'drained',
    ],
  ])('a drain evicts or leaves %s as expected', (_, given, expected) => {
    expect(groupPods([given], {}, facts).toDrain).toHaveLength(expected === 'drained' ? 1 : 0)
  })

  test('protected pods of any owner are counted, and never evicted', () => {
    const labels = { workload: 'never-interrupt' }
    const tolerating = pod({ labels }, { spec: { tolerations: [{ operator: 'Exists' }] } })
    const pods = [
      pod({ labels }),
      pod({ labels, ...owner('DaemonSet') }),
      pod({ labels, namespace: 'kube-system' }),
      tolerating,
    ]
    expect(groupPods(pods, protecting, facts)).toEqual({ protected: pods, toDrain: [], waited: [], left: [] })
  })

  test('an empty selector protects nothing', () => {
    expect(groupPods([pod()], { podNonInterruptLabels: {} }, facts).protected).toEqual([])
  })

  test('a finished protected pod does not hold anything up', () => {
    expect(
      groupPods([pod({ labels: podNonInterrupt.matchLabels }, { status: { phase: 'Succeeded' } })], protecting, facts)
        .protected,
    ).toEqual([])
  })
})

describe('pods that tolerate the cordon', () => {
  const all = { tolerations: [{ operator: 'Exists' }] } as const
  const named = { tolerations: [{ key: 'node.kubernetes.io/unschedulable', operator: 'Exists' }] } as const
  const service = pod(owner('ReplicaSet'), { spec: all })
  const job = pod(owner('Job'), { spec: all })
  const log = pod(owner('ReplicaSet'), { spec: named })
  const namedJob = pod(owner('Job'), { spec: named })
  const once = pod(owner('PyTorchJob'), { spec: { ...named, restartPolicy: 'Never' } })

  type Group = 'toDrain' | 'waited' | 'left'
  test.each<['evict' | 'wait' | 'leave' | undefined, 'first' | 'again', readonly [Pod, Group][]]>([
    [
      undefined,
      'first',
      [
        [service, 'toDrain'],
        [job, 'toDrain'],
        [log, 'left'],
        [namedJob, 'toDrain'],
        [once, 'toDrain'],
      ],
    ],
    [
      undefined,
      'again',
      [
        [service, 'waited'],
        [job, 'waited'],
        [log, 'left'],
        [namedJob, 'waited'],
        [once, 'waited'],
      ],
    ],
    [
      'evict',
      'first',
      [
        [service, 'toDrain'],
        [job, 'toDrain'],
        [log, 'toDrain'],
        [once, 'toDrain'],
      ],
    ],
    [
      'evict',
      'again',
      [
        [service, 'left'],
        [job, 'waited'],
        [log, 'left'],
        [once, 'waited'],
      ],
    ],
    [
      'wait',
      'first',
      [
        [service, 'waited'],
        [job, 'waited'],
        [log, 'waited'],
      ],
    ],
    [
      'leave',
      'first',
      [
        [service, 'left'],
        [job, 'left'],
        [log, 'left'],
        [once, 'left'],
      ],
    ],
  ])(
    'under tolerating: %s, seen for the %s time, each pod is in the group that the page names',
    (tolerating, when, expected) => {
      const drain = tolerating === undefined ? {} : { tolerating }
      for (const [given, group] of expected) {
        const groups = groupPods([given], { drain }, { ...facts, cameBack: () => when === 'again' })
        expect({ kind: given.metadata.ownerReferences?.[0]?.kind, pods: groups[group] }).toMatchObject({
          pods: [given],
        })
      }
    },
  )

  test('a package pod of the operator is waited for while it is at work, and evicted once it has ended', () => {
    const metadata = {
      labels: { 'skyhook.nvidia.com/name': 's' },
      annotations: { 'skyhook.nvidia.com/package': '{}' },
    }
    const withExit = (exitCode?: number): Pod =>
      pod(metadata, {
        spec: { ...named, restartPolicy: 'OnFailure' },
        status: {
          phase: 'Running',
          initContainerStatuses: [{ state: exitCode === undefined ? {} : { terminated: { exitCode } } }],
        },
      })
    const [atWork, ended] = [withExit(), withExit(0)]
    expect(groupPods([atWork, ended], {}, facts)).toMatchObject({ waited: [atWork], toDrain: [ended] })
    expect(groupPods([atWork], { drain: { tolerating: 'evict' } }, facts).waited).toEqual([atWork])
    expect(groupPods([atWork], { drain: { tolerating: 'leave' } }, facts).left).toEqual([atWork])
  })

  test('a pod that replaces another has the same controller, or the same name if there is no controller', () => {
    const bare = { generateName: 'train-', name: 'train-x1' }
    expect([pod(owner('Job')), pod(), pod(bare)].map(ownerKeyOf)).toEqual(['o', 'shop/p', 'shop/train-'])
  })
})
