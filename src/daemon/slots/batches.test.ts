/** Slots of a Skyhook with a DeploymentPolicy, on a simulated API server; the ledger is written by hand. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ledgerAnnotation, selectorHash } from '../../lease/ledger.ts'
import { firstBatch } from '../../lease/policy/batch.ts'
import type { BatchState, DeploymentPolicySpec, PolicyKnowledge } from '../../schemas/deployment-policy.ts'
import { appliedHash } from '../../stages/model/package-inputs.ts'
import { createLog } from '../telemetry/log.ts'
import { leasesPath, nodesPath, type Sample, sampleServer } from '../../../test/kit/api-server/sample-server.ts'
import { createSeededRandom } from '../../../test/kit/virtual-clock.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { labelKeys, ledgerLabels, ledgerName } from '../../lease/names.ts'
import { readStrategy } from '../../lease/policy/strategy.ts'
import { policiesPath, skyhooksPath } from '../../schemas/api.ts'
import { emptyJournal } from '../../schemas/journal.ts'
import type { Skyhook, SkyhookSpec } from '../../schemas/skyhook.ts'
import { known, type OwnSlot, type SkyhookView } from '../../stages/model/snapshot.ts'
import { versionsOf } from '../../stages/skyhook/slot.ts'
import { createFleetSize } from '../state/fleet-size.ts'
import { batchReason, compartmentOf, limitOf } from '../../lease/budget/budget.ts'
import { followOwnSlots, type OwnSlots } from './own-slots.ts'
import { createSlotLine } from './slot-line.ts'
import { createSlotManager, type SlotManager } from './slot-manager.ts'

const strategy = { fixed: { initialBatch: 1 } }
const policySpec: DeploymentPolicySpec = {
  default: { budget: { count: 2 }, strategy },
  compartments: [{ name: 'an odd name!', selector: { matchLabels: { gpu: 'true' } }, budget: { count: 1 } }],
}
const spec: SkyhookSpec = { deploymentPolicy: 'careful', packages: { a: { version: '1.0.0', image: 'r/a' } } }

let api: Sample
let transport: KubeTransport
let stopping: AbortController
let skyhook: Skyhook
let labels: Record<string, string>
let policyGeneration: number
let turns: string[]
let wakes: number

beforeEach(() => {
  api = sampleServer()
  transport = api.connect()
  stopping = new AbortController()
  labels = {}
  policyGeneration = 1
  turns = []
  wakes = 0
  skyhook = api.put(skyhooksPath, { metadata: { name: 's' }, spec }) as unknown as Skyhook
  putPolicy()
  putLedger()
})
afterEach(() => stopping.abort())

const putPolicy = (change: object = {}): void =>
  void api.put(policiesPath, { metadata: { name: 'careful' }, spec: { ...policySpec, ...change } })

function policyNow(): PolicyKnowledge {
  const { metadata } = api.get(policiesPath, 'careful') as unknown as Skyhook
  return { state: 'found', uid: metadata.uid, generation: policyGeneration, spec: policySpec, nodeLabels: labels }
}
const viewNow = (): SkyhookView => ({ metadata: skyhook.metadata, spec, budget: {}, stale: false, policy: policyNow() })

/** The ledger that the census would write. */
function putLedger(batch: Partial<BatchState> = {}, change: object = {}): void {
  const identity = { name: 's', uid: skyhook.metadata.uid }
  const open = { ...firstBatch(readStrategy(strategy), 1), ...batch }
  const { metadata: policy } = api.get(policiesPath, 'careful') as unknown as Skyhook
  const ledger = {
    v: 1,
    skyhookUID: identity.uid,
    generation: 1,
    applied: appliedHash(spec),
    selectorHash: selectorHash(undefined),
    waiters: 2,
    policy: { uid: policy.uid, generation: policyGeneration },
    compartments: {
      __default__: { matched: 3, completed: 0, waiters: 2, batch: open },
      'an odd name!': { matched: 1, completed: 0, waiters: 1, candidates: 1, batch: open },
    },
    ...change,
  }
  const annotations = { [ledgerAnnotation]: JSON.stringify(ledger) }
  api.put(leasesPath, { metadata: { name: ledgerName(identity), labels: ledgerLabels(identity), annotations } })
}

type TestedManager = SlotManager & Pick<OwnSlots, 'held' | 'untilKnown' | 'followBatches'>

