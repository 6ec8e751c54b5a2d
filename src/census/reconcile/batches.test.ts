/** Whole turns of the census for a Skyhook with a policy, against an API server that keeps versions. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { allAgents, nodeReporting, spec } from '../../../test/kit/objects/census-objects.ts'
import { leasesPath, type Sample, sampleServer } from '../../../test/kit/api-server/sample-server.ts'
import { seriesLine, seriesText } from '../../../test/kit/objects/series-text.ts'
import { createSeededRandom } from '../../../test/kit/virtual-clock.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { type Ledger, ledgerAnnotation, readLedger } from '../../lease/ledger.ts'
import { ledgerName, skyhookScope } from '../../lease/names.ts'
import { type Lease, newLease } from '../../lease/slot.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import type { FleetSeries } from '../../schemas/catalogue/fleet-metrics.ts'
import type { BatchState, PolicyKnowledge } from '../../schemas/deployment-policy.ts'
import type { Skyhook, SlotPhase } from '../../schemas/skyhook.ts'
import type { CensusNode } from '../model/node-facts.ts'
import type { SkyhookStatus } from '../model/skyhook-status.ts'
import { createSkyhookReconciler, type SkyhookReconciler } from './skyhook-reconciler.ts'

const found: PolicyKnowledge = {
  state: 'found',
  uid: 'policy-uid',
  generation: 1,
  spec: { default: { budget: { count: 2 }, strategy: { linear: { failureThreshold: 1 } } } },
}

let api: Sample
let transport: KubeTransport
let stopping: AbortController
let skyhook: Skyhook
let nodes: Map<string, CensusNode>
let policy: PolicyKnowledge
let events: string[]
let series: FleetSeries

beforeEach(() => {
  api = sampleServer()
  transport = api.connect()
  stopping = new AbortController()
  events = []
  policy = found
  api.put(skyhooksPath, {
    metadata: { name: 'demo', annotations: { 'skyhook.nvidia.com/version': 'v0.15.0' } },
    spec: { ...spec, deploymentPolicy: 'careful' },
  })
  skyhook = skyhookNow()
  nodes = new Map()
  for (const name of ['n1', 'n2', 'n3']) report(name, 'waiting')
})
afterEach(() => stopping.abort())

const report = (name: string, status: string, reason?: string): void =>
  void nodes.set(
    name,
    nodeReporting(name, { status, of: skyhook.spec, ...(reason !== undefined && { reason: [reason, 'x'] as const }) }),
  )
const ledgerLease = (): Lease | undefined =>
  api.get(leasesPath, ledgerName({ name: 'demo', uid: skyhook.metadata.uid })) as Lease | undefined
function ledgerNow(): Ledger | undefined {
  const lease = ledgerLease()
  const read = lease && readLedger(lease)
  return read?.outcome === 'read' ? read.ledger : undefined
}
const batchNow = (): BatchState | undefined => ledgerNow()?.compartments['__default__']?.batch

const skyhookNow = (): Skyhook => api.get(skyhooksPath, 'demo') as unknown as Skyhook

/** One census; several of them see the same. */
const start = (): SkyhookReconciler =>
  createSkyhookReconciler({
    defaultBudget: {},
    leases: { transport, namespace: 'default', clock: api.clock },
    random: createSeededRandom(1),
    observe: () => ({
      nodes,
      agents: allAgents(),
      skyhook: skyhookNow(),
      ledger: ledgerLease(),
      policy,
    }),
    relist: () => undefined,
    report: (_, { reason }) => void events.push(reason),
    onCounted: (_, counted) => (series = counted),
    onFailed: (error) => events.push(String(error)),
    signal: stopping.signal,
  })

const showAll = (census: SkyhookReconciler): void => {
  for (const what of ['skyhook', 'ledger'] as const) census.observed(what)
}

/** Turns over so many virtual seconds, with a watch that shows everything at once. */
async function turn(census: SkyhookReconciler, seconds: number): Promise<void> {
  for (let tenth = 0; tenth < seconds * 10; tenth++) {
    await census.reconcile()
    showAll(census)
    await api.clock.advance(100)
  }
}

