/** Which Skyhooks and DeploymentPolicies a real API server accepts, its answers to the others, and their status. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/schemas/json.ts'
import { resourceFindings } from '../../src/cli/validate/resource.ts'
import { runsOf, seedOf } from '../kit/effort.ts'
import { acceptedSkyhooks } from '../kit/objects/accepted-skyhooks.ts'
import { mutatedObjects } from '../kit/objects/mutated-objects.ts'
import { acceptedMetadata, refusedMetadata, refusedObjects } from '../kit/objects/refused-objects.ts'
import { group, pace, withPackage } from '../kit/objects/sample-specs.ts'
import { until, type Answer, type ChartCluster, type Json } from './chart-cluster.ts'
import { borrowChartCluster } from './shared-cluster.ts'

const apiVersion = 'skyhook.nvidia.com/v1alpha1'
const skyhooks = `/apis/${apiVersion}/skyhooks`
const policies = `/apis/${apiVersion}/deploymentpolicies`
let cluster: ChartCluster

beforeAll(async () => {
  cluster = await borrowChartCluster()
  // A refusal by the admission policy shows that it is in effect.
  const incomplete = withPackage({ resources: { cpuRequest: '1' } })
  await until(
    () => create('Skyhook', incomplete),
    ({ message }) => message.includes('skyhookd-skyhook-resources'),
  )
})
afterAll(async () => await cluster?.stop())

/** Creates an object as a dry run. Strict like kubectl: an unknown field is an error. */
const create = async (kind: 'Skyhook' | 'DeploymentPolicy', spec: Json, name = 'candidate'): Promise<Answer> =>
  await createObject({ apiVersion, kind, metadata: { name }, spec })

const createObject = async (object: Json): Promise<Answer> =>
  await cluster.admin('POST', `${object['kind'] === 'Skyhook' ? skyhooks : policies}?${dryRun}`, object)
const dryRun = 'dryRun=All&fieldValidation=Strict'

/** What else `validate` finds, agents refuse. */
const isOfServer = /^(?:schema\/.*|cel|metadata|kind|resources|size)$/

/** Without the value that newer API servers quote and older ones name the type of, and with dots in all paths. */
const plain = (message: string): string =>
  message
    .replaceAll(/Invalid value: (?:"(?:[^"\\]|\\.)*": )?/g, '')
    .replaceAll('map[string]interface {}', '')
    .replaceAll(/\[([a-z]+)\]/g, '.$1')

describe('an object', () => {
  test.each<[string, Json, string?]>(acceptedSkyhooks)('the API server accepts a Skyhook %s', async (_, spec, name) => {
    expect(await create('Skyhook', spec, name)).toMatchObject({ status: 201, message: '' })
  })

  test.each(refusedObjects)('the API server refuses a $kind with $what', async ({ kind, name, spec, place, text }) => {
    const { status, message } = await create(kind, spec, name)
    expect(plain(message)).toContain([place, text].filter(Boolean).join(': '))
    expect(status).toBeOneOf([400, 422])
  })

  test.each(acceptedMetadata)('the API server accepts metadata with %s', async (_, metadata) => {
    const object = { apiVersion, kind: 'Skyhook', metadata: { name: 'candidate', ...metadata }, spec: {} }
    expect(await createObject(object)).toMatchObject({ status: 201, message: '' })
  })

  test.each(refusedMetadata)('the API server refuses metadata with %s', async (_, metadata, place) => {
    const object = { apiVersion, kind: 'Skyhook', metadata: { name: 'candidate', ...metadata }, spec: {} }
    const { status, message } = await createObject(object)
    const said = place === 'creationTimestamp' ? 'parsing time' : place // it names no field of a time
    expect([status, message]).toEqual([expect.toBeOneOf([400, 422]), expect.stringContaining(said)])
  })

  test('the API server refuses the same changed objects as validate', async () => {
    const disagreements: string[] = []
    for (const object of mutatedObjects(seedOf(1), runsOf(200))) {
      const errors = resourceFindings(object as JsonObject).filter(({ rule }) => isOfServer.test(rule))
      const { status, message } = await createObject(object)
      if (errors.some(({ severity }) => severity === 'error') === (status === 201))
        disagreements.push(JSON.stringify({ status, message, errors, object }).slice(0, 2_000))
    }
    expect(disagreements).toEqual([])
  })

  test('a DeploymentPolicy gets the defaults of the original operator', async () => {
    const { body } = await create('DeploymentPolicy', {
      default: { ...pace, strategy: { linear: {} } },
      compartments: [group('a', { strategy: { exponential: { initialBatch: 2 } } })],
    })
    expect(body['spec']).toEqual({
      resetBatchStateOnCompletion: false,
      default: {
        budget: { count: 1 },
        strategy: { linear: { initialBatch: 1, batchThreshold: 100, safetyLimit: 50, delta: 1 } },
      },
      compartments: [
        group('a', {
          strategy: { exponential: { initialBatch: 2, batchThreshold: 100, safetyLimit: 50, growthFactor: 2 } },
        }),
      ],
    })
  })
})

describe('the status', () => {
  test('a Skyhook that no census has counted yet shows a generation that nobody has observed', async () => {
    const metadata = { name: 'fresh' }
    const object = { apiVersion, kind: 'Skyhook', metadata, spec: withPackage({}), status: { status: 'complete' } }
    expect(await cluster.admin('POST', skyhooks, object)).toMatchObject({ status: 201 })
    const { body } = await cluster.admin('GET', `${skyhooks}/fresh`)
    const defaults = { completeNodes: '0/0', nodesInProgress: 0, packageList: '' }
    expect(body).toMatchObject({ metadata: { generation: 1 } })
    expect(body['status']).toEqual({ observedGeneration: -1, ...defaults })
  })

  test('the status is a subresource, appears in columns, and costs one managed field per map of nodes', async () => {
    const object = { apiVersion, kind: 'Skyhook', metadata: { name: 'shown' }, spec: withPackage({}) }
    expect(await cluster.admin('POST', skyhooks, object)).toMatchObject({ status: 201 })
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
    expect(await cluster.admin('PATCH', path, { status }, 'application/merge-patch+json')).toMatchObject({
      status: 200,
      body: { status },
    })

    const [header, row] = (await cluster.server.kubectl('get', 'skyhook', 'shown')).split('\n')
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
    await cluster.server.kubectl('wait', '--for=condition=Ready', 'skyhook/shown', '--timeout=30s')

    const { body } = await cluster.admin('GET', `${skyhooks}/shown`)
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
