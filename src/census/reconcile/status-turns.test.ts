/** Whole turns of the census, from what nodes say to the status and the Events of a Skyhook. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { allAgents, nodeReporting, type NodeReport, spec } from '../../../test/kit/objects/census-objects.ts'
import { eventsPath, leasesPath, type Sample, sampleServer } from '../../../test/kit/api-server/sample-server.ts'
import { createSeededRandom } from '../../../test/kit/virtual-clock.ts'
import { startEventRecorder } from '../../kube/events.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { type Ledger, ledgerAnnotation } from '../../lease/ledger.ts'
import { ledgerName } from '../../lease/names.ts'
import type { Lease } from '../../lease/slot.ts'
import { skyhooksPath, skyhookTypeMeta } from '../../schemas/api.ts'
import type { PolicyKnowledge } from '../../schemas/deployment-policy.ts'
import type { Skyhook, SkyhookSpec } from '../../schemas/skyhook.ts'
import type { AgentState } from '../../stages/skyhook/gates.ts'
import type { CensusNode } from '../model/node-facts.ts'
import { createSkyhookReconciler, type SkyhookReconciler, type SkyhookReconcilerOptions } from './skyhook-reconciler.ts'
import { conditionOf, type SkyhookStatus } from '../model/skyhook-status.ts'

let api: Sample
let transport: KubeTransport
let stopping: AbortController
let nodes: Map<string, CensusNode>
let agents: Record<string, AgentState>
let policy: PolicyKnowledge | undefined
let failures: unknown[]

beforeEach(() => {
  api = sampleServer()
  transport = api.connect()
  stopping = new AbortController()
  nodes = new Map()
  agents = {}
  policy = undefined
  failures = []
})
afterEach(() => {
  stopping.abort(new Error('test is over'))
  expect(failures).toEqual([])
})

const stored = (): Skyhook => api.get(skyhooksPath, 'demo') as unknown as Skyhook
const statusNow = (): SkyhookStatus => (stored().status ?? {}) as SkyhookStatus
const annotations = { 'skyhook.nvidia.com/version': 'v0.15.0' }
const apply = (next: SkyhookSpec): void =>
  void api.put(skyhooksPath, { metadata: { name: 'demo', annotations }, spec: next })
const report = (name: string, node: NodeReport): void => void nodes.set(name, nodeReporting(name, node))

function start(): SkyhookReconciler {
  const recorder = startEventRecorder(transport, {
    clock: api.clock,
    random: createSeededRandom(2),
    component: 'skyhookd-census',
    host: 'n1',
    signal: stopping.signal,
    timing: { perSecond: 1, burst: 50 },
  })
  const reportOn: SkyhookReconcilerOptions['report'] = ({ metadata: { name, uid } }, event) =>
    recorder.record({ regarding: { ...skyhookTypeMeta, name, uid }, ...event })
  const options = {
    defaultBudget: {},
    leases: { transport, namespace: 'default', clock: api.clock },
    random: createSeededRandom(1),
    observe: () => ({
      nodes,
      agents: allAgents('ready', agents),
      skyhook: stored(),
      ledger: api.get(leasesPath, ledgerName({ name: 'demo', uid: stored().metadata.uid })) as Lease | undefined,
      policy,
    }),
    relist: () => undefined,
    report: reportOn,
    onCounted: () => undefined,
    onFailed: (error: unknown) => void failures.push(error),
    signal: stopping.signal,
  }
  return createSkyhookReconciler(options)
}

/** Turns over so many virtual seconds, with a watch that shows everything at once. */
async function turn(census: SkyhookReconciler, seconds: number): Promise<void> {
  for (let step = 0; step < seconds * 5; step++) {
    await census.reconcile()
    for (const what of ['skyhook', 'ledger'] as const) census.observed(what)
    await api.clock.advance(200)
  }
}

const conditionText = (type: string, status = statusNow()): string => {
  const condition = conditionOf(status, type)
  return `${condition?.status} ${condition?.reason}`
}
const writtenStatuses = (): SkyhookStatus[] =>
  api.sent
    .filter(({ method, path }) => method === 'PUT' && path.endsWith('/status'))
    .map(({ body }) => (body as { status: SkyhookStatus }).status)
const eventRequests = (method: string) =>
  api.sent.filter((request) => request.method === method && request.path.startsWith(eventsPath))
const eventTexts = (): string[] =>
  eventRequests('POST').map(({ body }) => {
    const { type, reason } = body as { type: string; reason: string }
    return `${type} ${reason}`
  })

