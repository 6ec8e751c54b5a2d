/** Which Skyhooks a real API server accepts, and how it treats their status. */
import { describe, expect, test } from 'vitest'
import { manyKeys, manyPackages, tuning, useDefinitions, withPackage } from './definitions.ts'
import type { Json } from './chart-cluster.ts'

const skyhooks = '/apis/skyhook.nvidia.com/v1alpha1/skyhooks'

const definitions = useDefinitions()

describe('an accepted Skyhook', () => {
  test.each<[string, Json]>([
    ['with an empty spec', {}],
    [
      'with one package and its scripts',
      withPackage({ configMap: { 'apply.sh': 'echo', 'apply_check.sh': 'test -s /x' } }),
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
        drain: { cordon: 'late', yieldAfterSeconds: 0, timeoutSeconds: 60, onTimeout: 'delete', singleNode: 'skip' },
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
  ])('the API server accepts a Skyhook %s', async (_, spec) => {
    expect(await definitions.create('skyhooks', spec)).toMatchObject({ status: 201, message: '' })
  })

  test.each(['1', '1.2', 'v1.2.3', '2024.05.10', '2024.05.10-test', '1.2-rc.1', '0.0.0'])(
    'the API server accepts version %s',
    async (version) => {
      expect(await definitions.create('skyhooks', withPackage({ version }))).toMatchObject({ status: 201 })
    },
  )

  test('the API server accepts a name of 53 characters', async () => {
    expect(await definitions.create('skyhooks', {}, 'n'.repeat(53))).toMatchObject({ status: 201 })
  })
})

describe('the status', () => {
  test('the status is a subresource, appears in columns, and costs one managed field per map of nodes', async () => {
    const object = {
      apiVersion: 'skyhook.nvidia.com/v1alpha1',
      kind: 'Skyhook',
      metadata: { name: 'shown' },
      spec: withPackage({}),
    }
    expect(await definitions.cluster.admin('POST', skyhooks, object)).toMatchObject({ status: 201 })
    const entry = { name: 'tuning', version: '1.1.0', image: 'i', stage: 'config', state: 'complete' }
    const status = {
      status: 'complete',
      observedGeneration: 1,
      nodesInProgress: 0,
      completeNodes: '2/2',
      packageList: 'tuning:1.1.0',
      nodeState: { 'node-1': { 'tuning|1.1.0': entry }, 'node-2': { 'tuning|1.1.0': entry } },
      nodeStatus: { 'node-1': 'complete', 'node-2': 'complete' },
      configUpdates: { tuning: ['a.sh'] },
      compartmentStatuses: {
        __default__: { matched: 2, ceiling: 1, batchState: { currentBatch: 2, completedNodes: 2 } },
      },
      nodesSelected: 2,
      nodesUpdated: 2,
      nodesReady: 2,
      nodesUnavailable: 0,
      nodesPending: 0,
      nodeStateTruncated: false,
      conditions: ['Ready', 'skyhook.nvidia.com/Transition'].map((type) => ({
        type,
        status: 'True',
        observedGeneration: 1,
        lastTransitionTime: '2026-01-01T00:00:00Z',
        reason: 'complete',
        message: 'm',
      })),
    }
    const path = `${skyhooks}/shown/status?fieldValidation=Strict`
    expect(await definitions.cluster.admin('PATCH', path, { status }, 'application/merge-patch+json')).toMatchObject({
      status: 200,
      body: { status },
    })

    const [header, row] = (await definitions.cluster.server.kubectl('get', 'skyhook', 'shown')).split('\n')
    expect(header?.split(/ {2,}/)).toEqual([
      'NAME',
      'STATUS',
      'PRIORITY',
      'AGE',
      'NODES IN-PROGRESS',
      'COMPLETE NODES',
      'PACKAGES',
      'POLICY',
      'READY',
    ])
    expect(row).toMatch(/^shown +complete +200 +\d+s +0 +2\/2 +tuning:1\.1\.0 +True$/)
    await definitions.cluster.server.kubectl('wait', '--for=condition=Ready', 'skyhook/shown', '--timeout=1s')

    const { body } = await definitions.cluster.admin('GET', `${skyhooks}/shown`)
    const { managedFields } = body['metadata'] as {
      managedFields: { subresource?: string; fieldsV1: { 'f:status': Json } }[]
    }
    const owned = managedFields.find(({ subresource }) => subresource === 'status')?.fieldsV1['f:status']
    expect(owned).toMatchObject({
      'f:nodeState': {},
      'f:nodeStatus': {},
      'f:configUpdates': {},
      'f:compartmentStatuses': {},
    })
    expect(JSON.stringify(owned)).not.toContain('node-1')
  })
})
