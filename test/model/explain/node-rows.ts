/** What is wrong with nodes and their kubelets, and settings that keep a node out. */
import { disableKey, ignoreLabel, pauseKey } from '../../../src/schemas/annotations.ts'
import type { FleetScene } from '../../kit/fleet/fleet-scene.ts'
import type { BrokenScene } from './broken-scene.ts'
import {
  annotateAtOnce,
  awaitReason,
  awaitStatus,
  beforeWork,
  kubeletStatus,
  one,
  packageOf,
  rebooting,
  sayReady,
} from './breakage.ts'

const taintBy = (...taints: readonly object[]) => ({
  broken: (scene: FleetScene): void => beforeWork(scene, () => scene.editNode('node1', { spec: { taints } })),
  reason: 'TaintNotTolerated',
  cause: 'taint' as const,
  objects: ['Node/node1'],
})
const untaint = (scene: FleetScene): void => scene.editNode('node1', { spec: { taints: [] } })
const gpu = { key: 'gpu', effect: 'NoSchedule' }

/** What a kubelet that runs says of its node. */
const unready = (scene: FleetScene, message: string): void => sayReady(scene, 'False', message)

const ofNode = { cause: 'node-not-ready', objects: ['Node/node1'], doctor: ['node-not-ready'] } as const
const unhelpful = ['additionalTolerations', 'remove the taint', 'logs', 'does not answer']

export const settingRows: readonly BrokenScene[] = [
  {
    title: 'a paused Skyhook',
    broken: (scene) => annotateAtOnce(scene, pauseKey),
    reason: 'Paused',
    cause: 'paused',
    objects: ['Skyhook/s'],
    remedy: 'command',
  },
  {
    title: 'a Skyhook that someone paused during the work',
    async reach(scene) {
      scene.host('host1').conditions.change({ stepMs: 6_000 })
      await awaitStatus(scene, 'in_progress')
      scene.editSkyhook('s', { metadata: { annotations: { [pauseKey]: 'true' } } })
      await awaitReason(scene, 'Paused')
      await scene.pass(15_000)
    },
    cause: 'paused',
    objects: ['Skyhook/s'],
    remedy: 'command',
  },
  {
    title: 'a disabled Skyhook',
    broken: (scene) => annotateAtOnce(scene, disableKey),
    reason: 'Disabled',
    cause: 'disabled',
    objects: ['Skyhook/s'],
    remedy: 'command',
  },
  {
    title: 'an ignored node',
    broken: (scene) =>
      beforeWork(scene, () => scene.editNode('node1', { metadata: { labels: { [ignoreLabel]: 'true' } } })),
    reason: 'Ignored',
    cause: 'ignored',
    objects: ['Node/node1'],
    remedy: 'command',
  },
  {
    title: 'a taint of a person, who removes it,',
    ...taintBy(gpu),
    remedy: 'remove the taint',
    shows: /gpu/,
    mend: untaint,
  },
  {
    title: 'a taint that the Skyhook is to tolerate',
    ...taintBy(gpu),
    remedy: 'add it to spec.additionalTolerations',
    mend: (scene) => scene.editSkyhook('s', { spec: { additionalTolerations: [{ key: 'gpu', operator: 'Exists' }] } }),
  },
  {
    title: 'a second taint beside one that the Skyhook tolerates',
    ...taintBy(gpu, { key: 'example.com/maintenance', value: 'disk', effect: 'NoExecute' }),
    skyhooks: { s: { additionalTolerations: [{ key: 'gpu', operator: 'Exists' }] } },
    says: ['example.com/maintenance=disk:NoExecute'],
    never: ['gpu'],
    remedy: 'remove the taint',
    mend: untaint,
  },
  {
    title: 'a disk that Kubernetes calls full',
    ...taintBy({ key: 'node.kubernetes.io/disk-pressure', effect: 'NoSchedule' }),
    says: ['node.kubernetes.io/disk-pressure'],
    never: ['additionalTolerations'],
    remedy: 'Kubernetes then removes the taint',
    shows: /disk-pressure/,
    mend: untaint,
  },
  {
    title: 'a label of a node that was changed',
    reach: async (scene) => {
      await scene.pass(6_000)
      scene.editNode('node1', { metadata: { labels: { pool: 'b' } } })
      await scene.pass(4_000)
    },
    cause: 'not-selected',
    objects: ['Node/node1'],
    remedy: 'command',
  },
  {
    title: 'an expression that leaves the node out',
    skyhooks: { s: { nodeSelectors: { matchExpressions: [{ key: 'pool', operator: 'NotIn', values: ['a'] }] } } },
    reach: async (scene) => await scene.pass(10_000),
    cause: 'not-selected',
    objects: ['Node/node1'],
    elsewhere: ['Node/node2'],
    says: ['pool not in (a)'],
    remedy: 'spec.nodeSelectors',
    edit: { spec: { nodeSelectors: { matchExpressions: [{ key: 'pool', operator: 'In', values: ['a'] }] } } },
  },
  {
    title: 'a record of NodeWright on the node',
    broken: (scene) =>
      beforeWork(scene, () =>
        scene.editNode('node1', { metadata: { annotations: { 'nodewright.nvidia.com/version_s': 'v0.20.0' } } }),
      ),
    reason: 'Takeover',
    cause: 'takeover',
    objects: ['Node/node1'],
    says: ['nodewright.nvidia.com/version_s'],
    remedy: 'command',
  },
]