async function managerOf(name: string): Promise<TestedManager> {
  const { clock } = api
  const leases = { transport, namespace: 'default', clock }
  const node = () => ({ metadata: { name, uid: `${name}-uid`, resourceVersion: '1', labels } })
  const random = createSeededRandom(1)
  const sources = {
    node,
    bootId: () => 'boot',
    skyhooks: () => known([viewNow()]),
    journal: () => emptyJournal(`${name}-uid`),
    leases,
    clock,
    random,
    signal: stopping.signal,
  }
  const onFact = (): void => undefined
  const ownSlots = followOwnSlots({ ...sources, nodeName: name, wake: () => void wakes++, onFact })
  const line = createSlotLine({
    ...sources,
    nodeUid: () => `${name}-uid`,
    fleet: createFleetSize(2),
    onTurn: () => void turns.push(name),
    onNear: () => undefined,
    onCountMissing: () => undefined,
  })
  const manager = createSlotManager({
    defaultBudget: {},
    ...sources,
    ownSlots,
    line,
    runtimeRequiredTaint: { key: 'skyhook.nvidia.com', effect: 'NoSchedule' },
    log: createLog('silent', {}),
    uncountedSince: () => undefined,
    onReleased: () => undefined,
    onAcquired: () => undefined,
  })
  await ownSlots.untilKnown()
  return {
    ...manager,
    held: ownSlots.held,
    untilKnown: ownSlots.untilKnown,
    followBatches: () => ownSlots.followBatches(),
  }
}

function heldBy(manager: TestedManager): OwnSlot | undefined {
  const held = manager.held()
  return held.known ? held.value[0] : undefined
}
async function holder(name = 'n1'): Promise<{ manager: TestedManager; slot: OwnSlot }> {
  const manager = await managerOf(name)
  await manager.acquire(viewNow(), 'working', false)
  const slot = heldBy(manager)
  if (slot === undefined) throw new Error(`no slot: ${JSON.stringify([...manager.denials()])}`)
  return { manager, slot }
}

test('a node takes a slot of its compartment under the open batch, and the next one waits for the batch', async () => {
  const { slot } = await holder()
  expect(slot).toMatchObject({ skyhook: 's', skyhookUid: skyhook.metadata.uid, batch: 'open' })
  expect(api.get(leasesPath, slot.lease)?.metadata.annotations).toMatchObject({
    'skyhook.nvidia.com/epoch': '1',
    'skyhook.nvidia.com/compartment': '__default__',
  })
  const second = await managerOf('n2')
  await second.acquire(viewNow(), 'working', false)
  expect(heldBy(second)).toBeUndefined()
  expect(second.denials().get('s')).toMatchObject({
    message: 'the current batch of the policy is not finished',
    waitsFor: 'batch',
  })
})

test('a renewal says which compartment the node is in by now, and its slot counts there too', async () => {
  const { manager, slot } = await holder()
  const currentIn = (): unknown =>
    api.get(leasesPath, slot.lease)?.metadata.annotations?.['skyhook.nvidia.com/current-compartment']
  await manager.renew(slot, 'working')
  expect(currentIn()).toBeUndefined()
  labels = { gpu: 'true' }
  await manager.renew(heldBy(manager) as OwnSlot, 'working')
  expect(currentIn()).toBe('an odd name!')
  const second = await managerOf('n2')
  await second.acquire(viewNow(), 'working', false)
  expect([heldBy(second), second.denials().size]).toEqual([undefined, 1])
  await manager.release(heldBy(manager) as OwnSlot)
  await second.acquire(viewNow(), 'working', false)
  expect(heldBy(second)?.lease).toMatch(/^s\.an-odd-name-/)
})

test('a restarted agent knows whose slot it has in a compartment whose name is not a label value', async () => {
  labels = { gpu: 'true' }
  const { slot } = await holder()
  expect(slot.lease).toMatch(/^s\.an-odd-name-[0-9a-f]{8}\.slot-0$/)
  const again = await managerOf('n1')
  expect(heldBy(again)).toMatchObject({ skyhook: 's', skyhookUid: skyhook.metadata.uid })
  const labelled = api.get(leasesPath, slot.lease)?.metadata.labels as Record<string, string>
  expect(labelled[labelKeys.compartment]).toMatch(/^an-odd-name-[0-9a-f]{8}$/)
})

