import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { startFakeApiServer, type FakeApiServer, type FakeObject } from '../../test/support/fake-api-server.ts'
import { staticCredentials } from './credentials.ts'
import { patchNode } from './node-writer.ts'
import { createTransport, type Transport } from './transport.ts'

const NODES = '/api/v1/nodes'
const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' } as const
const ours = { ...ready, type: 'skyhook.nvidia.com/demo/NotReady', reason: 'Incomplete' } as const

let server: FakeApiServer
let transport: Transport
let node: FakeObject

beforeEach(async () => {
  server = await startFakeApiServer()
  node = server.put(NODES, {
    metadata: { name: 'n', annotations: { theirs: '1', old: '1' }, labels: {} },
    spec: { podCIDR: 'x', taints: [{ key: 'theirs', effect: 'NoSchedule' }] },
    status: { conditions: [ready] },
  })
  transport = createTransport({ credentials: staticCredentials({ server: server.url }), version: 'test' })
})

afterEach(async () => {
  transport.close()
  await server.stop()
})

const version = (): string => node.metadata.resourceVersion
const now = (): FakeObject => server.get(NODES, 'n') as FakeObject
const patches = (): string[] => server.requests.map(({ method, path }) => `${method} ${path}`)

describe('one PATCH where one is enough', () => {
  test('annotations, labels and conditions go to the status', async () => {
    const written = await patchNode(transport, 'n', {
      resourceVersion: version(),
      annotations: { ours: '1', old: null },
      labels: { l: 'v' },
      conditions: [ours],
    })
    expect(written).toEqual({ outcome: 'written', resourceVersion: now().metadata.resourceVersion, uid: node.metadata.uid })
    expect(now()).toMatchObject({
      metadata: { annotations: { theirs: '1', ours: '1' }, labels: { l: 'v' } },
      status: { conditions: [ready, ours] },
    })
    expect(now().metadata['annotations']).not.toHaveProperty('old')
    expect(patches()).toEqual([`PATCH ${NODES}/n/status`])
  })

  test('a cordon with its marks goes to the node', async () => {
    await patchNode(transport, 'n', { resourceVersion: version(), annotations: { mark: 'true' }, unschedulable: true })
    expect(now()).toMatchObject({ metadata: { annotations: { mark: 'true' } }, spec: { podCIDR: 'x', unschedulable: true } })
    expect(patches()).toEqual([`PATCH ${NODES}/n`])
  })

  test('metadata alone goes to the node; the answer is asked for as metadata only', async () => {
    await patchNode(transport, 'n', { resourceVersion: version(), labels: { l: 'v' } })
    expect(patches()).toEqual([`PATCH ${NODES}/n`])
    expect(server.requests[0]?.headers.accept).toContain('as=PartialObjectMetadata')
  })
})

test('a spec with its taints goes to the node', async () => {
  const taints = [{ key: 'left', effect: 'NoSchedule' }] as const
  await patchNode(transport, 'n', { resourceVersion: version(), annotations: { ours: '1' }, unschedulable: false, taints })
  expect(patches()).toEqual([`PATCH ${NODES}/n`])
  expect(now()).toMatchObject({ metadata: { annotations: { ours: '1' } }, spec: { taints, unschedulable: false } })
})

test('spec and conditions together are refused before anything is written', async () => {
  const both = { resourceVersion: version(), unschedulable: true, conditions: [ours] }
  await expect(patchNode(transport, 'n', both)).rejects.toThrow('which no request can carry')
  expect(patches()).toEqual([])
})

test('a condition is removed by type, others stay', async () => {
  const first = await patchNode(transport, 'n', { resourceVersion: version(), conditions: [ours] })
  if (first.outcome !== 'written') expect.unreachable()
  await patchNode(transport, 'n', { resourceVersion: first.resourceVersion, conditions: [{ type: ours.type, remove: true }] })
  expect(now()).toMatchObject({ status: { conditions: [ready] } })
})

describe('a write in between', () => {
  test('is a conflict and changes nothing', async () => {
    server.put(NODES, { ...node, metadata: { ...node.metadata, annotations: { theirs: '2' } } })
    expect(await patchNode(transport, 'n', { resourceVersion: version(), annotations: { ours: '1' } })).toEqual({ outcome: 'conflict' })
    expect(now().metadata['annotations']).toEqual({ theirs: '2' })
  })

  test('that deleted the node is no error', async () => {
    server.remove(NODES, 'n')
    expect(await patchNode(transport, 'n', { resourceVersion: version(), unschedulable: true })).toEqual({ outcome: 'gone' })
  })
})

test('any other refusal is thrown', async () => {
  server.fault(() => true, { kind: 'status', status: 403, reason: 'Forbidden' })
  await expect(patchNode(transport, 'n', { resourceVersion: version(), unschedulable: true })).rejects.toMatchObject({ status: 403 })
})