function putSlot(index: number, phase: SlotPhase, epoch: number): string {
  const identity = { name: 'demo', uid: skyhook.metadata.uid }
  const node = { name: `n${index + 1}`, uid: `n${index + 1}-uid`, bootId: 'b' }
  const progress = { phase, generation: 1, epoch, packages: [] }
  const lease = newLease(skyhookScope(identity, '__default__'), { index }, node, progress, 0)
  api.put(leasesPath, lease as never)
  return lease.metadata.name
}

/** Another size of the open batch, as if batches before had made it grow. */
function setSize(size: number): void {
  const lease = ledgerLease() as Lease
  const ledger = ledgerNow() as Ledger
  const batch = { ...(ledger.compartments['__default__']?.batch as BatchState), size, currentBatch: 2 }
  const compartments = { ...ledger.compartments, __default__: { ...ledger.compartments['__default__'], batch } }
  const annotations = { [ledgerAnnotation]: JSON.stringify({ ...ledger, compartments }) }
  api.put(leasesPath, { ...lease, metadata: { ...lease.metadata, annotations } } as never)
}

test('a batch is opened, closed with its results and followed by a larger one', async () => {
  const census = start()
  await turn(census, 1)
  expect(batchNow()).toMatchObject({ epoch: 1, size: 1, currentBatch: 1 })
  putSlot(0, 'working', 1)
  report('n1', 'in_progress')
  await turn(census, 3)
  expect(batchNow()?.epoch).toBe(1)
  report('n1', 'complete')
  putSlot(0, 'finished', 1)
  await turn(census, 2)
  expect(batchNow()).toMatchObject({ epoch: 2, size: 2, currentBatch: 2, completed: 1 })
})

test('every turn counts the series of the rollout that its status shows', async () => {
  const census = start()
  await turn(census, 1)
  putSlot(0, 'failed', 1)
  report('n1', 'erroring')
  report('n2', 'complete')
  await turn(census, 5)
  const rollout = { policy_name: 'careful', compartment_name: '__default__', strategy: 'linear' }
  const of = { skyhook_name: 'demo' }
  expect(seriesText(series)).toEqual(
    expect.arrayContaining([
      seriesLine('skyhook_rollout_matched_nodes', { ...of, ...rollout }, 3),
      seriesLine('skyhook_rollout_ceiling', { ...of, ...rollout }, 2),
      seriesLine('skyhook_rollout_completed', { ...of, ...rollout }, 1),
      seriesLine('skyhook_rollout_current_batch', { ...of, ...rollout }, 2),
      seriesLine('skyhook_rollout_consecutive_failures', { ...of, ...rollout }, 1),
      seriesLine('skyhook_rollout_should_stop', { ...of, ...rollout }, 1),
      seriesLine('skyhookd_fleet_stalled', { ...of, reason: 'RolloutStopped' }, 1),
    ]),
  )
  const { status } = api.get(skyhooksPath, 'demo') as unknown as { status: SkyhookStatus }
  expect(status.compartmentStatuses?.['__default__']).toMatchObject({
    matched: 3,
    ceiling: 2,
    completed: 1,
    batchState: { currentBatch: 2, consecutiveFailures: 1, shouldStop: true },
  })
})

test('two censuses close a batch once', async () => {
  const [one, other] = [start(), start()]
  await turn(one, 1)
  putSlot(0, 'finished', 1)
  report('n1', 'complete')
  for (let round = 0; round < 20; round++) {
    await Promise.all([one.reconcile(), other.reconcile()])
    for (const census of [one, other]) showAll(census)
    await api.clock.advance(100)
  }
  expect(batchNow()).toMatchObject({ epoch: 2, completed: 1 })
})

/** Starts one census after the other, and kills each after so many virtual seconds, until `isDone`. */
async function turnWithKills(everySeconds: number, maxLives: number, isDone: () => boolean): Promise<number> {
  for (let life = 1; life <= maxLives; life++) {
    await turn(start(), everySeconds)
    if (isDone()) return life
  }
  return Infinity
}

