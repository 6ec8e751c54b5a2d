/**
 * Skyhooks that the API server refuses: what is wrong with each, its spec, and words of the answer. The real server and
 * the command-line tool are held to the same table.
 */
import { manyKeys, manyPackages, tuning, withPackage } from './sample-specs.ts'

export const refusedSkyhooks: readonly [what: string, spec: Record<string, unknown>, words: string][] = [
  [
    'percent and count',
    { interruptionBudget: { percent: 1, count: 1 } },
    'spec.interruptionBudget: Invalid value: percent and count exclude each other; keep one of them',
  ],
  ['percent above 100', { interruptionBudget: { percent: 101 } }, 'spec.interruptionBudget.percent'],
  ['a negative count', { interruptionBudget: { count: -1 } }, 'spec.interruptionBudget.count'],
  [
    'a policy and a budget',
    { deploymentPolicy: 'p', interruptionBudget: { count: 1 } },
    'spec.deploymentPolicy: Invalid value: deploymentPolicy and interruptionBudget.percent or .count exclude ' +
      'each other',
  ],
  [
    'maxCount beside count',
    { interruptionBudget: { count: 1, maxCount: 1 } },
    'spec.interruptionBudget.maxCount: Invalid value: maxCount only caps a percent',
  ],
  ['maxCount alone', { interruptionBudget: { maxCount: 1 } }, 'maxCount only caps a percent'],
  [
    'a package name with a digit at its end',
    { packages: { cuda12: tuning } },
    'spec.packages: Invalid value: no package name: ["cuda12"]; use 2 to 43 lower-case letters',
  ],
  ...['cron*', 'cron.service ', '/dev/sda1', '@tty1', 'getty@'].map(
    (name): [string, Record<string, unknown>, string] => [
      `a service ${JSON.stringify(name)}`,
      withPackage({ interrupt: { type: 'service', services: ['kubelet', name] } }),
      'spec.packages.tuning.interrupt.services[1]',
    ],
  ),
  [
    'a service of a changed key with a blank',
    withPackage({ configMap: { a: '' }, configInterrupts: { a: { type: 'service', services: ['my service'] } } }),
    'spec.packages.tuning.configInterrupts.a.services[0]',
  ],
  ['a package name of 44 characters', { packages: { ['p'.repeat(44)]: tuning } }, 'no package name'],
  [
    'a package whose name differs from its key',
    withPackage({ name: 'other' }),
    'spec.packages: Invalid value: packages ["tuning"] carry another name than their key',
  ],
  [
    'a package without a version',
    { packages: { tuning: { image: 'i' } } },
    'spec.packages.tuning.version: Required value',
  ],
  [
    'a version with slashes',
    withPackage({ version: '2024/07/06' }),
    'spec.packages[tuning].version: Invalid value: "2024/07/06": not a version; write 1 to 3 numbers',
  ],
  ['a version of four numbers', withPackage({ version: '1.2.3.4' }), 'spec.packages[tuning].version'],
  ['a version that is a word', withPackage({ version: 'latest' }), 'spec.packages[tuning].version'],
  [
    '+build without digest',
    withPackage({ version: '1.0.0+b1' }),
    'spec.packages[tuning].containerSHA: Invalid value: a version with +build is not a legal image tag',
  ],
  [
    'a digest in the image',
    withPackage({ image: 'i@sha256:00' }),
    'spec.packages[tuning].image: Invalid value: "i@sha256:00": an image takes no digest; put sha256:<64 hex ' +
      'digits> into containerSHA',
  ],
  ['a blank in the image', withPackage({ image: 'my image' }), 'spec.packages[tuning].image'],
  [
    'a short digest',
    withPackage({ containerSHA: 'sha256:12' }),
    'spec.packages[tuning].containerSHA: Invalid value: "sha256:12": not a digest; write sha256: and 64 ' +
      'lower-case hex digits',
  ],
  [
    'an unknown interrupt',
    withPackage({ interrupt: { type: 'restart' } }),
    'spec.packages.tuning.interrupt.type: Unsupported value: "restart"',
  ],
  [
    'an interrupt with an unknown `when`',
    withPackage({ interrupt: { type: 'reboot', when: 'asked' } }),
    'spec.packages.tuning.interrupt.when: Unsupported value: "asked"',
  ],
  [
    'a configInterrupt with an unknown `when`',
    withPackage({ configMap: { x: '' }, configInterrupts: { x: { type: 'reboot', when: 'asked' } } }),
    'spec.packages.tuning.configInterrupts.x.when: Unsupported value: "asked"',
  ],
  [
    'rerunOnRequest without minInterval',
    withPackage({ rerunOnRequest: {} }),
    'spec.packages.tuning.rerunOnRequest.minInterval: Required value',
  ],
  [
    'a minInterval below one minute',
    withPackage({ rerunOnRequest: { minInterval: '59s' } }),
    'spec.packages[tuning].rerunOnRequest.minInterval: Invalid value: "59s": must be at least 1m, such as 24h',
  ],
  [
    'a minInterval in days',
    withPackage({ rerunOnRequest: { minInterval: '1d' } }),
    'spec.packages.tuning.rerunOnRequest.minInterval',
  ],
  [
    'a dependency on a package that it lacks',
    withPackage({ dependsOn: { other: '1' } }),
    'spec.packages: Invalid value: dependsOn of packages ["tuning"] names [["other"]]; it may name only ' +
      'packages of this Skyhook',
  ],
  [
    'a package that depends on itself',
    withPackage({ dependsOn: { tuning: '1.1.0' } }),
    'dependsOn of packages ["tuning"] names the package itself',
  ],
  [
    'a dependency on another version',
    { packages: { tuning: { ...tuning, dependsOn: { other: '1.0' } }, other: tuning } },
    'tuning.dependsOn wants other 1.0, which is at 1.1.0',
  ],
  [
    'configInterrupts for a missing key',
    withPackage({ configMap: { 'a.sh': '' }, configInterrupts: { 'b.sh': { type: 'noop' } } }),
    'spec.packages[tuning].configInterrupts: Invalid value: configMap has no key for ["b.sh"]',
  ],
  [
    'a pattern that matches no key',
    withPackage({ configMap: { 'a.sh': '' }, configInterrupts: { '*.conf': { type: 'noop' } } }),
    'configMap has no key for ["*.conf"]',
  ],
  [
    'a pattern whose dot would have to match any character',
    withPackage({ configMap: { axsh: '' }, configInterrupts: { '*.sh': { type: 'noop' } } }),
    'configMap has no key for ["*.sh"]',
  ],
  [
    'configInterrupts without configMap',
    withPackage({ configInterrupts: { '*': { type: 'noop' } } }),
    'configMap has no key for ["*"]',
  ],
  [
    'a configMap key that leaves its folder',
    withPackage({ configMap: { '../passwd': '' } }),
    'spec.packages[tuning].configMap: Invalid value: no file name: ["../passwd"]',
  ],
  ['129 configMap keys', withPackage({ configMap: manyKeys(129) }), 'spec.packages.tuning.configMap: Too many'],
  ['65 packages', manyPackages(65), 'spec.packages: Too many'],
  ['an image of 513 characters', withPackage({ image: 'i'.repeat(513) }), 'spec.packages.tuning.image: Too long'],
  [
    'an environment variable that systemd cannot set',
    withPackage({ env: [{ name: 'A-B', value: '' }] }),
    'spec.packages[tuning].env[0].name: Invalid value: "A-B": not a variable name that systemd can set',
  ],
  [
    'an environment variable without a source',
    withPackage({ env: [{ name: 'A', valueFrom: {} }] }),
    'spec.packages[tuning].env[0].valueFrom: Invalid value: give exactly one of secretKeyRef',
  ],
  [
    'an environment variable with two sources',
    withPackage({ env: [{ name: 'A', value: 'x', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] }),
    'value and valueFrom exclude each other',
  ],
  [
    'a fieldRef that agents do not know',
    withPackage({ env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] }),
    'env[0].valueFrom.fieldRef.fieldPath: Unsupported value: "metadata.name"',
  ],
  [
    'incomplete resources',
    withPackage({ resources: { cpuRequest: '1', cpuLimit: '1' } }),
    'spec.packages.tuning.resources: give all of cpuRequest, cpuLimit, memoryRequest and memoryLimit, or none ' +
      'of them',
  ],
  [
    'a limit below its request',
    withPackage({ resources: { cpuRequest: '1', cpuLimit: '500m', memoryRequest: '1Gi', memoryLimit: '1Gi' } }),
    'spec.packages.tuning.resources: a limit is below its request',
  ],
  [
    'negative resources',
    withPackage({ resources: { cpuRequest: '-1', cpuLimit: '1', memoryRequest: '1', memoryLimit: '1' } }),
    'spec.packages.tuning.resources: below zero',
  ],
  [
    'resources that are not quantities',
    withPackage({ resources: { cpuRequest: 'much' } }),
    'spec.packages.tuning.resources.cpuRequest',
  ],
  ['a duration without a unit', withPackage({ gracefulShutdown: '30' }), 'spec.packages.tuning.gracefulShutdown'],
  ['a negative duration', withPackage({ stageTimeout: '-5s' }), 'spec.packages.tuning.stageTimeout'],
  [
    'uninstall.apply without uninstall.enabled',
    withPackage({ uninstall: { apply: true } }),
    'spec.packages[tuning].uninstall.enabled: Invalid value: apply: true uninstalls the package, which needs ' +
      'enabled: true',
  ],
  [
    'the operator In without values',
    { nodeSelectors: { matchExpressions: [{ key: 'a', operator: 'In' }] } },
    'spec.nodeSelectors.matchExpressions[0].values: Invalid value: In and NotIn need at least one value',
  ],
  [
    'the operator Exists with values',
    { podNonInterruptLabels: { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['b'] }] } },
    'spec.podNonInterruptLabels.matchExpressions[0].values',
  ],
  [
    'an unknown selector operator',
    { nodeSelectors: { matchExpressions: [{ key: 'a', operator: 'Like', values: ['b'] }] } },
    'matchExpressions[0].operator: Unsupported value: "Like"',
  ],
  [
    'a label key with a blank',
    { nodeSelectors: { matchLabels: { 'a b': 'c' } } },
    'spec.nodeSelectors.matchLabels: Invalid value: no label key: ["a b"]',
  ],
  ['a label value with a blank', { nodeSelectors: { matchLabels: { a: 'b c' } } }, 'spec.nodeSelectors.matchLabels.a'],
  [
    'an empty toleration',
    { additionalTolerations: [{ effect: 'NoSchedule' }] },
    'spec.additionalTolerations[0].operator: Invalid value: a toleration without key needs operator: Exists',
  ],
  ['priority 0', { priority: 0 }, 'spec.priority'],
  ['an unknown value of drain.cordon', { drain: { cordon: 'soon' } }, 'spec.drain.cordon: Unsupported value: "soon"'],
  ['a drain timeout of zero', { drain: { timeoutSeconds: 0 } }, 'spec.drain.timeoutSeconds'],
  ['a pause in the spec, where it would have no effect', { pause: true }, 'unknown field "spec.pause"'],
]