describe('before the first step', () => {
  test.each<[string, () => void, string]>([
    ['when its batch is over', () => putLedger({ epoch: 2 }), 'batch 1 is over'],
    [
      'when the policy has changed',
      () => putPolicy({ compartments: [] }),
      'DeploymentPolicy careful has changed, waiting to see its new spec',
    ],
    ['when the policy is gone', () => api.remove(policiesPath, 'careful'), 'DeploymentPolicy careful has changed'],
    ['when the rollout is stopped', () => putLedger({ stopped: true }), 'the policy has stopped the rollout'],
    ['when the node is in another compartment', () => void (labels = { gpu: 'true' }), 'the node is in compartment'],
    [
      'when the batch is of other work',
      () => putLedger({}, { applied: 'x' }),
      'has not opened a batch for the current',
    ],
  ])('a slot is given back %s', async (_, change, message) => {
    const { manager, slot } = await holder()
    const before = viewNow()
    change()
    await manager.confirm(slot, asSeen(before))
    expect(heldBy(manager)).toBeUndefined()
    expect(manager.denials().get('s')?.message).toContain(message)
  })
})

/** The view of watches that are behind; the own labels are known at once. */
function asSeen(before: SkyhookView): SkyhookView {
  const { policy } = before
  return policy?.state === 'found' ? { ...before, policy: { ...policy, nodeLabels: labels } } : before
}

test('a slot whose batch is still open is confirmed', async () => {
  const { manager, slot } = await holder()
  const view = viewNow()
  await manager.confirm(slot, view)
  expect(heldBy(manager)).toMatchObject({ ownership: 'confirmed', admittedUnder: versionsOf(view) })
  expect(heldBy(manager)?.admittedUnder).toMatchObject({ policy: { generation: 1 } })
})

describe('a joining node with a number in the spec', () => {
  const joining = { ...spec, bootstrap: { count: 2 } }
  const stopReason = 'too many batches have failed, the policy has stopped the rollout'
  const joiningView = (): SkyhookView => ({ ...viewNow(), spec: joining })

  beforeEach(() => {
    skyhook = api.put(skyhooksPath, { metadata: { name: 's' }, spec: joining }) as unknown as Skyhook
    putLedger()
    const taints = [{ key: 'skyhook.nvidia.com', effect: 'NoSchedule' }]
    for (const name of ['n1', 'n2', 'n3']) api.put(nodesPath, { metadata: { name }, spec: { taints } })
  })

  test('a joining node takes a slot beside the open batch, whose end it does not wait for', async () => {
    await holder('n3')
    const managers = [await managerOf('n1'), await managerOf('n2'), await managerOf('n4')]
    for (const manager of managers) await manager.acquire(joiningView(), 'working', false, true)
    expect(managers.map((manager) => heldBy(manager)?.isBootstrap)).toEqual([true, true, undefined])
    expect(managers[2]?.denials().get('s')).toMatchObject({ message: 'the budget of 2 joining nodes is used up' })
    expect(managers[2]?.denials().get('s')?.waitsFor).toBeUndefined()
  })

  test('a joining node whose compartment is not counted yet asks again after the count, not before', async () => {
    const selector = { matchLabels: { gpu: 'true' } }
    const compartments = ['x', 'y'].map((name) => ({ name, selector, budget: { percent: 50 } }))
    labels = { gpu: 'true' }
    putLedger({}, { compartments: {} })
    const manager = await managerOf('n1')
    const policy = { ...policyNow(), spec: { ...policySpec, compartments } } as PolicyKnowledge
    await manager.acquire({ ...viewNow(), spec, policy }, 'working', false, true)
    await api.clock.advance(1_500)
    expect([manager.denials().get('s')?.message, turns]).toEqual([
      'budget unknown: the census has not counted the compartments yet',
      [],
    ])
  })

  test('a joining node takes no slot while its compartment is stopped, and says so', async () => {
    putLedger({ stopped: true })
    const manager = await managerOf('n1')
    await manager.acquire(joiningView(), 'working', false, true)
    expect([heldBy(manager), manager.denials().get('s')?.message]).toEqual([undefined, stopReason])
  })

  test('a joining node takes no slot while nobody has counted for this policy: it may be stopped', async () => {
    putLedger({}, { policy: { uid: 'another', generation: 1 } })
    const manager = await managerOf('n1')
    await manager.acquire(joiningView(), 'working', false, true)
    expect([heldBy(manager), manager.denials().get('s')?.message]).toEqual([
      undefined,
      expect.stringContaining('budget unknown'),
    ])
  })

  test('a joining node gives its slot back when its compartment is stopped before the first step', async () => {
    const manager = await managerOf('n1')
    await manager.acquire(joiningView(), 'working', false, true)
    putLedger({ stopped: true })
    const slot = heldBy(manager)
    if (slot) await manager.confirm(slot, joiningView())
    expect([slot?.isBootstrap, heldBy(manager)]).toEqual([true, undefined])
  })
})

