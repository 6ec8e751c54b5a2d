/**
 * Skyhooks and DeploymentPolicies that the API server refuses, and its answers. The real server and the command-line
 * tool are held to the same rows.
 */
import { group, manyKeys, manyPackages, pace, tuning, withPackage } from './sample-specs.ts'

type Json = Record<string, unknown>
type Kind = 'Skyhook' | 'DeploymentPolicy'

export type RefusedObject = {
  readonly kind: Kind
  readonly what: string
  readonly name: string
  readonly spec: Json
  /** The path of the field as in `spec.packages.tuning`, or empty. */
  readonly place: string
  /** Of the answer after the place, without the value that it quotes. May be empty. */
  readonly text: string
}

/** What is wrong, fields, and the answer: `place: text`, one of the two, or a sentence that names the place itself. */
type Row = readonly [what: string, fields: Json, answer: string, name?: string]

function refused(kind: Kind, parent: string, [what, spec, answer, name = 'candidate']: Row): RefusedObject {
  const [, place, text = ''] = /^([\w.[\]]+)(?:: (.*))?$/.exec(answer) ?? []
  const where = place === undefined ? { place: '', text: answer } : { place: `${parent}.${place}`, text }
  return { kind, what, name, spec, ...where }
}

/** Of the spec. */
const skyhooks: readonly Row[] = [
  [
    'percent and count',
    { interruptionBudget: { percent: 1, count: 1 } },
    'interruptionBudget: percent and count exclude each other; keep one of them',
  ],
  ['percent above 100', { interruptionBudget: { percent: 101 } }, 'interruptionBudget.percent'],
  ['a negative count', { interruptionBudget: { count: -1 } }, 'interruptionBudget.count'],
  [
    'a policy and a budget',
    { deploymentPolicy: 'p', interruptionBudget: { count: 1 } },
    'deploymentPolicy: deploymentPolicy and interruptionBudget.percent or .count exclude each other',
  ],
  [
    'maxCount beside count',
    { interruptionBudget: { count: 1, maxCount: 1 } },
    'interruptionBudget.maxCount: maxCount only caps a percent',
  ],
  ['maxCount alone', { interruptionBudget: { maxCount: 1 } }, 'maxCount only caps a percent'],
  [
    'a package name with a digit at its end',
    { packages: { cuda12: tuning } },
    'packages: not a valid package name: ["cuda12"]; use 2 to 43 lower-case letters',
  ],
  ['a package name of 44 characters', { packages: { ['p'.repeat(44)]: tuning } }, 'not a valid package name'],
  [
    'a package whose name differs from its key',
    withPackage({ name: 'other' }),
    'packages: packages ["tuning"] carry another name than their key',
  ],
  ['a package without a version', { packages: { tuning: { image: 'i' } } }, 'packages.tuning.version: Required value'],
  [
    'a dependency on a package that it lacks',
    withPackage({ dependsOn: { other: '1' } }),
    'packages: dependsOn of packages ["tuning"] names [["other"]]; it may name only packages of this Skyhook',
  ],
  [
    'a dependency on another version',
    { packages: { tuning: { ...tuning, dependsOn: { other: '1.0' } }, other: tuning } },
    'tuning.dependsOn wants other 1.0, which is at 1.1.0',
  ],
  ['65 packages', manyPackages(65), 'packages: Too many'],
  [
    'the operator In without values',
    { nodeSelectors: { matchExpressions: [{ key: 'a', operator: 'In' }] } },
    'nodeSelectors.matchExpressions[0].values: In and NotIn need at least one value',
  ],
  [
    'the operator Exists with values',
    { podNonInterruptLabels: { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] } },
    'podNonInterruptLabels.matchExpressions[0].values',
  ],
  [
    'an unknown selector operator',
    { nodeSelectors: { matchExpressions: [{ key: 'a', operator: 'Like', values: ['b'] }] } },
    'nodeSelectors.matchExpressions[0].operator: Unsupported value: "Like"',
  ],
  [
    'a label key with a blank',
    { nodeSelectors: { matchLabels: { 'a b': 'c' } } },
    'nodeSelectors.matchLabels: no label key: ["a b"]',
  ],
  ['a label value with a blank', { nodeSelectors: { matchLabels: { a: 'b c' } } }, 'nodeSelectors.matchLabels.a'],
  [
    'an empty toleration',
    { additionalTolerations: [{ effect: 'NoSchedule' }] },
    'additionalTolerations[0].operator: a toleration without key needs operator: Exists',
  ],
  ['priority 0', { priority: 0 }, 'priority'],
  ['an unknown value of drain.cordon', { drain: { cordon: 'soon' } }, 'drain.cordon: Unsupported value: "soon"'],
  ['a drain timeout of zero', { drain: { timeoutSeconds: 0 } }, 'drain.timeoutSeconds'],
  ['a pause in the spec, where it would have no effect', { pause: true }, 'unknown field "spec.pause"'],
  ['a name of 54 characters', {}, 'metadata.name has 54 characters; use at most 53', 'n'.repeat(54)],
]

