/** Skyhooks that the API server accepts. The command-line tool is held to the same table. */
import { manyKeys, manyPackages, tuning, withPackage } from './sample-specs.ts'

export const acceptedSkyhooks: readonly [what: string, spec: Record<string, unknown>, name?: string][] = [
  ['with an empty spec', {}],
  [
    'with one package and its scripts',
    withPackage({ configMap: { 'apply.sh': 'echo', 'apply_check.sh': 'test -s /x' } }),
  ],
  [
    'with services as administrators name them',
    withPackage({
      interrupt: {
        type: 'service',
        services: [
          'kubelet',
          'cron.service',
          'getty@tty1.service',
          'systemd-sysctl',
          'foo\\x2dbar.mount',
          '-.mount',
          'a:b_c',
        ],
      },
    }),
  ],
  [
    'with calendar versions, dependencies, interrupts, tolerations and a percent',
    {
      additionalTolerations: [{ key: 'nvidia.com/gpu', operator: 'Exists' }],
      nodeSelectors: { matchLabels: { agentpool: 'gpu' } },
      podNonInterruptLabels: { matchLabels: { workload: 'never-interrupt' } },
      interruptionBudget: { percent: 33 },
      packages: {
        nvssh: {
          version: '2024.05.10',
          image: 'registry.example.com/base/nvssh:2024.05.10',
          dependsOn: { bcp: '2024.05.13' },
          configInterrupts: { 'nvssh_vars.sh': { type: 'service', services: ['cron'] } },
          configMap: { 'nvssh_vars.sh': 'allowed_roles=admins' },
        },
        bcp: {
          version: '2024.05.13',
          image: 'registry.example.com/base/bcp:2024.05.13',
          env: [{ name: 'CSP', value: 'azure' }],
          interrupt: { type: 'service', services: ['cron'] },
        },
      },
    },
  ],
  [
    'with runtimeRequired and a reboot',
    {
      runtimeRequired: true,
      priority: 10,
      interruptionBudget: { count: 2 },
      packages: { sysctl: { ...tuning, interrupt: { type: 'reboot' } } },
    },
  ],
  [
    'in the form that the original operator stores: name, empty groups, zeros for resources',
    {
      podNonInterruptLabels: {},
      nodeSelectors: {},
      interruptionBudget: { percent: null, count: null },
      deploymentPolicyOptions: {},
      deploymentPolicy: 'slow',
      packages: {
        tuning: {
          ...tuning,
          name: 'tuning',
          resources: { cpuRequest: '0', cpuLimit: '0', memoryRequest: '0', memoryLimit: 0 },
          gracefulShutdown: '1m0s',
        },
      },
    },
  ],
  [
    'with every field of skyhookd',
    {
      drain: {
        cordon: 'late',
        yieldAfterSeconds: 0,
        timeoutSeconds: 60,
        onTimeout: 'delete',
        singleNode: 'skip',
        tolerating: 'wait',
      },
      pace: { minReadySeconds: 5, pauseSeconds: 60 },
      bootstrap: { count: 0 },
      interruptionBudget: { percent: 10, maxCount: 5 },
      packages: {
        tuning: {
          ...tuning,
          stageTimeout: '1h',
          gracefulShutdown: '1.5s',
          uninstall: { enabled: true, apply: true },
          interrupt: { type: 'reboot', when: 'required' },
          configMap: { reboot: '1' },
          configInterrupts: { reboot: { type: 'reboot', when: 'always' } },
          rerunOnRequest: { minInterval: '24h' },
        },
      },
    },
  ],
  [
    'with all kinds of references in env',
    withPackage({
      resources: { cpuRequest: 1, cpuLimit: 1, memoryRequest: '1Gi', memoryLimit: '1Gi' },
      env: [
        { name: 'SECRET', valueFrom: { secretKeyRef: { name: 's', key: 'k', optional: true } } },
        { name: 'FILE', valueFrom: { configMapKeyRef: { name: 'c', key: 'k' } } },
        { name: 'NODE', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'spec.nodeName' } } },
        { name: 'MEMORY', valueFrom: { resourceFieldRef: { resource: 'limits.memory', divisor: '1Mi' } } },
      ],
    }),
  ],
  [
    'with quantities as numbers and as strings',
    withPackage({ resources: { cpuRequest: '500m', cpuLimit: 1, memoryRequest: '64Mi', memoryLimit: '0.5Gi' } }),
  ],
  [
    'with a dependency by range',
    { packages: { tuning: { ...tuning, dependsOn: { other: '>=1.2 <2' } }, other: { ...tuning, version: 'v1.4' } } },
  ],
  [
    'with a pattern of configInterrupts that matches a key',
    withPackage({ configMap: { 'a.sh': '' }, configInterrupts: { '*.sh': { type: 'noop' } } }),
  ],
  [
    'with 64 packages of 128 files and 64 interrupts each, some by pattern',
    manyPackages(64, {
      configMap: manyKeys(128),
      configInterrupts: Object.fromEntries(
        [...Object.keys(manyKeys(60)), 'key-*', '*-1', 'k?y-1*', '*'].map((key) => [key, { type: 'noop' }]),
      ),
      dependsOn: {},
    }),
  ],
  ...['1', '1.2', 'v1.2.3', '2024.05.10', '2024.05.10-test', '1.2-rc.1', '0.0.0'].map(
    (version): [string, Record<string, unknown>] => [`with version ${version}`, withPackage({ version })],
  ),
  ['with a name of 53 characters', {}, 'n'.repeat(53)],
]
