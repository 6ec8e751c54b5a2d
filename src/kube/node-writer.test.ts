import { beforeEach, describe, expect, test } from 'vitest'
import { merge, nodesPath, type Sample, sampleServer } from '../../test/kit/api-server/sample-server.ts'
import { recordClient, type SentRequest } from '../../test/kit/api-server/sent-requests.ts'
import type { KubeObject } from './objects.ts'
import { patchNode } from './node-writer.ts'
import type { KubeTransport } from './transport.ts'

const readyCondition = {
  type: 'Ready',
  status: 'True',
  reason: 'KubeletReady',
  message: '',
  lastTransitionTime: '2026-01-01T00:00:00Z',
} as const
const ownCondition = { ...readyCondition, type: 'skyhook.nvidia.com/demo/NotReady', reason: 'Incomplete' } as const

let sample: Sample
let transport: KubeTransport
let sent: SentRequest[]
let node: KubeObject

beforeEach(async () => {
  sample = sampleServer()
  const client = recordClient(sample.connect())
  transport = client.transport
  sent = client.sent
  await sample.admin.json('POST', nodesPath, {
    body: {
      metadata: { name: 'n', annotations: { theirs: '1', old: '1' }, labels: {} },
      spec: { podCIDR: 'x', taints: [{ key: 'theirs', effect: 'NoSchedule' }] },
    },
  })
  const status = { conditions: [readyCondition] }
  node = await sample.admin.json('PATCH', `${nodesPath}/n/status`, { body: { status }, contentType: merge })
})

const version = (): string => node.metadata.resourceVersion
const currentNode = (): KubeObject => sample.server.object('nodes', undefined, 'n') as KubeObject
const patches = (): string[] => sent.map(({ method, path }) => `${method} ${path}`)

describe('requests', () => {
  test('one PATCH of the status carries annotations, labels and conditions', async () => {
    const written = await patchNode(transport, 'n', {
      resourceVersion: version(),
      annotations: { ownCondition: '1', old: null },
      labels: { l: 'v' },
      conditions: [ownCondition],
    })
    expect(written).toEqual({ outcome: 'written', metadata: currentNode().metadata })
    expect(currentNode()).toMatchObject({
      metadata: { annotations: { theirs: '1', ownCondition: '1' }, labels: { l: 'v' } },
      status: { conditions: [ownCondition, readyCondition] },
    })
    expect(currentNode().metadata['annotations']).not.toHaveProperty('old')
    expect(patches()).toEqual([`PATCH ${nodesPath}/n/status`])
  })

  test('one PATCH of the Node carries a cordon and its marks', async () => {
    await patchNode(transport, 'n', { resourceVersion: version(), annotations: { mark: 'true' }, unschedulable: true })
    expect(currentNode()).toMatchObject({
      metadata: { annotations: { mark: 'true' } },
      spec: { podCIDR: 'x', unschedulable: true },
    })
    expect(patches()).toEqual([`PATCH ${nodesPath}/n`])
  })

  test('a PATCH of the Node carries metadata alone, and asks for metadata only', async () => {
    await patchNode(transport, 'n', { resourceVersion: version(), labels: { l: 'v' } })
    expect(patches()).toEqual([`PATCH ${nodesPath}/n`])
    expect(sent[0]?.accept).toContain('as=PartialObjectMetadata')
  })
})

test('a PATCH of the Node carries its spec with the taints', async () => {
  const taints = [{ key: 'left', effect: 'NoSchedule' }] as const
  await patchNode(transport, 'n', {
    resourceVersion: version(),
    annotations: { ownCondition: '1' },
    unschedulable: false,
    taints,
  })
  expect(patches()).toEqual([`PATCH ${nodesPath}/n`])
  expect(currentNode()).toMatchObject({
    metadata: { annotations: { ownCondition: '1' } },
    spec: { taints },
  })
  expect(sent[0]?.body).toMatchObject({ spec: { unschedulable: false } })
})

test('a patch with both spec and conditions is refused before anything is written', async () => {
  const both = { resourceVersion: version(), unschedulable: true, conditions: [ownCondition] }
  await expect(patchNode(transport, 'n', both)).rejects.toThrow('cannot be in one patch')
  expect(patches()).toEqual([])
})

test('a condition is removed by its type, and others stay', async () => {
  const first = await patchNode(transport, 'n', { resourceVersion: version(), conditions: [ownCondition] })
  if (first.outcome !== 'written') expect.unreachable()
  await patchNode(transport, 'n', {
    resourceVersion: first.metadata.resourceVersion,
    removedConditions: [ownCondition.type],
  })
  expect(currentNode()).toMatchObject({ status: { conditions: [readyCondition] } })
})

describe('stale versions', () => {
  test('a patch computed from an older version is a conflict and changes nothing', async () => {
    const body = { metadata: { annotations: { theirs: '2', old: null } } }
    await sample.admin.json('PATCH', `${nodesPath}/n`, { body, contentType: merge })
    const patch = { resourceVersion: version(), annotations: { ownCondition: '1' } }
    expect(await patchNode(transport, 'n', patch)).toMatchObject({ outcome: 'conflict' })
    expect(currentNode().metadata['annotations']).toEqual({ theirs: '2' })
  })

  test('a patch of a deleted Node reports that it is gone', async () => {
    await sample.admin.json('DELETE', `${nodesPath}/n`)
    expect(await patchNode(transport, 'n', { resourceVersion: version(), unschedulable: true })).toMatchObject({
      outcome: 'gone',
    })
  })
})

test('a patch throws any other refusal', async () => {
  sample.server.faults.rules = [{ name: 'refused', fault: { kind: 'refuse', code: 403, reason: 'Forbidden' } }]
  await expect(patchNode(transport, 'n', { resourceVersion: version(), unschedulable: true })).rejects.toMatchObject({
    status: 403,
  })
})
