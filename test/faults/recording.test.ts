/** Hand-made records of one case: a node that takes its slot, applies a package and gives the slot back. */
import { expect, test } from 'vitest'
import { skyhookScope } from '../../src/lease/names.ts'
import { newLease } from '../../src/lease/slot.ts'
import { statusKey } from '../../src/schemas/annotations.ts'
import { skyhookTypeMeta } from '../../src/schemas/api.ts'
import { emptyView, moments, type Version } from '../kit/cluster/moments.ts'
import type { AuditedRequest } from '../kit/recorded/audit.ts'
import type { Evidence } from '../kit/recorded/evidence.ts'
import { judgeRecord } from '../kit/recorded/judge.ts'
import { parseSteps } from '../kit/recorded/step-lines.ts'
import { everywhere } from '../promises/all.ts'
import { faultNames, type FaultName } from './fault-names.ts'
import { faultsOf } from './recorded-faults.ts'

const node = 'node-1'
const skyhook = { name: 'service-1', uid: 'skyhook-uid' }
const startMs = 1_800_000_000_000
const at = (seconds: number): number => startMs + seconds * 1_000

/** `apply@2-3`: it begins after 2 s and has succeeded after 3; `apply@2`: it does not end. */
function stepsOf(...steps: readonly string[]): string {
  return steps
    .flatMap((step) => {
      const [mode = '', times = ''] = step.split('@')
      return times.split('-').map((seconds, index) => {
        const fields = [at(Number(seconds)) / 1_000, skyhook.name, 'a', '1.0.0', mode, 0]
        return `${fields.join(' ')} ${index === 0 ? 'begins' : 'ends'}`
      })
    })
    .join('\n')
}

const rest = ['apply-check@13-14', 'config@14-15', 'config-check@15-16']

type Change = readonly [
  kind: string,
  type: string,
  seconds: number,
  object: { metadata: object; [key: string]: unknown },
]

type Case = { readonly steps: string; readonly faults?: Evidence['faults']; readonly releasedAt?: number }

function recordOf({ steps, faults = [], releasedAt = 20 }: Case): Evidence {
  const nodeObject = {
    metadata: { name: node, uid: 'node-uid', labels: { pool: 'x' }, annotations: {} },
    status: { nodeInfo: { bootID: 'one' }, conditions: [{ type: 'Ready', status: 'True' }] },
  }
  const spec = {
    nodeSelectors: { matchLabels: { pool: 'x' } },
    packages: { a: { version: '1.0.0', image: 'registry.test/a' } },
    interruptionBudget: { count: 1 },
  }
  const complete = { [statusKey(skyhook.name)]: 'complete' }
  const identity = { name: node, uid: 'node-uid', bootId: 'one' }
  const progress = { phase: 'working', generation: 1, packages: [] } as const
  const slot = newLease(skyhookScope(skyhook), { index: 0 }, identity, progress, at(1))
  const lease = { ...slot, metadata: { ...slot.metadata, uid: 'lease-uid' } }
  const changes: readonly Change[] = [
    // nobody may know of a new Node for two minutes
    ['nodes', 'ADDED', -130, nodeObject],
    ['skyhooks', 'ADDED', 0, { ...skyhookTypeMeta, metadata: { ...skyhook, generation: 1 }, spec }],
    ['leases', 'ADDED', 1, lease],
    ['nodes', 'MODIFIED', 17, { ...nodeObject, metadata: { ...nodeObject.metadata, annotations: complete } }],
    ['leases', 'DELETED', releasedAt, lease],
  ]
  const inOrder = changes.toSorted(([, , one], [, , other]) => one - other)
  const versions = inOrder.map(([kind, type, seconds, object], index) => ({
    kind,
    type,
    object: { ...object, metadata: { ...object.metadata, resourceVersion: String(index + 1) } },
    resourceVersion: index + 1,
    atMs: at(seconds),
  })) as unknown as Version[]
  const request = (verb: string, resource: string, name: string, seconds: number): AuditedRequest => ({
    node,
    verb,
    resource,
    name,
    subresource: undefined,
    namespace: undefined,
    uri: '/',
    status: 200,
    receivedMs: at(seconds) - 10,
    answeredMs: at(seconds),
  })
  return {
    moments: [...moments(emptyView(), versions)],
    audit: [
      request('create', 'leases', lease.metadata.name, 1),
      request('get', 'skyhooks', skyhook.name, 1.5),
      request('list', 'leases', '', 1.6),
      request('delete', 'leases', lease.metadata.name, releasedAt),
    ],
    steps: new Map([[node, parseSteps(steps)]]),
    faults,
    deletions: [],
    ownVersions: new Set(),
    skyhooks: [skyhook.name],
    endedMs: at(30),
  }
}

const brokenIn = (one: Case): readonly string[] =>
  judgeRecord(recordOf(one), everywhere).flatMap(({ name, violations }) =>
    violations.map(({ atMs, text }) => `${name} after ${(atMs - startMs) / 1_000} s: ${text}`),
  )

const times = { hitMs: at(2.5), overMs: at(8), endedMs: at(20) }

test('the record of a case without a fault breaks no promise', () => {
  expect(brokenIn({ steps: stepsOf('apply@2-3', ...rest) })).toEqual([])
})

test.each(faultNames)('%s: a step that did not end may run again', (fault) => {
  const steps = stepsOf('apply@2', 'apply@12-13', ...rest)
  expect(brokenIn({ steps, faults: faultsOf(fault, node, times) })).toEqual([])
})

const losing: readonly FaultName[] = ['host rebooted', 'power cut', 'disk full']

test.each(faultNames)('%s: a step that succeeded runs again only if nobody could write that down', (fault) => {
  const steps = stepsOf('apply@2-3', 'apply@12-13', ...rest)
  const again = 'complete-once after 13 s: a 1.0.0 apply edit 0 of service-1 succeeds a second time on node-1'
  expect(brokenIn({ steps, faults: faultsOf(fault, node, times) })).toEqual(
    losing.includes(fault) ? [] : [expect.stringContaining(again)],
  )
})

test('a slot that goes in the middle of a change is found, however the node ends', () => {
  expect(brokenIn({ steps: stepsOf('apply@2-3', ...rest), releasedAt: 5 })).toEqual([
    expect.stringMatching(/^slots-kept after 5 s: node-1 gives back .* while it is half changed: service-1\/a/),
  ])
})
