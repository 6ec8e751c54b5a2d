/** Moments of upgrades, reboots and joins that look like faults: doctor finds nothing, explain says what happens. */
import { expect, test } from 'vitest'
import {
  causesIn,
  notStarted,
  onAll,
  rebooting,
  silentKubelet,
  withNode,
  withPod,
} from '../../../test/kit/tool/broken-cluster.ts'
import * as cluster from '../../../test/kit/tool/cluster-answers.ts'
import { type ClusterObjects, healthyCluster, look, secondsAgo } from '../../../test/kit/tool/cluster-answers.ts'

const young = (seconds: number, more: cluster.PodState = {}): cluster.PodState => ({
  isReady: false,
  seconds,
  state: { running: { startedAt: secondsAgo(seconds) } },
  ...more,
})
const oldImages = (objects: ClusterObjects): ClusterObjects => ({
  ...objects,
  pods: objects.pods.map((pod) =>
    pod.metadata.name === 'skyhookd-node-3'
      ? cluster.agentPod('node-3', { image: 'registry.test/skyhookd:0.9.0' })
      : pod,
  ),
})
const leaving = (objects: ClusterObjects, seconds: number): ClusterObjects => ({
  ...objects,
  pods: objects.pods.map((pod) =>
    pod.metadata.name === 'skyhookd-node-1'
      ? { ...pod, metadata: { ...pod.metadata, deletionTimestamp: secondsAgo(-seconds) } }
      : pod,
  ),
})
const healthy: readonly (readonly [string, ClusterObjects, ClusterObjects?])[] = [
  ['a cluster at rest', healthyCluster],
  ['an upgrade whose agent creates its container', oldImages(withPod('node-1', notStarted('ContainerCreating')))],
  [
    'an upgrade that pulls for minutes',
    oldImages(withPod('node-1', { ...notStarted('ContainerCreating'), seconds: 240 })),
  ],
  ['an upgrade whose agent has just started', oldImages(withPod('node-1', young(5)))],
  [
    'an upgrade whose agent has pulled for a minute and just started',
    oldImages(withPod('node-1', young(60, { state: { running: { startedAt: secondsAgo(4) } } }))),
  ],
  ['an upgrade whose old agent ends', oldImages(leaving(withPod('node-2', { seconds: 20 }), 8))],
  [
    'an upgrade between two agents of a node',
    oldImages(withPod('node-1', undefined, withPod('node-2', { seconds: 20 }))),
    oldImages(withPod('node-1', young(1), withPod('node-2', { seconds: 25 }))),
  ],
  ['an upgrade with agents of both versions', oldImages(withPod('node-1', { seconds: 20 }))],
  ['a node that reboots for a package', silentKubelet(70, rebooting('b'))],
  ['a node that reboots, which the API server has not noticed', silentKubelet(30, rebooting('b'))],
  [
    'a node that reboots, whose agent has ended',
    withPod(
      'node-1',
      { isReady: false, seconds: 20, state: { terminated: { reason: 'Error', exitCode: 143 } } },
      rebooting('b'),
    ),
  ],
  ['a node that is back from its reboot, whose agent starts', withPod('node-1', young(3), rebooting('b2'))],
  [
    'a node that joins',
    withPod(
      'node-1',
      undefined,
      withNode('node-1', ({ metadata, ...node }) =>
        cluster.withReady(
          { ...node, metadata: { ...metadata, creationTimestamp: secondsAgo(30) } },
          'False',
          30,
          'cni plugin not initialized',
        ),
      ),
    ),
  ],
  ['kubelets that are a renewal late', { ...healthyCluster, heartbeats: { 'node-1': 21, 'node-2': 3, 'node-3': 12 } }],
  [
    'hosts whose clocks are behind that of this machine',
    { ...healthyCluster, heartbeats: { 'node-1': 50, 'node-2': 47, 'node-3': 53 } },
  ],
]

const healthyRows = healthy.map(([title, objects, second = objects]) => ({ title, objects, second }))

test.each(healthyRows)('doctor finds nothing wrong with $title', async ({ objects, second }) => {
  const { checks } = await look(objects, 'node-1', second)
  expect(checks.flatMap(({ findings }) => findings)).toEqual([])
})

test.each([
  ['a node that reboots for a package', silentKubelet(70, rebooting('b'))],
  ['a node that reboots, which the API server has not noticed', silentKubelet(30, rebooting('b'))],
  ['a node that is back from its reboot, whose agent starts', withPod('node-1', young(3), rebooting('b2'))],
])('explain reports that %s reboots, and blames neither kubelet nor agent', async (_, objects) => {
  const { verdict, gates } = (await look(objects)).explanation
  expect(causesIn(gates)).toEqual(['reboot-pending'])
  expect(verdict?.message).toContain('reboots for Skyhook tuning')
})

test('doctor does not pass an installation whose agents have only started, none of them Ready', async () => {
  const { checks } = await look(onAll(notStarted('ContainerCreating')), 'node-1')
  const early = (await look(onAll({ ...notStarted('ContainerCreating'), seconds: 10 }))).checks
  const verdictOf = (all: typeof checks) => all.find(({ check }) => check === 'agents')?.verdict
  expect([verdictOf(early), verdictOf(checks)]).toEqual(['unknown', 'error'])
})