test('the slot of finished work waits for its batch and sees that it is over', async () => {
  const { manager, slot } = await holder()
  await manager.renew(slot, 'finished')
  manager.followBatches()
  await api.eventually(() => expect(api.server.openWatches()).toBe(2))
  expect(heldBy(manager)).toMatchObject({ phase: 'finished', batch: 'open' })
  const before = wakes
  putLedger({ epoch: 2 })
  await api.eventually(() => expect(heldBy(manager)).toMatchObject({ batch: 'over' }))
  expect(wakes).toBeGreaterThan(before)
  await manager.acquire(viewNow(), 'working', false)
  expect([heldBy(manager)?.lease, heldBy(manager)?.ownership]).toEqual([slot.lease, 'owned']) // nothing starts under it
})

test('a node that waits for the batch asks when the next one is open', async () => {
  const { manager, slot } = await holder()
  const second = await managerOf('n2')
  await second.acquire(viewNow(), 'working', false)
  await api.eventually(() => expect(api.server.openWatches()).toBe(3)) // the own slots of both nodes, and all slots
  putLedger({ epoch: 2 })
  await manager.release(slot)
  await api.eventually(() => expect(turns).toEqual(['n2']))
})

test('a node that waits goes by the policy as it is now', async () => {
  const { manager, slot } = await holder()
  const second = await managerOf('n2')
  await second.acquire(viewNow(), 'working', false)
  await api.eventually(() => expect(api.server.openWatches()).toBe(3))
  policyGeneration = 2
  second.keepWaiting(new Set(['s']))
  putLedger({ epoch: 2 })
  await manager.release(slot)
  await api.eventually(() => expect(turns).toContain('n2'))
})

test('a node of two compartments asks in the one that the counts of the ledger say', async () => {
  labels = { gpu: 'true', big: 'true' }
  const selecting = (label: string) => ({ selector: { matchLabels: { [label]: 'true' } }, strategy })
  const compartments = [
    { name: 'gpu', budget: { percent: 50 }, ...selecting('gpu') },
    { name: 'big', budget: { percent: 50 }, ...selecting('big') },
  ]
  const policy = { ...policyNow(), spec: { ...policySpec, compartments } } as PolicyKnowledge
  const view = { ...viewNow(), policy }
  const manager = await managerOf('n1')
  const batch = firstBatch(readStrategy(strategy), 1)
  await manager.acquire(view, 'working', false)
  expect(manager.denials().get('s')?.message).toBe('budget unknown: the census has not counted the compartments yet')
  expect((manager.denials().get('s')?.nextRequestAtMs ?? 0) - api.clock.steadyMs()).toBeGreaterThanOrEqual(30_000)
  const counted = (candidates: number) => ({ matched: 2, completed: 0, waiters: 1, candidates, batch })
  await api.clock.advance(2_000)
  putLedger({}, { compartments: { gpu: counted(8), big: counted(4), __default__: counted(0) } })
  await api.eventually(() => expect(turns).toContain('n1'))
  await api.clock.advance(1_000)
  await manager.acquire(view, 'working', false)
  expect(heldBy(manager)?.lease).toMatch(/^s\.big-/)
})

describe('a node of the control plane in a compartment of its own', () => {
  const label = { 'node-role.kubernetes.io/control-plane': '' }
  const compartments = [
    {
      name: 'control',
      selector: { matchExpressions: [{ key: 'node-role.kubernetes.io/control-plane', operator: 'Exists' }] },
      budget: { count: 2 },
    },
  ]
  const view = (): SkyhookView => ({
    ...viewNow(),
    policy: { ...policyNow(), spec: { ...policySpec, compartments } } as PolicyKnowledge,
  })
  const open = (size: number): void => {
    const batch = { ...firstBatch(readStrategy(strategy), 1), size }
    const counted = { matched: 2, completed: 0, waiters: 2, batch }
    putLedger({}, { compartments: { control: { ...counted, candidates: 2 }, __default__: counted } })
  }
  /** Requests a slot with the labels of that node. */
  const ask = async (manager: TestedManager, own: Record<string, string>): Promise<readonly string[]> => {
    labels = own
    await manager.acquire(view(), 'cordoning', true)
    return scopesOf(manager)
  }
  const scopesOf = (manager: TestedManager): readonly string[] => {
    const held = manager.held()
    return held.known ? held.value.map(({ lease }) => lease.replace(/-[0-9a-f]{8}\./, '.')).toSorted() : []
  }
  const slotCount = (): number =>
    new Set(
      api.sent
        .filter(({ method, path }) => method === 'POST' && path === leasesPath)
        .map(({ body }) => (body as { metadata: { name: string } }).metadata.name)
        .filter((name) => api.get(leasesPath, name) !== undefined),
    ).size

  test('a control-plane node takes both slots, and the next one neither until the first of them is back', async () => {
    open(2)
    const [first, second, worker] = [await managerOf('n1'), await managerOf('n2'), await managerOf('n3')]
    expect(await ask(first, label)).toEqual(['control-plane.slot-0', expect.stringMatching(/^s\.control\.slot-[01]$/)])
    expect([await ask(second, label), slotCount()]).toEqual([[], 2])
    expect(second.denials().get('s')).toMatchObject({ waitsFor: 'control-plane' })
    labels = {}
    await worker.acquire(view(), 'cordoning', false)
    expect([scopesOf(worker).length, slotCount()]).toEqual([1, 3]) // another compartment continues
    const held = first.held()
    const guard = held.known ? held.value.find(({ scope }) => scope === 'control-plane') : undefined
    await first.release(guard as OwnSlot)
    expect([(await ask(second, label)).length, slotCount()]).toEqual([2, 4])
  })

  test('a control-plane node takes neither slot while the batch of its compartment has no place', async () => {
    open(1)
    const [first, second] = [await managerOf('n1'), await managerOf('n2')]
    expect((await ask(first, label)).length).toBe(2)
    const held = first.held()
    const guard = held.known ? held.value.find(({ scope }) => scope === 'control-plane') : undefined
    await first.release(guard as OwnSlot)
    expect([await ask(second, label), slotCount()]).toEqual([[], 1])
    expect(second.denials().get('s')).toMatchObject({ waitsFor: 'batch' })
  })
})