test('a node that joins a complete Skyhook is pending, and no status calls the Skyhook Ready until it is complete', async () => {
  apply(spec)
  for (const name of ['n1', 'n2']) report(name, {})
  const census = start()
  await turn(census, 3)
  expect([conditionText('Ready'), statusNow().nodesPending]).toEqual(['True Complete', 0])
  const before = writtenStatuses().length

  agents['n3'] = 'unready'
  report('n3', { status: '' })
  await turn(census, 2)
  expect(statusNow()).toMatchObject({ nodesSelected: 3, nodesUpdated: 2, nodesPending: 1, nodesInProgress: 0 })
  agents['n3'] = 'ready'
  await turn(census, 2)
  expect([conditionText('Ready'), statusNow().nodesPending]).toEqual(['False Waiting', 1])
  report('n3', { status: 'in_progress' })
  await turn(census, 2)
  expect(statusNow()).toMatchObject({ nodesPending: 0, nodesInProgress: 1 })
  const meanwhile = writtenStatuses().slice(before)
  expect(meanwhile.length).toBeGreaterThan(2)
  expect(meanwhile.map((status) => conditionOf(status, 'Ready')?.status)).not.toContain('True')
  expect(new Set(meanwhile.map((status) => conditionText('skyhook.nvidia.com/Converged', status)))).toEqual(
    new Set(['True Converged']),
  )

  report('n3', {})
  await turn(census, 2)
  expect(conditionText('Ready')).toBe('True Complete')
  expect(eventTexts()).toEqual(['Normal Complete', 'Normal Incomplete', 'Normal Complete'])
})

test('an edit ends the convergence until all nodes are complete for it, also those that join meanwhile', async () => {
  apply(spec)
  report('n1', {})
  const census = start()
  await turn(census, 3)
  expect(conditionText('skyhook.nvidia.com/Converged')).toBe('True Converged')
  const next = { packages: { tuning: { version: '1.2.0', image: 'registry.example.com/tuning' } } }
  apply(next)
  report('n2', { status: 'waiting' })
  await turn(census, 3)
  expect(conditionText('skyhook.nvidia.com/Converged')).toBe('False NotConverged')
  report('n1', { of: next })
  await turn(census, 3)
  expect(conditionText('skyhook.nvidia.com/Converged')).toBe('False NotConverged')
  report('n2', { of: next })
  await turn(census, 3)
  expect([conditionText('Ready'), conditionText('skyhook.nvidia.com/Converged')]).toEqual([
    'True Complete',
    'True Converged',
  ])
})

test('changed keys are in the status from the edit until all nodes have them, also for a census elected meanwhile', async () => {
  const config = (configMap: Record<string, string>): SkyhookSpec => ({
    packages: { tuning: { version: '1.1.0', image: 'registry.example.com/tuning', configMap } },
  })
  apply(config({ a: '1', b: '1' }))
  for (const name of ['n1', 'n2']) report(name, { of: config({ a: '1', b: '1' }) })
  const first = start()
  await turn(first, 3)
  expect(statusNow().configUpdates).toBeUndefined()
  apply(config({ a: '2', b: '1' }))
  await turn(first, 3)
  expect(statusNow().configUpdates).toEqual({ tuning: ['a'] })

  const second = start()
  await turn(second, 1)
  apply(config({ a: '2', c: '1' }))
  report('n1', { of: config({ a: '2', c: '1' }) })
  await turn(second, 3)
  expect(statusNow().configUpdates).toEqual({ tuning: ['a', 'b', 'c'] })
  report('n2', { of: config({ a: '2', c: '1' }) })
  await turn(second, 3)
  expect([conditionText('Ready'), statusNow().configUpdates]).toEqual(['True Complete', undefined])
})

test('a census without any change counts again when a failure has lasted, and reports it once', async () => {
  apply(spec)
  const since = new Date(api.clock.wallMs() - 100_000).toISOString()
  const more = { code: 'not-found', since }
  report('n1', { status: 'waiting', entries: [], reason: ['ImagePull', 'no such image', more] })
  const census = start()
  await turn(census, 3)
  expect(conditionText('Stalled')).toBe('False NotStalled')
  const nextMs = await census.reconcile()
  expect(nextMs - api.clock.monotonicMs()).toBeLessThanOrEqual(18_000)
  await turn(census, 20)
  expect([conditionText('Stalled'), conditionText('Reconciling')]).toEqual(['True NodesErroring', 'False Stalled'])
  expect(eventTexts().filter((text) => text.includes('NodesErroring'))).toEqual(['Warning NodesErroring'])
})