test('a batch that waits for nodes with other work is closed by censuses that live five seconds', async () => {
  await turn(start(), 1)
  putSlot(0, 'finished', 1)
  report('n1', 'complete')
  report('n2', 'waiting', 'WaitingForPriority')
  report('n3', 'waiting', 'WaitingForPriority')
  setSize(2)
  expect(await turnWithKills(5, 2, () => batchNow()?.epoch === 2)).toBe(Infinity)
  expect(await turnWithKills(5, 3, () => batchNow()?.epoch === 2)).toBeLessThanOrEqual(3)
  expect(batchNow()).toMatchObject({ completed: 1, lastBatchSize: 1 })
  expect(batchNow()?.waitedSeconds).toBeUndefined()
})

test('a batch beside a node of an earlier one that is at work again is closed by censuses that live five seconds', async () => {
  await turn(start(), 1)
  putSlot(0, 'working', 0)
  putSlot(1, 'finished', 1)
  report('n1', 'in_progress', 'StepFailed')
  report('n2', 'complete')
  report('n3', 'waiting', 'WaitingForPriority')
  setSize(2)
  expect(await turnWithKills(5, 6, () => batchNow()?.epoch === 2)).toBeLessThanOrEqual(6)
})

test('a batch waits again for nodes that have asked for a slot in between', async () => {
  await turn(start(), 1)
  putSlot(0, 'finished', 1)
  report('n1', 'complete')
  report('n2', 'waiting', 'WaitingForPriority')
  report('n3', 'waiting', 'WaitingForPriority')
  setSize(2)
  await turn(start(), 5)
  expect(batchNow()?.waitedSeconds).toBeGreaterThan(0)
  report('n2', 'waiting', 'WaitingForBatch')
  await turn(start(), 1)
  expect(batchNow()?.waitedSeconds).toBeUndefined()
})

test('a stop is in the status and an Event', async () => {
  const census = start()
  await turn(census, 1)
  putSlot(0, 'failed', 1)
  report('n1', 'erroring')
  await turn(census, 5)
  expect(batchNow()).toMatchObject({ epoch: 2, stopped: true, failed: 1 })
  const { status } = api.get(skyhooksPath, 'demo') as unknown as { status: { conditions: { reason: string }[] } }
  expect(status.conditions.map(({ reason }) => reason)).toContain('RolloutStopped')
  expect(events.filter((reason) => reason === 'RolloutStopped')).toHaveLength(1)
})

/** What a census of another version has written. */
function rewriteLedger(change: (ledger: Ledger) => object): void {
  const lease = ledgerLease() as Lease
  const annotations = { [ledgerAnnotation]: JSON.stringify(change(ledgerNow() as Ledger)) }
  api.put(leasesPath, { ...lease, metadata: { ...lease.metadata, annotations } } as never)
}

test('a ledger of a newer version stays as it is, and the census reports it once', async () => {
  await turn(start(), 1)
  rewriteLedger((ledger) => ({ ...ledger, v: 2, compartments: { __default__: { batch: 'otherwise' } } }))
  const before = ledgerLease()?.metadata.resourceVersion
  putSlot(0, 'finished', 1)
  report('n1', 'complete')
  nodes.delete('n3')
  events = []
  const asked = api.sent.length
  await turn(start(), 3)
  expect(ledgerLease()?.metadata.resourceVersion).toBe(before)
  expect(api.sent.slice(asked).filter(({ path }) => path.startsWith(leasesPath))).toEqual([])
  expect(events.filter((one) => one.includes('the ledger has version 2'))).toHaveLength(1)
  const { status } = api.get(skyhooksPath, 'demo') as unknown as { status: { completeNodes: string } }
  expect(status.completeNodes).toBe('1/2')
})

test('a deleted policy leaves the ledger as it is', async () => {
  const census = start()
  await turn(census, 1)
  const before = ledgerLease()?.metadata.resourceVersion
  policy = { state: 'missing' }
  report('n2', 'complete')
  await turn(census, 125) // it may be created after its Skyhook
  expect(ledgerLease()?.metadata.resourceVersion).toBe(before)
  expect(events).toContain('DeploymentPolicyNotFound')
})