/** Metadata beside a name, and where the answer is. */
export const refusedMetadata: readonly (readonly [what: string, metadata: Json, place: string])[] = [
  ['a label value of a chart whose version has a +', { labels: { 'helm.sh/chart': 'x-0.1.0+build.5' } }, 'labels'],
  ['a label value of 64 characters', { labels: { a: 'x'.repeat(64) } }, 'labels'],
  ['a label key with a blank', { labels: { 'a b': '' } }, 'labels'],
  ['a label that is a number', { labels: { a: 1 } }, 'labels'],
  ['an annotation key with two slashes', { annotations: { 'a/b/c': '' } }, 'annotations'],
  ['an annotation that is true', { annotations: { 'skyhook.nvidia.com/pause': true } }, 'annotations'],
  [
    'an owner without uid',
    { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x' }] },
    'ownerReferences',
  ],
  [
    'a field that owners do not have',
    { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: '1', namespace: 'x' }] },
    'ownerReferences',
  ],
  ['a time that is none', { creationTimestamp: 'yesterday' }, 'creationTimestamp'],
  ['a finalizer with a blank', { finalizers: ['a b'] }, 'finalizers'],
  ['a field that metadata do not have', { label: {} }, 'label'],
  ['labels in a list', { labels: ['a'] }, 'labels'],
]

/** Metadata beside a name that are accepted, as charts and `kubectl get` write them. */
export const acceptedMetadata: readonly (readonly [what: string, metadata: Json])[] = [
  ['labels of a chart', { labels: { 'helm.sh/chart': 'x-0.1.0_build.5', 'app.kubernetes.io/name': 'x', empty: '' } }],
  ['annotations with capitals in their domain', { annotations: { 'Example.com/Note': 'a b\nc' } }],
  ['a namespace, which is dropped', { namespace: 'skyhook' }],
  ['fields that are null', { creationTimestamp: null, labels: null, annotations: null, ownerReferences: null }],
  ['an owner', { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: '1' }] }],
  ['a finalizer', { finalizers: ['example.com/keep'] }],
]

/** Of the package tuning. */
const packages: readonly Row[] = [
  ...['cron*', 'cron.service ', '/dev/sda1', '@tty1', 'getty@'].map(
    (name): Row => [
      `a service ${JSON.stringify(name)}`,
      { interrupt: { type: 'service', services: ['kubelet', name] } },
      'interrupt.services[1]',
    ],
  ),
  [
    'a service of a changed key with a blank',
    { configMap: { a: '' }, configInterrupts: { a: { type: 'service', services: ['my service'] } } },
    'configInterrupts.a.services[0]',
  ],
  ['a version with slashes', { version: '2024/07/06' }, 'version: not a version; write 1 to 3 numbers'],
  ['a version of four numbers', { version: '1.2.3.4' }, 'version'],
  ['a version that is a word', { version: 'latest' }, 'version'],
  ['+build without digest', { version: '1.0.0+b1' }, 'containerSHA: a version with +build is not a legal image tag'],
  [
    'a digest in the image',
    { image: 'i@sha256:00' },
    'image: an image takes no digest; put sha256:<64 hex digits> into containerSHA',
  ],
  ['a blank in the image', { image: 'my image' }, 'image'],
  [
    'a short digest',
    { containerSHA: 'sha256:12' },
    'containerSHA: not a digest; write sha256: and 64 lower-case hex digits',
  ],
  ['an unknown interrupt', { interrupt: { type: 'restart' } }, 'interrupt.type: Unsupported value: "restart"'],
  [
    'an interrupt with an unknown `when`',
    { interrupt: { type: 'reboot', when: 'asked' } },
    'interrupt.when: Unsupported value: "asked"',
  ],
  [
    'a configInterrupt with an unknown `when`',
    { configMap: { x: '' }, configInterrupts: { x: { type: 'reboot', when: 'asked' } } },
    'configInterrupts.x.when: Unsupported value: "asked"',
  ],
  ['rerunOnRequest without minInterval', { rerunOnRequest: {} }, 'rerunOnRequest.minInterval: Required value'],
  [
    'a minInterval below one minute',
    { rerunOnRequest: { minInterval: '59s' } },
    'rerunOnRequest.minInterval: must be at least 1m, such as 24h',
  ],
  ['a minInterval in days', { rerunOnRequest: { minInterval: '1d' } }, 'rerunOnRequest.minInterval'],
  [
    'a package that depends on itself',
    { dependsOn: { tuning: '1.1.0' } },
    'dependsOn of packages ["tuning"] names the package itself',
  ],
  [
    'configInterrupts for a missing key',
    { configMap: { 'a.sh': '' }, configInterrupts: { 'b.sh': { type: 'noop' } } },
    'configInterrupts: configMap has no key for ["b.sh"]',
  ],
  [
    'a pattern that matches no key',
    { configMap: { 'a.sh': '' }, configInterrupts: { '*.conf': { type: 'noop' } } },
    'configMap has no key for ["*.conf"]',
  ],
  [
    'a pattern whose dot would have to match any character',
    { configMap: { axsh: '' }, configInterrupts: { '*.sh': { type: 'noop' } } },
    'configMap has no key for ["*.sh"]',
  ],
  [
    'configInterrupts without configMap',
    { configInterrupts: { '*': { type: 'noop' } } },
    'configMap has no key for ["*"]',
  ],
  [
    'a configMap key that leaves its folder',
    { configMap: { '../passwd': '' } },
    'configMap: no file name: ["../passwd"]',
  ],
  ['129 configMap keys', { configMap: manyKeys(129) }, 'configMap: Too many'],
  ['an image of 513 characters', { image: 'i'.repeat(513) }, 'image: Too long'],
  [
    'an environment variable that systemd cannot set',
    { env: [{ name: 'A-B', value: '' }] },
    'env[0].name: not a variable name that systemd can set',
  ],
  [
    'an environment variable without a source',
    { env: [{ name: 'A', valueFrom: {} }] },
    'env[0].valueFrom: give exactly one of secretKeyRef',
  ],
  [
    'an environment variable with two sources',
    { env: [{ name: 'A', value: 'x', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] },
    'value and valueFrom exclude each other',
  ],
  [
    'a fieldRef that agents do not know',
    { env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] },
    'env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.name"',
  ],
  [
    'incomplete resources',
    { resources: { cpuRequest: '1', cpuLimit: '1' } },
    'resources: give all of cpuRequest, cpuLimit, memoryRequest and memoryLimit, or none of them',
  ],
  [
    'a limit below its request',
    { resources: { cpuRequest: '1', cpuLimit: '500m', memoryRequest: '1Gi', memoryLimit: '1Gi' } },
    'resources: a limit is below its request',
  ],
  [
    'negative resources',
    { resources: { cpuRequest: '-1', cpuLimit: '1', memoryRequest: '1', memoryLimit: '1' } },
    'resources: below zero',
  ],
  ['resources that are not quantities', { resources: { cpuRequest: 'much' } }, 'resources.cpuRequest'],
  ['a duration without a unit', { gracefulShutdown: '30' }, 'gracefulShutdown'],
  ['a negative duration', { stageTimeout: '-5s' }, 'stageTimeout'],
  [
    'uninstall.apply without uninstall.enabled',
    { uninstall: { apply: true } },
    'uninstall.enabled: apply: true uninstalls the package, which needs enabled: true',
  ],
]

