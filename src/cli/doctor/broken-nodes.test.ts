/** What breaks of nodes, hosts and their surroundings, also several at once, as the API server shows it. */
import { expect, test } from 'vitest'
import * as cluster from '../../../test/kit/tool/cluster-answers.ts'
import { healthyCluster } from '../../../test/kit/tool/cluster-answers.ts'
import {
  type BrokenCluster,
  findingsLeft,
  gpu,
  paused,
  rebooting,
  report,
  silentKubelet,
  slot,
  unpullable,
  withNode,
  withPod,
} from '../../../test/kit/tool/broken-cluster.ts'

const unreachable = ['is NotReady since', 'Kubelet stopped posting node status']
const noTaint = ['additionalTolerations', 'remove the taint', 'logs skyhookd-node-1']

const situations: readonly BrokenCluster[] = [
  {
    title: 'a kubelet that died before the work began, which the API server has not noticed',
    broken: silentKubelet(30),
    cause: 'node-not-ready',
    object: 'Node/node-1',
    says: ['the kubelet of node node-1 has not renewed its Lease since', 'kube-node-lease get lease node-1'],
    doctor: ['node-not-ready'],
    mended: healthyCluster,
  },
  {
    title: 'a kubelet that died before the work began, which the API server has noticed',
    broken: silentKubelet(70),
    cause: 'node-not-ready',
    object: 'Node/node-1',
    says: [...unreachable, 'start the host of node-1, its network or its kubelet', 'kubectl describe node node-1'],
    never: noTaint,
    doctor: ['node-not-ready'],
    mended: healthyCluster,
  },
  {
    title: 'a kubelet that died during the work, whose agent continues',
    broken: silentKubelet(70, slot('node-1', 'working', 5)),
    cause: 'node-not-ready',
    object: 'Node/node-1',
    says: [
      ...unreachable,
      'start the kubelet of node-1: its host outlived it',
      'systemctl status kubelet # on the host',
    ],
    never: [...noTaint, 'delete the Node'],
    doctor: ['node-not-ready'],
    mended: slot('node-1', 'working', 5),
  },
  {
    title: 'a host that was cut off during the work',
    broken: silentKubelet(30, slot('node-1', 'working', 45)),
    cause: 'node-not-ready',
    object: 'Node/node-1',
    says: ['the kubelet of node node-1 has not renewed its Lease since', 'its network'],
    doctor: ['node-not-ready'],
  },
  {
    title: 'a host that is cut off for longer',
    broken: silentKubelet(100, slot('node-1', 'working', 110)),
    cause: 'node-not-ready',
    object: 'Node/node-1',
    says: [...unreachable, 'none of them is heard of', 'delete the Node only if the host is gone for good'],
    never: noTaint,
    doctor: ['node-not-ready'],
  },
  {
    title: 'a node that lost its network plugin before the work',
    broken: withNode('node-1', (node) =>
      cluster.withReady(node, 'False', 30, 'container runtime network not ready: cni plugin not initialized'),
    ),
    cause: 'node-not-ready',
    object: 'Node/node-1',
    says: ['cni plugin not initialized', 'mend on the host what its kubelet says', 'kubectl describe node node-1'],
    never: noTaint,
    doctor: ['node-not-ready'],
    mended: healthyCluster,
  },
  {
    title: 'a container runtime that hangs during the work',
    broken: withNode(
      'node-1',
      (node) => cluster.withReady(node, 'False', 30, 'PLEG is not healthy'),
      slot('node-1', 'working', 5),
    ),
    cause: 'node-not-ready',
    object: 'Node/node-1',
    says: ['PLEG is not healthy'],
    never: noTaint,
    doctor: ['node-not-ready'],
  },
  {
    title: 'a host that did not come back from its reboot',
    broken: silentKubelet(700, rebooting('b', 710)),
    cause: 'node-not-ready',
    object: 'Node/node-1',
    says: [...unreachable, 'start the host of node-1'],
    never: noTaint,
    doctor: ['node-not-ready'],
    also: ['reboot-pending'],
  },
  {
    title: 'a disk that Kubernetes calls full',
    broken: withNode('node-1', (node) =>
      cluster.withTaints(node, { key: 'node.kubernetes.io/disk-pressure', effect: 'NoSchedule' }),
    ),
    cause: 'taint',
    object: 'Node/node-1',
    says: ['node.kubernetes.io/disk-pressure', 'it lifts the taint by itself', 'kubectl describe node node-1'],
    never: ['additionalTolerations'],
    doctor: ['node-under-pressure'],
    doctorSays: 'node.kubernetes.io/disk-pressure: node-1',
    mended: healthyCluster,
  },
  {
    title: 'a bus of the host that does not answer',
    broken: report('HostUnreachable', 'cannot reach systemd: connection refused'),
    cause: 'host-unreachable',
    object: 'Node/node-1',
    says: ['connection refused', 'systemctl list-jobs'],
    doctor: ['host-reason'],
    mended: healthyCluster,
  },
  {
    title: 'a disk of the host that is full',
    broken: report(
      'HostUnusable',
      "the journal cannot be written: ENOSPC: no space left on device, write '/var/lib/skyhook/.agent/journal.json'",
    ),
    cause: 'host-unusable',
    object: 'Node/node-1',
    says: ['/var/lib/skyhook/.agent/journal.json', 'free space'],
    doctor: ['host-reason'],
    mended: healthyCluster,
  },
  {
    title: 'an agent that crashes at its work',
    broken: report('CrashLoop', 'the agent ended five times at apply of package pkg'),
    cause: 'crash-loop',
    object: 'Node/node-1',
    says: ['the agent ended five times', 'kubectl logs --previous'],
    doctor: ['host-reason'],
  },
  {
    title: 'a webhook that denies what the agent writes to its Node',
    broken: report('ApiRequestRefused', 'PATCH /api/v1/nodes/node-1: HTTP 403: admission webhook "n.io" denied it'),
    cause: 'api-server',
    object: 'Node/node-1',
    says: ['admission webhook "n.io" denied it', 'admission policy refuses the request'],
    doctor: ['host-reason'],
    mended: healthyCluster,
  },
  ...(
    [
      ['unreachable', 'a registry that the host does not reach', 'curl -sS https://registry.test/v2/'],
      ['unauthorized', 'a login of the chart that the registry refuses', 'imagePullSecrets of the chart'],
      ['tls', 'a certificate of a registry that the host does not trust', 'certificate'],
      ['misconfigured', 'a login of the chart that cannot be read', 'the value of the chart that the message names'],
    ] as const
  ).map(
    ([code, title, remedy]): BrokenCluster => ({
      title,
      broken: report('ImagePull', `registry.test/pkg:1.0.0: ${code}`, { code, package: 'pkg|1.0.0' }),
      cause: 'image-pull',
      object: 'Package/pkg',
      says: [code, remedy],
      doctor: ['host-reason'],
      mended: healthyCluster,
    }),
  ),
  {
    title: 'a dead kubelet and another node that cannot pull',
    broken: withPod('node-2', unpullable, silentKubelet(70)),
    cause: 'node-not-ready',
    object: 'Node/node-1',
    says: unreachable,
    never: ['ErrImagePull'],
    doctor: ['node-not-ready', 'agent-silent'],
  },
  {
    title: 'a dead kubelet of a paused Skyhook',
    broken: paused(silentKubelet(70)),
    cause: 'node-not-ready',
    object: 'Node/node-1',
    says: unreachable,
    doctor: ['node-not-ready'],
    also: ['paused'],
  },
  {
    title: 'an agent that cannot be pulled on a tainted node',
    broken: withPod(
      'node-1',
      unpullable,
      withNode('node-1', (node) => cluster.withTaints(node, gpu)),
    ),
    cause: 'agent-dead',
    object: 'Pod/skyhookd-node-1',
    says: ['ErrImagePull'],
    doctor: ['agent-silent'],
    also: ['taint'],
  },
  {
    title: 'a dead kubelet of a node that a person has tainted',
    broken: withNode('node-1', (node) => cluster.withTaints(node, gpu), silentKubelet(70)),
    cause: 'node-not-ready',
    object: 'Node/node-1',
    says: unreachable,
    doctor: ['node-not-ready'],
    also: ['taint'],
  },
]

test.each(situations)('$title is named first, 30 s after it began, and nothing else is blamed', async (situation) => {
  expect(await findingsLeft(situation)).toEqual([])
})