describe('limitOf', () => {
  test.each<[PolicyKnowledge | undefined, string]>([
    [undefined, 'the DeploymentPolicy is not known'],
    [{ state: 'unknown', why: 'not listed yet' }, 'not listed yet'],
    [{ state: 'missing' }, 'DeploymentPolicy careful not found'],
  ])('the limit under the policy %j is unknown', (policy, why) => {
    const view = { ...viewNow(), policy }
    expect(limitOf(view, [])).toEqual({ unknown: why })
    expect([compartmentOf(view, []), batchReason(view, { ledgers: [] })]).toEqual([undefined, undefined])
  })

  test('the ledger for another policy says nothing', () => {
    const policy = { ...policyNow(), generation: 2 } as PolicyKnowledge
    const ledger = api.get(leasesPath, ledgerName({ name: 's', uid: skyhook.metadata.uid })) as never
    expect(limitOf({ ...viewNow(), policy }, [ledger])).toEqual({
      unknown: 'the census has not counted since the DeploymentPolicy changed',
    })
    expect(limitOf(viewNow(), [ledger])).toBe(1)
  })

  test('maxCount caps a percentage, regardless of the nodes and places in a ledger', () => {
    const batch = { ...firstBatch(readStrategy(strategy), 1), size: 500 }
    putLedger({}, { compartments: { __default__: { matched: 1_000, completed: 0, waiters: 2, batch } } })
    const ledger = api.get(leasesPath, ledgerName({ name: 's', uid: skyhook.metadata.uid })) as never
    const limitBy = (budget: object): unknown => {
      const policy = { ...policyNow(), spec: { default: { budget, strategy } } } as PolicyKnowledge
      return limitOf({ ...viewNow(), policy }, [ledger])
    }
    expect([limitBy({ percent: 50 }), limitBy({ percent: 50, maxCount: 3 })]).toEqual([500, 3])
    expect(limitBy({ percent: 1, maxCount: 30 })).toBe(10)
    expect(limitBy({ percent: 0, maxCount: 30 })).toBe(0)
  })

  test('maxCount decides which of two compartments is the smaller one', () => {
    labels = { gpu: 'true' }
    const named = (name: string, budget: object) => ({
      name,
      budget,
      selector: { matchLabels: { gpu: 'true' } },
      strategy,
    })
    const counted = { matched: 4, completed: 0, candidates: 8, batch: firstBatch(readStrategy(strategy), 1) }
    putLedger({}, { compartments: { a: counted, b: counted, __default__: counted } })
    const ledger = api.get(leasesPath, ledgerName({ name: 's', uid: skyhook.metadata.uid })) as never
    const chosen = (ofB: object): unknown => {
      const compartments = [named('a', { percent: 50 }), named('b', ofB)]
      return compartmentOf(
        { ...viewNow(), policy: { ...policyNow(), spec: { ...policySpec, compartments } } as PolicyKnowledge },
        [ledger],
      )
    }
    expect([chosen({ percent: 50 }), chosen({ percent: 50, maxCount: 3 })]).toEqual(['a', 'b'])
  })
})