export const nodeRows: readonly BrokenScene[] = [
  {
    title: 'a kubelet that dies before the work',
    broken(scene, outside) {
      kubeletStatus(scene, outside)
      beforeWork(scene, () => sayReady(scene, 'Unknown'))
    },
    reason: 'NodeNotReady',
    ...ofNode,
    says: ['node node1 is NotReady since', 'Kubelet stopped posting node status', 'systemctl status kubelet'],
    never: unhelpful,
    remedy: 'start the kubelet of node1: its host outlived it',
    shows: /inactive/,
    status: 3,
    mend: (scene) => sayReady(scene, 'True'),
  },
  {
    title: 'a kubelet that dies during the work',
    skyhooks: { s: { packages: packageOf({ interrupt: { type: 'service', services: ['web.service'] } }) } },
    async reach(scene, outside) {
      kubeletStatus(scene, outside)
      scene.host('host1').conditions.change({ stepMs: 6_000 })
      await awaitStatus(scene, 'in_progress')
      await scene.pass(1_000)
      sayReady(scene, 'Unknown')
      await awaitReason(scene, 'NodeNotReady')
    },
    ...ofNode,
    says: ['node node1 is NotReady since', 'its host outlived it', 'systemctl status kubelet'],
    never: unhelpful,
    remedy: 'start the kubelet of node1',
    shows: /inactive/,
    status: 3,
    mend: (scene) => sayReady(scene, 'True'),
  },
  {
    title: 'a network plugin that is gone before the work',
    broken: (scene) =>
      beforeWork(scene, () => unready(scene, 'container runtime network not ready: cni plugin not initialized')),
    reason: 'NodeNotReady',
    ...ofNode,
    says: ['cni plugin not initialized'],
    never: unhelpful,
    remedy: 'fix on the host what its kubelet reports',
    shows: /cni plugin not initialized/,
    mend: (scene) => sayReady(scene, 'True'),
  },
  {
    title: 'a container runtime that hangs during the work',
    skyhooks: { s: { packages: packageOf({ interrupt: { type: 'service', services: ['web.service'] } }) } },
    async reach(scene) {
      scene.host('host1').conditions.change({ stepMs: 6_000 })
      await awaitStatus(scene, 'in_progress')
      unready(scene, 'PLEG is not healthy')
      await awaitReason(scene, 'NodeNotReady')
    },
    ...ofNode,
    says: ['PLEG is not healthy'],
    never: unhelpful,
    remedy: 'fix on the host what its kubelet reports',
    shows: /PLEG is not healthy/,
    mend: (scene) => sayReady(scene, 'True'),
  },
  {
    title: 'a host that is cut off before the work',
    broken(scene) {
      beforeWork(scene, () => {
        scene.host('host1').network.cut()
        sayReady(scene, 'Unknown')
      })
      return () => {
        scene.host('host1').network.heal('reset')
        sayReady(scene, 'True')
      }
    },
    reach: async (scene) => await scene.pass(20_000),
    ...ofNode,
    never: [...unhelpful, 'its host outlived it'],
    remedy: 'start the host of node1, its network or its kubelet',
    shows: /Kubelet stopped posting node status/,
  },
  {
    title: 'a host that is cut off during the work',
    async reach(scene) {
      scene.host('host1').conditions.change({ stepMs: 60_000 })
      await awaitStatus(scene, 'in_progress')
      scene.host('host1').network.cut()
      await scene.pass(50_000)
      sayReady(scene, 'Unknown')
      await scene.pass(5_000)
      return () => {
        scene.host('host1').network.heal('reset')
        sayReady(scene, 'True')
      }
    },
    ...ofNode,
    never: [...unhelpful, 'its host outlived it'],
    remedy: 'start the host of node1, its network or its kubelet',
    shows: /Kubelet stopped posting node status/,
  },
  {
    title: 'a host that loses its power during the work',
    async reach(scene) {
      scene.host('host1').conditions.change({ stepMs: 6_000 })
      await awaitStatus(scene, 'in_progress')
      await scene.pass(2_000)
      scene.host('host1').host.cutPower({ downMs: 100_000_000 })
      await scene.pass(60_000)
      return () => scene.host('host1').host.powerOn()
    },
    ...ofNode,
    never: [...unhelpful, 'its host outlived it'],
    remedy: 'start the host of node1, its network or its kubelet',
  },
  {
    title: 'a host that does not come back from its reboot',
    nodes: one,
    skyhooks: { s: rebooting },
    async reach(scene) {
      scene.host('host1').conditions.change({ bootMs: 100_000_000 })
      await scene.until(() => scene.host('host1').host.power() === 'down', 'the reboot')
      await scene.pass(700_000)
      return () => scene.host('host1').host.powerOn()
    },
    ...ofNode,
    remedy: 'start the host of node1, its network or its kubelet',
  },
]
