/** What is wrong with packages, their steps and their specs. */
import type { PackageSpec, SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import type { FleetScene } from '../../kit/fleet/fleet-scene.ts'
import type { BrokenScene } from './broken-scene.ts'
import {
  awaitReason,
  awaitStatus,
  beside,
  createSecret,
  failStep,
  image,
  nextImage,
  nextVersion,
  one,
  packageOf,
  rebooting,
  secretOf,
  withHealthy,
} from './breakage.ts'

const fixPackage = 'fix the package or its configuration and apply it'
const failing = {
  objects: ['Package/p0a'],
  never: ['on the host', 'when: required', 'p0b'],
  remedy: fixPackage,
} as const

export const workRows: readonly BrokenScene[] = [
  {
    title: 'a step that fails',
    skyhooks: { s: withHealthy() },
    broken: (scene) => failStep(scene, 'apply'),
    reason: 'StepFailed',
    cause: 'step-failing',
    ...failing,
    shows: /apply\.sh/,
    mend: nextImage,
  },
  {
    title: 'a check that fails',
    skyhooks: { s: withHealthy() },
    broken: (scene) => failStep(scene, 'apply-check'),
    reason: 'CheckFailed',
    cause: 'check-failing',
    ...failing,
    shows: /apply-check\.sh/,
    mend: nextImage,
  },
  {
    title: 'a configuration whose step fails',
    skyhooks: { s: { packages: { ...packageOf({ configMap: { 'a.conf': 'wrong' } }), ...beside } } },
    broken: (scene) =>
      void scene.host('host1').conditions.change({
        isFailing: ({ mode, package: name }) =>
          mode === 'config' && name === 'p0a' && wantedBy(scene, 'p0a', 'a.conf') === 'wrong',
      }),
    reason: 'StepFailed',
    cause: 'step-failing',
    ...failing,
    shows: /config\.sh/,
    mend: (scene) => scene.editSkyhook('s', { spec: { packages: { p0a: { configMap: { 'a.conf': 'right' } } } } }),
  },
  {
    title: 'a check after the reboot that fails',
    nodes: one,
    skyhooks: { s: rebooting },
    broken: (scene) => failStep(scene, 'post-interrupt-check'),
    reason: 'CheckFailed',
    cause: 'check-failing',
    ...failing,
    shows: /post-interrupt-check\.sh/,
    mend: nextImage,
  },
  {
    title: 'an upgrade that fails',
    nodes: one,
    async reach(scene) {
      await awaitStatus(scene, 'complete')
      failStep(scene, 'upgrade', '1.0.1')
      scene.editSkyhook('s', nextVersion)
      await awaitReason(scene, 'StepFailed')
    },
    cause: 'step-failing',
    ...failing,
    shows: /upgrade\.sh/,
    mend: (scene) => scene.editSkyhook('s', { spec: { packages: packageOf({ version: '1.0.2' }) } }),
  },
  {
    title: 'an uninstall that fails',
    nodes: one,
    async reach(scene) {
      await awaitStatus(scene, 'complete')
      failStep(scene, 'uninstall')
      scene.editSkyhook('s', { spec: { packages: { p0a: { uninstall: { enabled: true, apply: true } } } } })
      await awaitReason(scene, 'StepFailed')
    },
    cause: 'uninstall-failing',
    objects: ['Package/p0a'],
    remedy: 'command',
  },
  {
    title: 'a step that exceeds its stageTimeout',
    nodes: one,
    skyhooks: { s: { packages: packageOf({ stageTimeout: '10s' }) } },
    broken: (scene) => void scene.host('host1').conditions.change({ stepMs: 60_000 }),
    reason: 'StepFailed',
    cause: 'step-failing',
    objects: ['Package/p0a'],
    remedy: 'raise stageTimeout of the package',
    shows: /apply\.sh/,
    mend: (scene) => scene.editSkyhook('s', { spec: { packages: { p0a: { stageTimeout: '10m' } } } }),
  },
  {
    title: 'a status file that the interrupt requires and the package does not write',
    nodes: one,
    skyhooks: { s: { packages: packageOf({ interrupt: { type: 'reboot', when: 'required' } }) } },
    reason: 'CheckFailed',
    cause: 'check-failing',
    objects: ['Package/p0a'],
    remedy: 'remove when: required from its interrupt if it writes no status file',
    mend: (scene) => scene.editSkyhook('s', { spec: { packages: { p0a: { interrupt: { when: null } } } } }),
  },
  {
    title: 'a file that two packages write',
    nodes: one,
    skyhooks: {
      s: {
        packages: {
          ...packageOf({ interrupt: { type: 'reboot' }, configMap: { 'sysctl.conf': 'a' } }),
          p0b: { ...beside.p0b, interrupt: { type: 'reboot' }, configMap: { 'sysctl.conf': 'b' } },
        },
      },
    },
    broken: writeOneFile,
    reason: 'CheckFailed',
    cause: 'check-failing',
    objects: ['Package/p0b'], // p0a has an apply stage before its config, and writes last
    never: ['p0a'],
    remedy: fixPackage,
    shows: /post-interrupt-check\.sh/,
    mend: (scene) => scene.editSkyhook('s', { spec: { packages: { p0b: { configMap: { 'sysctl.conf': 'a' } } } } }),
  },
]

const wantedBy = (scene: FleetScene, name: string, file: string): string | undefined =>
  scene.skyhook('s').spec.packages?.[name]?.configMap?.[file]

/** Each config step writes /etc/sysctl.conf as the configMap of its package says, and the check reads it. */
function writeOneFile(scene: FleetScene): void {
  let content: string | undefined
  scene.host('host1').conditions.change({
    isFailing({ mode, package: name }) {
      const wanted = wantedBy(scene, name, 'sysctl.conf')
      if (mode === 'config') content = wanted
      return mode === 'post-interrupt-check' && content !== wanted
    },
  })
}

const envOf = (name: string, valueFrom: object): PackageSpec['env'] => [{ name, valueFrom }] as PackageSpec['env']
const missing = {
  nodes: one,
  reason: 'ReferenceMissing',
  cause: 'reference-missing',
  objects: ['Package/p0a'],
  never: ['p0b'],
  shows: /SecretList/,
} as const

export const specRows: readonly BrokenScene[] = [
  {
    title: 'a Secret that is missing',
    ...missing,
    skyhooks: { s: withHealthy({ env: secretOf('tokens') ?? [] }) },
    says: ['tokens'],
    remedy: 'Create what the message names',
    mend: (scene) => createSecret(scene, 'tokens'),
  },
  {
    title: 'a Secret without the key',
    ...missing,
    skyhooks: { s: withHealthy({ env: envOf('WORD', { secretKeyRef: { name: 'tokens', key: 'b' } }) ?? [] }) },
    broken: (scene) => createSecret(scene, 'tokens'),
    says: ['tokens', 'b'],
    remedy: 'Create what the message names',
    mend: (scene) => scene.simulation.admin.patch('/api/v1/namespaces/skyhook/secrets/tokens', { data: { b: 'Yg==' } }),
  },
  {
    title: 'a ConfigMap that is missing',
    ...missing,
    skyhooks: { s: withHealthy({ env: envOf('WORD', { configMapKeyRef: { name: 'words', key: 'a' } }) ?? [] }) },
    says: ['words'],
    remedy: 'mark the reference optional',
    mend: (scene) =>
      scene.editSkyhook('s', {
        spec: {
          packages: { p0a: { env: envOf('WORD', { configMapKeyRef: { name: 'words', key: 'a', optional: true } }) } },
        },
      }),
  },
  {
    title: 'a Secret of one of two packages of an image',
    nodes: one,
    skyhooks: { s: { packages: { good: { version: '1.0.0', image, configMap: { 'a.sh': 'true' } } } } },
    async reach(scene) {
      await awaitStatus(scene, 'complete')
      scene.editSkyhook('s', { spec: { packages: { zbroken: { version: '1.0.0', image, env: secretOf('tokens') } } } })
      await awaitReason(scene, 'ReferenceMissing')
    },
    cause: 'reference-missing',
    objects: ['Package/zbroken'],
    never: ['good'],
    remedy: 'Create what the message names',
    mend: (scene) => createSecret(scene, 'tokens'),
  },
  {
    title: 'two packages that each lack a Secret',
    nodes: one,
    skyhooks: {
      s: {
        packages: {
          ...packageOf({ env: secretOf('first') ?? [] }),
          p0b: { ...beside.p0b, env: secretOf('second') ?? [] },
        },
      },
    },
    reason: 'ReferenceMissing',
    cause: 'reference-missing',
    objects: ['Package/p0a', 'Package/p0b'],
    also: ['reference-missing'],
    remedy: 'Create what the message names',
    mend: (scene) => createSecret(scene, 'first'),
    next: [
      {
        cause: 'reference-missing',
        objects: ['Package/p0b'],
        remedy: 'Create what the message names',
        mend: (scene) => createSecret(scene, 'second'),
      },
    ],
  },
  ...(
    [
      [
        'packages that depend on each other',
        {
          p0a: { version: '1.0.0', image, dependsOn: { p0b: '1.0.0' } },
          p0b: { ...beside.p0b, dependsOn: { p0a: '1.0.0' } },
        },
        { p0a: { dependsOn: null } },
      ],
      [
        'a service whose name no unit can have',
        packageOf({ interrupt: { type: 'service', services: ['web server'] } }),
        { p0a: { interrupt: { services: ['web.service'] } } },
      ],
      [
        'a variable that no process can have',
        packageOf({ env: [{ name: 'A=B', value: 'c' }] }),
        { p0a: { env: [{ name: 'A', value: 'c' }] } },
      ],
    ] as const
  ).map(
    ([title, packages, edited]): BrokenScene => ({
      title,
      nodes: one,
      skyhooks: { s: { packages: packages as SkyhookSpec['packages'] & object } },
      reason: 'InvalidSpec',
      cause: 'invalid-spec',
      objects: [],
      remedy: 'Correct the spec as the message says',
      edit: { spec: { packages: edited } },
    }),
  ),
]
