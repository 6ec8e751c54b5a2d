/** Which Skyhooks a real API server accepts, and how it treats their status. */
import { describe, expect, test } from 'vitest'
import { acceptedSkyhooks } from '../kit/objects/accepted-skyhooks.ts'
import type { Json } from './chart-cluster.ts'
import { useDefinitions } from './definitions.ts'
import { withPackage } from '../kit/objects/sample-specs.ts'

const skyhooks = '/apis/skyhook.nvidia.com/v1alpha1/skyhooks'

const definitions = useDefinitions()

describe('an accepted Skyhook', () => {
  test.each(acceptedSkyhooks)('the API server accepts a Skyhook %s', async (_, spec) => {
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
  test('a Skyhook that no census has counted yet shows a generation that nobody has observed', async () => {
    const typeMeta = { apiVersion: 'skyhook.nvidia.com/v1alpha1', kind: 'Skyhook' }
    const object = { ...typeMeta, metadata: { name: 'fresh' }, spec: withPackage({}), status: { status: 'complete' } }
    expect(await definitions.cluster.admin('POST', skyhooks, object)).toMatchObject({ status: 201 })
    const { body } = await definitions.cluster.admin('GET', `${skyhooks}/fresh`)
    const defaults = { completeNodes: '0/0', nodesInProgress: 0, packageList: '' }
    expect(body).toMatchObject({ metadata: { generation: 1 } })
    expect(body['status']).toEqual({ observedGeneration: -1, ...defaults })
  })

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
    await definitions.cluster.server.kubectl('wait', '--for=condition=Ready', 'skyhook/shown', '--timeout=30s')

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