test('a policy stalls its Skyhook two minutes after it is missed, also for a census elected meanwhile', async () => {
  apply({ ...spec, deploymentPolicy: 'careful' })
  report('n1', { status: '' })
  policy = { state: 'missing' }
  await turn(start(), 60)
  expect([conditionText('Stalled'), conditionText('Reconciling')]).toEqual(['False NotStalled', 'True NodesBlocked'])
  const second = start()
  await turn(second, 50)
  expect(conditionText('Stalled')).toBe('False NotStalled')
  await turn(second, 15)
  expect(conditionText('Stalled')).toBe('True DeploymentPolicyNotFound')
})

test('a Skyhook is stalled while its policy may not be read, without a ledger, and continues when it may', async () => {
  apply({ ...spec, deploymentPolicy: 'careful' })
  report('n1', { status: '' })
  policy = { state: 'unknown', why: 'the DeploymentPolicies cannot be listed: HTTP 403', isRefused: true }
  const census = start()
  await turn(census, 3)
  expect(statusNow().status).toBe('blocked')
  expect([conditionText('Stalled'), conditionText('Reconciling')]).toEqual([
    'True DeploymentPolicyUnknown',
    'False Stalled',
  ])
  expect(api.sent.filter(({ path }) => path.startsWith(leasesPath))).toEqual([])
  expect(eventTexts()).toEqual(['Warning DeploymentPolicyUnknown'])

  const strategy = { fixed: {} }
  policy = { state: 'found', uid: 'p', generation: 1, spec: { default: { budget: { count: 1 }, strategy } } }
  await turn(census, 3)
  expect([conditionText('Stalled'), conditionText('Ready')]).toEqual(['False NotStalled', 'False Waiting'])
  expect(statusNow().compartmentStatuses).toMatchObject({ __default__: { matched: 1, ceiling: 1 } })
})

test('fifty nodes that fail every other second, each with its own message, cause few Events', async () => {
  apply(spec)
  const names = Array.from({ length: 50 }, (_, at) => `n${at + 10}`)
  const census = start()
  const seconds = 180
  for (let second = 0; second < seconds; second++) {
    for (const name of names) {
      const isFailing = (second + Number(name.slice(1))) % 2 === 0
      report(name, {
        status: isFailing ? 'erroring' : 'in_progress',
        ...(isFailing && { reason: ['StepFailed', `${name}: apply.sh ended with 1`] }),
      })
    }
    await census.reconcile()
    for (const what of ['skyhook', 'ledger'] as const) census.observed(what)
    await api.clock.advance(1_000)
  }
  expect(new Set(eventTexts())).toEqual(new Set(['Warning StepFailed']))
  // five messages while the even nodes fail, five while the odd ones do, and their counts once a minute
  expect(eventRequests('POST')).toHaveLength(10)
  expect(eventRequests('PATCH').length).toBeLessThanOrEqual((10 * seconds) / 60)
})

test('the ledger says how long nodes were at work, also across censuses, and costs no write of its own', async () => {
  const ledgerNow = (): Ledger => {
    const lease = api.get(leasesPath, ledgerName({ name: 'demo', uid: stored().metadata.uid })) as Lease
    return JSON.parse(lease.metadata.annotations?.[ledgerAnnotation] ?? '') as Ledger
  }
  apply(spec)
  for (const name of ['n1', 'n2']) report(name, { status: 'waiting' })
  const first = start()
  await turn(first, 2)
  report('n1', { status: 'in_progress' })
  await turn(first, 30)
  report('n1', {})
  await turn(first, 5)
  const { applied, slotTimes } = ledgerNow()
  expect(slotTimes).toEqual([{ applied, lengths: { 16: 1 } }])

  const second = start()
  await turn(second, 2)
  const ledgerWrites = (): number =>
    api.sent.filter(({ method, path }) => method === 'PUT' && path.includes('.ledger')).length
  const before = ledgerWrites()
  report('n2', { status: 'in_progress' })
  await turn(second, 30)
  report('n2', {})
  await turn(second, 5)
  expect(ledgerNow().slotTimes).toEqual([{ applied, lengths: { 16: 2 } }])
  expect(ledgerWrites() - before).toBeLessThanOrEqual(2)
})
