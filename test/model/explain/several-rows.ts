/** Several things that are broken at once. */
import { ignoreLabel, pauseKey } from '../../../src/schemas/annotations.ts'
import type { BrokenScene } from './broken-scene.ts'
import {
  annotateAtOnce,
  awaitReason,
  beforeWork,
  beside,
  createSecret,
  failFetch,
  failStep,
  kubeletStatus,
  nextVersion,
  one,
  packageOf,
  sayReady,
  secretOf,
} from './breakage.ts'

const gpu = { key: 'gpu', effect: 'NoSchedule' }

export const severalRows: readonly BrokenScene[] = [
  {
    title: 'an ignored and tainted node of a paused Skyhook without a budget',
    nodes: one,
    skyhooks: { s: { interruptionBudget: { count: 0 } } },
    broken(scene) {
      annotateAtOnce(scene, pauseKey)
      beforeWork(scene, () =>
        scene.editNode('node1', { metadata: { labels: { [ignoreLabel]: 'true' } }, spec: { taints: [gpu] } }),
      )
    },
    reason: 'Ignored',
    cause: 'ignored',
    objects: ['Node/node1', 'Skyhook/s', 'Node/node1', 'Skyhook/s'],
    also: ['paused', 'taint', 'budget-zero'],
    remedy: 'command',
    next: [
      { cause: 'paused', objects: ['Skyhook/s'], also: ['taint', 'budget-zero'], remedy: 'command' },
      {
        cause: 'taint',
        objects: ['Node/node1'],
        also: ['budget-zero'],
        remedy: 'remove the taint',
        mend: (scene) => scene.editNode('node1', { spec: { taints: [] } }),
      },
      { cause: 'budget-zero', objects: ['Skyhook/s'], remedy: 'command' },
    ],
  },
  {
    title: 'a dead kubelet of a paused Skyhook',
    nodes: one,
    broken(scene, outside) {
      annotateAtOnce(scene, pauseKey)
      kubeletStatus(scene, outside)
      beforeWork(scene, () => sayReady(scene, 'Unknown'))
    },
    reason: 'Paused',
    cause: 'node-not-ready',
    objects: ['Node/node1', 'Skyhook/s'],
    also: ['paused'],
    doctor: ['node-not-ready'],
    remedy: 'start the kubelet of node1',
    status: 3,
    mend: (scene) => sayReady(scene, 'True'),
    next: [{ cause: 'paused', objects: ['Skyhook/s'], remedy: 'command' }],
  },
  {
    title: 'an image that is missing and a budget of 0',
    nodes: one,
    skyhooks: { s: { interruptionBudget: { count: 0 } } },
    broken: (scene) => void failFetch(scene, 'not-found'),
    reason: 'ImagePull',
    cause: 'image-pull',
    objects: ['Package/p0a', 'Skyhook/s'],
    also: ['budget-zero'],
    remedy: 'correct image and version of the package',
    edit: nextVersion,
    next: [{ cause: 'budget-zero', objects: ['Skyhook/s'], remedy: 'command' }],
  },
  {
    title: 'two packages, one whose image is missing and one that lacks a Secret',
    nodes: one,
    skyhooks: { s: { packages: { ...packageOf({ env: secretOf('tokens') ?? [] }), ...beside } } },
    broken: (scene) => void failFetch(scene, 'not-found', 'p0b|1.0.0'),
    reason: 'ReferenceMissing',
    reach: async (scene) => await scene.pass(15_000),
    cause: 'reference-missing',
    objects: ['Package/p0a', 'Package/p0b'],
    also: ['image-pull'],
    remedy: 'Create what the message names',
    mend: (scene) => createSecret(scene, 'tokens'),
    next: [
      {
        cause: 'image-pull',
        objects: ['Package/p0b'],
        remedy: 'correct image and version of the package',
        edit: { spec: { packages: { p0b: { version: '1.0.1' } } } },
      },
    ],
  },
  {
    title: 'a failing step of a Skyhook that someone paused',
    nodes: one,
    async reach(scene) {
      failStep(scene, 'apply')
      await awaitReason(scene, 'StepFailed')
      scene.editSkyhook('s', { metadata: { annotations: { [pauseKey]: 'true' } } })
      await awaitReason(scene, 'Paused')
    },
    cause: 'paused',
    objects: ['Skyhook/s', 'Package/p0a'],
    also: ['step-failing'],
    remedy: 'command',
    next: [
      {
        cause: 'step-failing',
        objects: ['Package/p0a'],
        remedy: 'fix the package or its configuration and apply it',
        shows: /apply\.sh/,
        mend: (scene) => scene.editSkyhook('s', nextVersion),
      },
    ],
  },
  {
    title: 'a full disk of a tainted node',
    nodes: one,
    broken(scene) {
      const { disk } = scene.host('host1').host
      beforeWork(scene, () => {
        scene.editNode('node1', { spec: { taints: [gpu] } })
        disk.setFull(true)
      })
      return () => disk.setFull(false)
    },
    reach: async (scene) => await scene.pass(20_000),
    cause: 'host-unusable',
    objects: ['Node/node1', 'Node/node1'],
    also: ['taint'],
    doctor: ['host-reason'],
    remedy: 'free space',
    status: 1,
    next: [
      {
        cause: 'taint',
        objects: ['Node/node1'],
        remedy: 'remove the taint',
        mend: (scene) => scene.editNode('node1', { spec: { taints: [] } }),
      },
    ],
  },
  {
    title: 'a full disk of a Skyhook that someone paused',
    nodes: one,
    async reach(scene) {
      const { disk } = scene.host('host1').host
      beforeWork(scene, () => disk.setFull(true))
      await awaitReason(scene, 'HostUnusable')
      await scene.pass(5_000)
      scene.editSkyhook('s', { metadata: { annotations: { [pauseKey]: 'true' } } })
      await awaitReason(scene, 'Paused')
    },
    cause: 'paused',
    objects: ['Skyhook/s', 'Node/node1'],
    also: ['host-unusable'],
    remedy: 'command',
    next: [
      {
        cause: 'host-unusable',
        objects: ['Node/node1'],
        remedy: 'free space',
        status: 1,
        mend: (scene) => scene.host('host1').host.disk.setFull(false),
      },
    ],
  },
  {
    title: 'a node that lacks a Secret beside a node whose disk is full',
    skyhooks: { s: { packages: packageOf({ env: secretOf('tokens') ?? [] }), interruptionBudget: { count: 2 } } },
    broken(scene) {
      const { disk } = scene.host('host2').host
      beforeWork(scene, () => disk.setFull(true))
    },
    reason: 'ReferenceMissing',
    cause: 'reference-missing',
    objects: ['Package/p0a'],
    elsewhere: ['Node/node2'],
    doctor: ['host-reason'],
    remedy: 'Create what the message names',
    mend: (scene) => createSecret(scene, 'tokens'),
  },
  {
    title: 'a kubelet that died beside a package that fails on another node',
    skyhooks: { s: { interruptionBudget: { count: 2 } } },
    async reach(scene, outside) {
      kubeletStatus(scene, outside)
      scene.host('host2').conditions.change({ isFailing: ({ mode }) => mode === 'apply' })
      beforeWork(scene, () => sayReady(scene, 'Unknown'))
      await awaitReason(scene, 'NodeNotReady')
    },
    cause: 'node-not-ready',
    objects: ['Node/node1'],
    elsewhere: ['Package/p0a'],
    doctor: ['node-not-ready'],
    remedy: 'start the kubelet of node1',
    status: 3,
    mend: (scene) => sayReady(scene, 'True'),
  },
]
