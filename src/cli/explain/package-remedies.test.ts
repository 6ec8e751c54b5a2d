/** What is wrong with packages, specs and pods, and that the printed remedy lets agents complete. */
import { expect, test } from 'vitest'
import { pod } from '../../../test/kit/fleet/fleet-scene.ts'
import { protectedLabels } from '../../../test/kit/fleet/workload.ts'
import {
  type BrokenScene,
  budgetsPath,
  createSecret,
  stateAfterRemedy,
  failFetch,
  failStep,
  image,
  nextVersion,
  one,
  packageOf,
  rebooting,
  secretOf,
  strictBudget,
} from '../../../test/kit/tool/broken-scene.ts'
import { reasonKey, statusKey } from '../../schemas/annotations.ts'

const situations: readonly BrokenScene[] = [
  {
    title: 'a tag that the registry lacks',
    broken: (scene) => failFetch(scene, 'not-found'),
    reason: 'ImagePull',
    cause: 'image-pull',
    objects: ['Package/p0a'],
    says: ['kubectl edit skyhook s'],
    remedy: 'correct image and version of the package',
    mend: (scene) => scene.editSkyhook('s', nextVersion),
  },
  {
    title: 'a registry that is not reached',
    broken: (scene) => failFetch(scene, 'unreachable'),
    reason: 'ImagePull',
    cause: 'image-pull',
    objects: ['Package/p0a'],
    doctor: ['host-reason'],
    remedy: 'the node must reach the registry',
  },
  {
    title: 'a registry that asks for another login',
    broken: (scene) => failFetch(scene, 'unauthorized'),
    reason: 'ImagePull',
    cause: 'image-pull',
    objects: ['Package/p0a'],
    doctor: ['host-reason'],
    remedy: 'add credentials for the registry to imagePullSecrets of the chart',
  },
  {
    title: 'an image that is not a package',
    broken: (scene) => failFetch(scene, 'bad-image'),
    reason: 'InvalidPackage',
    cause: 'invalid-package',
    objects: ['Package/p0a'],
    remedy: 'build a correct image under a new version',
    mend: (scene) => scene.editSkyhook('s', nextVersion),
  },
  {
    title: 'a step that fails',
    broken: (scene) => failStep(scene, 'apply'),
    reason: 'StepFailed',
    cause: 'step-failing',
    objects: ['Package/p0a'],
    never: ['on the host'],
    remedy: 'fix the package or its configuration and apply it',
    mend: (scene) => scene.editSkyhook('s', nextVersion),
  },
  {
    title: 'a check that fails',
    broken: (scene) => failStep(scene, 'apply-check'),
    reason: 'CheckFailed',
    cause: 'check-failing',
    objects: ['Package/p0a'],
    never: ['on the host', 'when: required'],
    remedy: 'fix the package or its configuration and apply it',
    mend: (scene) => scene.editSkyhook('s', nextVersion),
  },
  {
    title: 'a disruption budget that allows nothing',
    nodes: [{ name: 'host1', pods: [pod('shop')] }],
    skyhooks: { s: rebooting },
    broken: strictBudget,
    reason: 'DrainBlocked',
    cause: 'disruption-budget',
    objects: ['PodDisruptionBudget/strict'],
    remedy: 'a wider budget',
    mend: (scene) => scene.simulation.admin.patch(`${budgetsPath}/strict`, { spec: { maxUnavailable: 1 } }),
  },
  {
    title: 'a webhook that denies an eviction',
    nodes: [{ name: 'host1', pods: [pod('shop')] }],
    skyhooks: { s: rebooting },
    broken(scene) {
      const { rules } = scene.simulation.server.faults
      rules.push({
        name: 'webhook',
        matches: ({ path }) => path.endsWith('/eviction'),
        fault: { kind: 'refuse', code: 500, message: 'admission webhook "evict.io" denied the request: not now' },
      })
      return () => void rules.splice(0)
    },
    reason: 'DrainBlocked',
    cause: 'eviction-denied',
    objects: ['Pod/shop-1'],
    says: ['evict.io', 'not now'],
    remedy: 'ask its owner',
  },
  {
    title: 'a protected pod',
    nodes: [{ name: 'host1', pods: [pod('train', { isProtected: true })] }],
    skyhooks: { s: { ...rebooting, podNonInterruptLabels: { matchLabels: protectedLabels } } },
    reason: 'ProtectedPods',
    cause: 'protected-pod',
    objects: ['Pod/train-1'],
    says: ['no timeout of spec.drain ends pods'],
    remedy: 'end them when it suits you',
    mend: (scene) => scene.simulation.admin.send('DELETE', '/api/v1/namespaces/apps/pods/train-1'),
  },
  {
    title: 'an earlier Skyhook that fails',
    nodes: one,
    skyhooks: {
      first: { priority: 1, packages: { p0b: { version: '1.0.0', image: 'registry.test/p0b' } } },
      s: { priority: 2 },
    },
    broken: (scene) => failFetch(scene, 'not-found'),
    reason: 'WaitingForPriority',
    cause: 'earlier-skyhook',
    objects: ['Skyhook/first'],
    says: ['kubectl skyhook explain first node1'],
    remedy: 'must complete on this node',
    mend: (scene) =>
      scene.editSkyhook('first', { spec: { packages: { p0b: { version: '1.0.1', image: 'registry.test/p0b' } } } }),
  },
  {
    title: 'a Secret that is missing',
    nodes: one,
    skyhooks: { s: { packages: packageOf({ env: secretOf('tokens') ?? [] }) } },
    reason: 'ReferenceMissing',
    cause: 'reference-missing',
    objects: ['Package/p0a'],
    says: ['tokens'],
    remedy: 'Create what the message names',
    mend: (scene) => createSecret(scene, 'tokens'),
  },
  {
    title: 'a Secret of one of two packages of an image',
    nodes: one,
    skyhooks: { s: { packages: { good: { version: '1.0.0', image, configMap: { 'a.sh': 'true' } } } } },
    async reach(scene) {
      await scene.until(() => scene.annotation('node1', statusKey('s')) === 'complete', 'good completes')
      scene.editSkyhook('s', { spec: { packages: { zbroken: { version: '1.0.0', image, env: secretOf('tokens') } } } })
      await scene.until(() => scene.annotation('node1', reasonKey('s'))?.includes('ReferenceMissing') === true, 'it')
    },
    cause: 'reference-missing',
    objects: ['Package/zbroken'],
    remedy: 'Create what the message names',
    mend: (scene) => createSecret(scene, 'tokens'),
  },
  {
    title: 'two packages that each lack a Secret',
    nodes: one,
    skyhooks: {
      s: {
        packages: {
          p0a: { version: '1.0.0', image, env: secretOf('first') ?? [] },
          p0b: { version: '1.0.0', image: 'registry.test/p0b', env: secretOf('second') ?? [] },
        },
      },
    },
    reason: 'ReferenceMissing',
    cause: 'reference-missing',
    objects: ['Package/p0a', 'Package/p0b'],
    also: ['reference-missing'],
    remedy: 'Create what the message names',
    mend(scene) {
      createSecret(scene, 'first')
      createSecret(scene, 'second')
    },
  },
  {
    title: 'a DeploymentPolicy that is missing',
    skyhooks: { s: { deploymentPolicy: 'gone' } },
    nodes: one,
    reason: 'DeploymentPolicyNotFound',
    cause: 'policy-missing',
    objects: ['DeploymentPolicy/gone'],
    remedy: 'create the DeploymentPolicy gone',
    mend: (scene) =>
      scene.simulation.admin.send('POST', '/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies', {
        metadata: { name: 'gone' },
        spec: { default: { budget: { count: 1 }, strategy: { fixed: { initialBatch: 1, batchThreshold: 100 } } } },
      }),
  },
  {
    title: 'a budget of 0',
    nodes: one,
    skyhooks: { s: { interruptionBudget: { count: 0 } } },
    reason: 'WaitingForSlot',
    cause: 'budget-zero',
    objects: ['Skyhook/s'],
    remedy: 'command',
  },
  {
    title: 'packages that depend on each other',
    nodes: one,
    skyhooks: {
      s: {
        packages: {
          p0a: { version: '1.0.0', image, dependsOn: { p0b: '1.0.0' } },
          p0b: { version: '1.0.0', image: 'registry.test/p0b', dependsOn: { p0a: '1.0.0' } },
        },
      },
    },
    reason: 'InvalidSpec',
    cause: 'invalid-spec',
    objects: ['Skyhook/s'],
    remedy: 'Correct the spec as the message says',
    mend: (scene) => scene.editSkyhook('s', { spec: { packages: { p0a: { dependsOn: null } } } }),
  },
  {
    title: 'a reboot that the host refuses',
    nodes: one,
    skyhooks: { s: rebooting },
    broken(scene) {
      const { logind } = scene.host('host1').host
      logind.setFate('refused')
      return () => logind.setFate('carried-out')
    },
    reason: 'RebootRefused',
    cause: 'reboot-refused',
    objects: ['Node/node1'],
    doctor: ['host-reason'],
    remedy: 'shows which programs hold an inhibitor lock',
  },
]

test.each(situations)('$title is named, nothing else is blamed, and its remedy helps', async (situation) => {
  expect(await stateAfterRemedy(situation)).toBe('complete')
})