/** Of the spec of a DeploymentPolicy with one compartment or none. */
const policies: readonly Row[] = [
  ['no default', { compartments: [] }, 'default: Required value'],
  [
    'percent and count',
    { default: { ...pace, budget: { percent: 1, count: 1 } } },
    'default.budget: give exactly one of percent and count',
  ],
  ['neither percent nor count', { default: { ...pace, budget: {} } }, 'default.budget: give exactly one'],
  ['a budget of zero', { default: { ...pace, budget: { count: 0 } } }, 'default.budget.count'],
  [
    'two strategies',
    { default: { ...pace, strategy: { fixed: {}, linear: {} } } },
    'default.strategy: give exactly one of fixed, linear and exponential',
  ],
  ['no strategy', { default: { ...pace, strategy: {} } }, 'default.strategy: give exactly one'],
  [
    'a factor of 1',
    { default: { ...pace, strategy: { exponential: { growthFactor: 1 } } } },
    'default.strategy.exponential.growthFactor',
  ],
  [
    'two compartments of the same name',
    { default: pace, compartments: [group('a'), group('a', { selector: {} })] },
    'compartments[1]: Duplicate value: {"name":"a"}',
  ],
  [
    'two compartments with the same selector',
    { default: pace, compartments: [group('a', { selector: {} }), group('b', { selector: {} })] },
    'compartments: compartments ["a", "b"] have the same selector',
  ],
  [
    'a compartment named __default__',
    { default: pace, compartments: [group('__default__')] },
    'compartments[0].name: __default__ stands for the nodes of no compartment',
  ],
  [
    'a compartment without budget',
    { default: pace, compartments: [group('a', { budget: undefined })] },
    'compartments[0].budget: Required value',
  ],
  [
    'maxCount beside count',
    { default: { ...pace, budget: { count: 2, maxCount: 1 } } },
    'default.budget.maxCount: maxCount only caps a percent',
  ],
]

export const refusedObjects: readonly RefusedObject[] = [
  ...skyhooks.map((row) => refused('Skyhook', 'spec', row)),
  ...packages.map(([what, fields, answer]) =>
    refused('Skyhook', 'spec.packages.tuning', [what, withPackage(fields), answer]),
  ),
  ...policies.map((row) => refused('DeploymentPolicy', 'spec', row)),
]
