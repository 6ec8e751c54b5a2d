import { beforeEach, describe, expect, test } from 'vitest'
import { createClient, type SimClient } from '../../../test/fleet/api-server/client.ts'
import { createSimulatedApiServer, type SimulatedApiServer } from '../../../test/fleet/api-server/server.ts'
import { createSeededRandom, createVirtualClock, type VirtualClock } from '../../../test/support/virtual-clock.ts'
import { type Ledger, ledgerAnnotation } from '../../lease/ledger.ts'
import { indexedName, ledgerLabels, ledgerName, nodeSlotName, skyhookScope, slotLabels } from '../../lease/names.ts'
import { firstBatch } from '../../lease/policy/batch-state.ts'
import { readStrategy } from '../../lease/policy/strategy.ts'
import { selectorHash } from '../../lease/selector-hash.ts'
import { type Leases, leasesPathOf, listScope, type ScopeListing } from '../../lease/slot-reads.ts'
import { hashFraction } from '../../lease/waiting.ts'
import type { InterruptionBudget } from '../../schemas/skyhook.ts'
import { appliedHash } from '../../stages/model/applied-hash.ts'
import { known, type SkyhookView, unknown } from '../../stages/model/snapshot.ts'
import { createFleetSize } from '../state/fleet-size.ts'
import { createSlotLine, type Pause, type SlotLine } from './slot-line.ts'
import { readBudget } from '../../schemas/budget.ts'

const skyhook = { name: 's', uid: '3f2504e0-4f89-11d3-9a0c-0305e82c3301' }
const scope = skyhookScope(skyhook)
const slot0 = indexedName(scope, 0)
/** Ids of nodes whose places are about there. */
const uidAt = (fraction: number): string =>
  Array.from({ length: 2_000 }, (_, index) => `uid-${index}`).reduce((best, uid) =>
    Math.abs(hashFraction(uid) - fraction) < Math.abs(hashFraction(best) - fraction) ? uid : best,
  )
const [early, late] = [uidAt(0.001), uidAt(0.9)]

let clock: VirtualClock
let server: SimulatedApiServer
let admin: SimClient
let leases: Leases
let view: SkyhookView
let stopping: AbortController
let turns: number[]
let nears: number[]
let missingCounts: number
let isListed: boolean

const budgeted = (interruptionBudget: InterruptionBudget, bootstrap?: { readonly count: number }): SkyhookView => ({
  metadata: { ...skyhook, resourceVersion: '1' },
  spec: { interruptionBudget, ...(bootstrap && { bootstrap }) },
  budget: readBudget(interruptionBudget),
  stale: false,
})

beforeEach(async () => {
  clock = createVirtualClock(undefined, { settleTurns: 1 })
  const random = createSeededRandom(1)
  server = createSimulatedApiServer({ clock, random })
  admin = createClient(server, { name: 'admin', clock, random })
  await admin.json('POST', '/api/v1/namespaces', { body: { metadata: { name: 'skyhook' } } })
  leases = { transport: createClient(server, { name: 'agent', clock, random }), namespace: 'skyhook', clock }
  view = budgeted({ count: 1 })
  turns = []
  nears = []
  missingCounts = 0
  isListed = true
})

/** `isCounted`: by the census, not only estimated. */
function lineOf(options: {
  readonly agents: number
  readonly nodeUid?: string
  readonly isCounted?: boolean
}): SlotLine {
  stopping = new AbortController()
  const fleet = createFleetSize(options.agents)
  if (options.isCounted) fleet.observe(options.agents)
  return createSlotLine({
    leases,
    nodeUid: () => options.nodeUid ?? early,
    skyhooks: () => (isListed ? known([view]) : unknown('not listed')),
    fleet,
    random: { number: () => 0.5, hex: () => '' },
    onTurn: () => void turns.push(clock.monotonicMs()),
    onNear: () => void nears.push(clock.monotonicMs()),
    onCountMissing: () => void missingCounts++,
    signal: stopping.signal,
  })
}

const path = leasesPathOf({ namespace: 'skyhook' })
const put = async (name: string, kind: 'slot' | 'recovery' = 'slot'): Promise<unknown> =>
  await admin.json('POST', path, {
    body: { metadata: { name, labels: slotLabels(scope, kind, 'other') }, spec: { holderIdentity: 'other' } },
  })
const remove = async (name: string): Promise<unknown> => await admin.json('DELETE', `${path}/${name}`)
const batched = (): SkyhookView => ({
  metadata: { ...skyhook, resourceVersion: '1' },
  spec: { deploymentPolicy: 'careful' },
  budget: {},
  stale: false,
  policy: {
    state: 'found',
    uid: 'policy',
    generation: 1,
    spec: { default: { budget: { count: 100 }, strategy: { exponential: {} } } },
  },
})
/** `batchSize`: of the open batch, the first one. */
async function count(matched: number, waiters: number, batchSize?: number): Promise<void> {
  const batch =
    batchSize === undefined ? undefined : { ...firstBatch(readStrategy({}), 1), size: batchSize, notWaiting: 0 }
  const ledger: Ledger = {
    v: 1,
    skyhookUID: skyhook.uid,
    generation: 1,
    applied: appliedHash(view.spec),
    selectorHash: selectorHash(undefined),
    agents: matched,
    waiters,
    countedAt: '2026-11-20T14:00:00Z',
    ...(batch && { policy: { uid: 'policy', generation: 1 } }),
    compartments: batch
      ? { __default__: { matched, completed: 0, waiters, batch } }
      : { '': { matched, completed: 0 } },
  }
  const name = ledgerName(skyhook)
  const found = server.object('leases', 'skyhook', name)
  const metadata = { name, labels: ledgerLabels(skyhook), annotations: { [ledgerAnnotation]: JSON.stringify(ledger) } }
  if (found === undefined) await admin.json('POST', path, { body: { metadata } })
  else await admin.json('PUT', `${path}/${name}`, { body: { ...found, metadata: { ...found.metadata, ...metadata } } })
}
/** A request finds no free slot. */
const deny = async (line: SlotLine, reason = 'full'): Promise<number> => {
  line.requestBegins(view)
  const listing = await listScope(leases, scope)
  return line.afterDenial(view, { outcome: 'waiting', reason, listing }).retryInMs
}
/** The first request in a large fleet: the node is asked again when the ledger is there. */
async function ask(line: SlotLine, isPrepared = true): Promise<Pause | undefined> {
  const first = await line.beforeRequest(view, isPrepared)
  await clock.advance(100)
  if (turns.length === 0) return first
  turns.length = 0
  const second = line.beforeRequest(view, isPrepared)
  await clock.advance(1_000)
  return await second
}
/** Requests of the agent since the last call, as `watch s-….slot-0`. */
function requests(): string[] {
  const made = server.audit.filter(({ client }) => client === 'agent').map(({ verb, name }) => `${verb} ${name}`.trim())
  server.audit.length = 0
  return made
}

describe('a node whose turn is near', () => {
  test('a denied node follows one held slot by name, without another LIST', async () => {
    const line = lineOf({ agents: 3 })
    await put(slot0)
    expect(await deny(line)).toBe(37_500)
    await clock.advance(20_000)
    expect(requests()).toEqual(['list', 'watch'])
    expect(server.openWatches()).toBe(1)
    await put('of-another-skyhook')
    await clock.advance(20_000)
    expect(turns).toEqual([])
  })

  test('a freed slot is asked for after a share of the spread', async () => {
    const line = lineOf({ agents: 3 })
    await put(slot0)
    await deny(line)
    await clock.advance(1_000)
    await remove(slot0)
    await clock.advance(1_000)
    expect(turns).toEqual([1_037.5]) // 25 ms for each of three, the half
    expect(line.preferredIndex(view)).toBe(0)
  })

  test('a slot that another node takes within the spread is not asked for', async () => {
    const line = lineOf({ agents: 3 })
    await put(slot0)
    await deny(line)
    await clock.advance(10)
    await remove(slot0)
    await clock.advance(5)
    await put(slot0)
    await clock.advance(30_000)
    expect(turns).toEqual([])
    await remove(slot0)
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  })

  test.each([
    ['soon there', 10, 1],
    ['late', 10_000, 2],
  ])(
    'a slot that is freed while a LIST from before is under way is asked for once more after its answer, which is %s',
    async (_, answeredAfterMs, expected) => {
      const line = lineOf({ agents: 3 })
      await put(slot0)
      await deny(line)
      await clock.advance(1_000)
      line.requestBegins(view)
      const listing = await listScope(leases, scope)
      await remove(slot0)
      await clock.advance(answeredAfterMs)
      line.afterDenial(view, { outcome: 'waiting', reason: 'full', listing })
      await clock.advance(60_000)
      expect(turns).toHaveLength(expected)
    },
  )

  test('a request after a release that finds the slot taken again is not repeated', async () => {
    const line = lineOf({ agents: 3 })
    await put(slot0)
    await deny(line)
    await remove(slot0)
    await clock.advance(1_000)
    line.requestBegins(view)
    const listing = { ...(await listScope(leases, scope)), slots: [] }
    line.afterDenial(view, { outcome: 'waiting', reason: 'full', listing })
    await clock.advance(20_000)
    expect(turns).toHaveLength(1)
  })

  test('a node that was beaten follows the slot that it lost', async () => {
    const line = lineOf({ agents: 3 })
    const listing = await listScope(leases, scope)
    await put(slot0) // the other one was faster
    const lost = { outcome: 'lost', reason: 'x', lease: slot0, listing, othersFree: 0 } as const
    expect(line.afterDenial(view, lost)).toEqual({ message: 'the budget of 1 node is used up', retryInMs: 37_500 })
    await clock.advance(1_000)
    expect(turns).toEqual([])
    await remove(slot0)
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  })

  test('a node that was beaten no longer follows the slot whose release it has seen under another name', async () => {
    const line = lineOf({ agents: 3 })
    const recovery = nodeSlotName(scope, 'x')
    await put(recovery, 'recovery')
    await deny(line)
    await clock.advance(10)
    await remove(recovery)
    await clock.advance(1_000)
    line.requestBegins(view)
    const listing = await listScope(leases, scope)
    await put(slot0) // the other one was faster
    line.afterDenial(view, { outcome: 'lost', reason: 'x', lease: slot0, listing, othersFree: 0 })
    await clock.advance(1_000)
    turns = []
    await remove(slot0)
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  })

  test('a node that was beaten while others were free asks again, later each time', async () => {
    const line = lineOf({ agents: 3 })
    const listing = await listScope(leases, scope)
    const lost = { outcome: 'lost', reason: 'x', lease: slot0, listing, othersFree: 1 } as const
    expect([1, 2, 3].map(() => line.afterDenial(view, lost).retryInMs)).toEqual([150, 300, 600])
    expect(server.openWatches()).toBe(0)
  })

  test('a slot without an index takes room and is followed like others', async () => {
    const recovery = nodeSlotName(scope, 'x')
    const line = lineOf({ agents: 3 })
    await put(recovery, 'recovery')
    await deny(line)
    await clock.advance(10)
    await remove(recovery)
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
    expect(line.preferredIndex(view)).toBeUndefined()
  })

  test('a slot that is freed while the watch is broken is asked for', async () => {
    const line = lineOf({ agents: 3 })
    await put(slot0)
    await deny(line)
    await clock.advance(1_000)
    server.stop()
    await clock.advance(1_000)
    server.start({ hasEmptyCache: true })
    await remove(slot0)
    await clock.advance(60_000)
    expect(turns).toHaveLength(1)
  })

  test('a slot that is taken and freed again while the watch is broken is asked for once more', async () => {
    const line = lineOf({ agents: 3 })
    await put(slot0)
    await deny(line)
    await clock.advance(1_000)
    await remove(slot0)
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
    server.stop()
    server.start({ hasEmptyCache: true })
    await put(slot0)
    await deny(line)
    await remove(slot0)
    await clock.advance(5_000)
    expect(turns).toHaveLength(2)
  })

  test('a wait that is over closes its watch and its timer', async () => {
    const line = lineOf({ agents: 3 })
    await put(slot0)
    await deny(line)
    await clock.advance(10)
    await remove(slot0)
    await clock.advance(1)
    line.update(new Set())
    await clock.advance(60_000)
    expect([server.openWatches(), turns]).toEqual([0, []])
  })

  test('a wait goes on while the Skyhooks are not known', async () => {
    const line = lineOf({ agents: 3 })
    await put(slot0)
    await deny(line)
    await clock.advance(10)
    isListed = false
    line.update(new Set(['s']))
    await remove(slot0)
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  })

  test('a Skyhook that was created again is asked for at once, however long its predecessor was to wait', async () => {
    const line = lineOf({ agents: 3 })
    await put(slot0)
    await deny(line)
    await clock.advance(10)
    view = { ...view, metadata: { ...view.metadata, uid: 'another' } }
    line.update(new Set(['s']))
    expect(turns).toHaveLength(1)
    await clock.advance(10)
    expect(server.openWatches()).toBe(0)
  })

  test('looks at all slots do not become rare where a node watches one of several', async () => {
    const line = lineOf({ agents: 3 })
    view = budgeted({ count: 2 })
    await put(slot0)
    await put(indexedName(scope, 1))
    expect([await deny(line), await deny(line), await deny(line)]).toEqual([37_500, 37_500, 37_500])
    const joining = { outcome: 'waiting', reason: 'full', listing: await listScope(leases, scope) } as const
    expect(line.afterBootstrapDenial(view, joining).retryInMs).toBe(37_500)
  })

  test('a look that finds no free slot changes the slot that a node follows, a lost race does not', async () => {
    const line = lineOf({ agents: 3 })
    view = budgeted({ count: 2 })
    await put(slot0)
    const slot1 = indexedName(scope, 1)
    await put(slot1)
    await deny(line)
    await clock.advance(10)
    await deny(line) // half of the way through the held ones
    await clock.advance(10)
    expect(requests()).toEqual(['list', 'watch', 'list', 'watch'])
    expect([server.openWatches(), line.preferredIndex(view)]).toEqual([1, 1])
    await remove(slot1)
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
    await put(slot1)
    await deny(line)
    expect(requests()).toEqual(['list'])
  })

  test('looks at the only slot become rare while nothing is seen', async () => {
    const line = lineOf({ agents: 3 })
    await put(slot0)
    const looks: number[] = []
    for (let look = 0; look < 6; look++) looks.push(await deny(line))
    expect(looks).toEqual([37_500, 75_000, 150_000, 300_000, 375_000, 375_000])
  })
})

describe('a node of a small fleet', () => {
  const first = async (nodeUid: string): Promise<{ line: SlotLine; pause: Pause | undefined }> => {
    const line = lineOf({ agents: 10, nodeUid, isCounted: true })
    return { line, pause: await line.beforeRequest(view, true) }
  }

  test('the first request is not held up where the node comes first, or nobody has counted', async () => {
    expect((await first(early)).pause).toBeUndefined()
    expect(await lineOf({ agents: 10, nodeUid: late }).beforeRequest(view, true)).toBeUndefined()
    expect(requests()).toEqual([])
  })

  test('the first request is left out while those who come first hold their slots', async () => {
    const { line, pause } = await first(late)
    expect(pause).toEqual({ message: 'requesting a slot', retryInMs: 150 })
    await put(slot0)
    await clock.advance(100)
    expect(turns).toHaveLength(1)
    const held = await line.beforeRequest(view, true)
    expect(held?.message).toBe('the budget of 1 node is used up')
    expect(held?.retryInMs).toBeGreaterThanOrEqual(30_000)
    await clock.advance(10_000)
    expect([turns.length, requests()]).toEqual([1, ['watch']])
    await remove(slot0)
    await clock.advance(1_000)
    expect([turns.length, await line.beforeRequest(view, true)]).toEqual([2, undefined])
  })

  test('the first request follows soon where nobody comes first', async () => {
    const { line, pause } = await first(late)
    await clock.advance(pause?.retryInMs ?? 0)
    expect([await line.beforeRequest(view, true), requests()]).toEqual([undefined, ['watch']])
  })

  test('the first request follows at once where the slot was free again before the node could say that it is held', async () => {
    const { line } = await first(late)
    await put(slot0)
    await remove(slot0)
    await clock.advance(1_000)
    expect([turns.length > 0, await line.beforeRequest(view, true)]).toEqual([true, undefined])
  })
})

describe('budgets', () => {
  test('a raised budget is asked for at once, a lowered one is not', async () => {
    const line = lineOf({ agents: 3 })
    view = budgeted({ count: 2 })
    await put(slot0)
    await put(indexedName(scope, 1))
    await deny(line)
    view = budgeted({ count: 1 })
    line.update(new Set(['s']))
    await clock.advance(10_000)
    expect(turns).toEqual([])
    view = budgeted({ count: 3 })
    line.update(new Set(['s']))
    await clock.advance(100)
    expect(turns).toHaveLength(1)
  })

  test.each([
    ['one of the first for two', early, 3, 1],
    ['one of the first for one', early, 2, 1],
    ['one of those behind them', uidAt(0.6), 3, 0],
  ])(
    'a node asks for new slots beside the one that it follows, though that one is passed on: %s',
    async (_, nodeUid, raisedTo, expected) => {
      const line = lineOf({ agents: 30, nodeUid })
      await put(slot0)
      await deny(line)
      view = budgeted({ count: raisedTo })
      line.update(new Set(['s']))
      await remove(slot0)
      await clock.advance(1)
      await put(slot0)
      await clock.advance(1_000)
      expect(turns).toHaveLength(expected)
    },
  )

  test('a node does not ask for the only place of a batch once another node has it', async () => {
    view = batched()
    const line = lineOf({ agents: 30 })
    const batchScope = skyhookScope(skyhook, '__default__', ['__default__'])
    const place = indexedName(batchScope, 0)
    await put(place)
    await count(30, 29, 1)
    line.requestBegins(view)
    const listing = await listScope(leases, batchScope)
    line.afterDenial(view, { outcome: 'waiting', reason: 'full', listing })
    await clock.advance(1_000)
    await count(30, 30, 1)
    await remove(place)
    await clock.advance(1)
    await put(place)
    await clock.advance(10_000)
    expect(turns).toEqual([])
  })

  test.each(['afterControlPlaneDenial', 'afterBootstrapDenial'] as const)(
    'a slot that the budget does not count is asked for when it is freed, whatever the budget is (%s)',
    async (after) => {
      view = budgeted({ percent: 50 }) // without a count
      const line = lineOf({ agents: 3 })
      await put(slot0)
      line[after](view, { outcome: 'waiting', reason: 'full', listing: await listScope(leases, scope) })
      await clock.advance(1_000)
      await remove(slot0)
      await clock.advance(1_000)
      expect(turns).toHaveLength(1)
    },
  )

  test.each(['afterControlPlaneDenial', 'afterBootstrapDenial'] as const)(
    'a slot beside the line that another node was faster to take is asked for when it is freed (%s)',
    async (after) => {
      view = budgeted({ count: 0 }, { count: 1 })
      const line = lineOf({ agents: 3 })
      const listing = await listScope(leases, scope)
      await put(slot0)
      line[after](view, { outcome: 'lost', reason: 'taken', lease: slot0, listing, othersFree: 0 })
      await clock.advance(10_000)
      expect(turns).toEqual([])
      await remove(slot0)
      await clock.advance(1_000)
      expect(turns).toHaveLength(1)
    },
  )

  test('a joining node that was beaten asks soon where other slots are free, and else says that none is', async () => {
    view = budgeted({ count: 0 }, { count: 2 })
    const line = lineOf({ agents: 3 })
    const listing = await listScope(leases, scope)
    const lost = { outcome: 'lost', reason: 'taken', lease: slot0, listing } as const
    const lostBeside = (othersFree: number): Pause => line.afterBootstrapDenial(view, { ...lost, othersFree })
    const message = 'other nodes ask at the same time'
    expect([lostBeside(1), lostBeside(1)]).toEqual([
      { message, retryInMs: 150 },
      { message, retryInMs: 300 },
    ])
    expect(lostBeside(0).message).toBe('the budget of 2 joining nodes is used up')
  })

  test.each([
    ['raised', budgeted({ count: 0 }, { count: 1 }), 1],
    ['left to the interruptionBudget', budgeted({ count: 1 }), 1],
    ['lifted', budgeted({}), 1],
    ['left to a percentage without a count', budgeted({ percent: 50 }), 1],
    ['as before, beside a raised interruptionBudget', budgeted({ count: 9 }, { count: 0 }), 0],
  ])('a node that joins sees that its budget of 0 is %s', async (_, raised, asked) => {
    view = budgeted({ count: 0 }, { count: 0 })
    const line = lineOf({ agents: 3 })
    line.afterBootstrapDenial(view, { outcome: 'waiting', reason: 'the budget for joining nodes is 0' })
    await clock.advance(1_000)
    view = raised
    line.update(new Set(['s']))
    await clock.advance(1_000)
    expect(turns).toHaveLength(asked)
  })

  test('a budget of 0 that becomes a percentage without a count is asked for soon', async () => {
    view = budgeted({ count: 0 })
    const line = lineOf({ agents: 3 })
    line.afterDenial(view, { outcome: 'waiting', reason: 'the budget is 0' })
    view = budgeted({ percent: 50 })
    line.update(new Set(['s']))
    await clock.advance(5_000)
    expect(turns).toHaveLength(1)
  })

  test('a budget of 0 costs no request, and is asked for when it is raised', async () => {
    const line = lineOf({ agents: 3 })
    view = budgeted({ count: 0 })
    expect(await line.beforeRequest(view, true)).toBeUndefined()
    line.afterDenial(view, { outcome: 'waiting', reason: 'the budget is 0' })
    await clock.advance(60_000)
    expect(requests()).toEqual([])
    view = budgeted({ count: 1 })
    line.update(new Set(['s']))
    await clock.advance(100)
    expect(turns).toHaveLength(1)
  })

  test('a budget that is lifted is asked for at once', async () => {
    const line = lineOf({ agents: 3 })
    await put(slot0)
    await deny(line)
    view = budgeted({})
    line.update(new Set(['s']))
    await clock.advance(0)
    expect(turns).toHaveLength(1)
  })

  test('a spec that is not read yet changes nothing', async () => {
    const line = lineOf({ agents: 3 })
    await put(slot0)
    await deny(line)
    view = { ...budgeted({ count: 3 }), stale: true }
    line.update(new Set(['s']))
    await clock.advance(1_000)
    expect(turns).toEqual([])
  })

  test('a percentage without a count is asked for as soon as there is one', async () => {
    const line = lineOf({ agents: 3 })
    view = budgeted({ percent: 50 })
    await deny(line)
    await clock.advance(10)
    await count(10, 10)
    await clock.advance(1_000)
    expect([turns.length, missingCounts]).toEqual([1, 0])
    expect(requests()).toEqual(['list', 'watch'])
  })

  test('a count that stays missing lets somebody look for the census', async () => {
    const line = lineOf({ agents: 3 })
    view = budgeted({ percent: 50 })
    await deny(line)
    await clock.advance(10_000)
    expect(missingCounts).toBe(1)
  })

  test('a percentage of more nodes is asked for at once', async () => {
    const line = lineOf({ agents: 3 })
    view = budgeted({ percent: 50 })
    await count(2, 2)
    await put(slot0)
    await deny(line)
    await clock.advance(10)
    await count(2, 1)
    await clock.advance(1_000)
    expect(turns).toEqual([])
    await count(6, 5)
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  })
})

describe('slots that come free while a request is under way', () => {
  /** Of a node of four that has looked often enough to ask seldom; `during` comes before the answer to its request. */
  async function askWhile(line: SlotLine, during: () => Promise<unknown>, inScope = scope): Promise<ScopeListing> {
    for (let look = 0; look < 6; look++) {
      line.requestBegins(view)
      line.afterDenial(view, { outcome: 'waiting', reason: 'full', listing: await listScope(leases, inScope) })
    }
    await clock.advance(1_000)
    line.requestBegins(view)
    const listing = await listScope(leases, inScope)
    await during()
    await clock.advance(2_000)
    turns = []
    return listing
  }

  test('a slot that another node takes and frees again is asked for once more by the node that was beaten', async () => {
    const line = lineOf({ agents: 4 })
    await put(slot0)
    const listing = await askWhile(line, async () => {
      await remove(slot0)
      await put(slot0)
      await clock.advance(5)
      await remove(slot0)
    })
    line.afterDenial(view, { outcome: 'lost', reason: 'x', lease: slot0, listing, othersFree: 0 })
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  })

  test('a slot that is freed beside the one that the node loses is asked for once more', async () => {
    view = budgeted({ count: 2 })
    const line = lineOf({ agents: 4 })
    const slot1 = indexedName(scope, 1)
    await put(slot0)
    const listing = await askWhile(line, async () => {
      await put(slot1) // the other one was faster
      await remove(slot0)
    })
    line.afterDenial(view, { outcome: 'lost', reason: 'x', lease: slot1, listing, othersFree: 0 })
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  })

  test('a slot that another node holds when the answer comes is not asked for', async () => {
    const line = lineOf({ agents: 4 })
    await put(slot0)
    const listing = await askWhile(line, async () => {
      await remove(slot0)
      await clock.advance(5)
      await put(slot0)
    })
    line.afterDenial(view, { outcome: 'lost', reason: 'x', lease: slot0, listing, othersFree: 0 })
    await clock.advance(20_000)
    expect(turns).toEqual([])
  })

  test.each<[string, InterruptionBudget, InterruptionBudget]>([
    ['raised', { count: 1 }, { count: 3 }],
    ['lifted', { count: 1 }, {}],
    ['raised from 0', { count: 0 }, { count: 1 }],
  ])('a budget that is %s is asked for after the answer', async (_, before, after) => {
    view = budgeted(before)
    const line = lineOf({ agents: 4 })
    if (before.count !== 0) await put(slot0)
    const asked = view
    const listing = await askWhile(line, () => {
      view = budgeted(after)
      return Promise.resolve(line.update(new Set(['s'])))
    })
    line.afterDenial(asked, { outcome: 'waiting', reason: 'full', ...(before.count !== 0 && { listing }) })
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  })

  test('a raised budget is asked for by a node that was beaten, and for slots beside the line', async () => {
    view = budgeted({ count: 0 }, { count: 1 })
    const line = lineOf({ agents: 4 })
    await put(slot0)
    line.afterBootstrapDenial(view, { outcome: 'waiting', reason: 'full', listing: await listScope(leases, scope) })
    for (const answer of ['waiting', 'lost'] as const) {
      const asked = view
      line.requestBegins(asked)
      const listing = await listScope(leases, scope)
      view = budgeted({ count: 0 }, { count: (asked.spec.bootstrap?.count ?? 0) + 1 })
      line.update(new Set(['s']))
      await clock.advance(1_000)
      turns = []
      line.afterBootstrapDenial(
        asked,
        answer === 'lost'
          ? { outcome: answer, reason: 'x', lease: slot0, listing, othersFree: 0 }
          : { outcome: answer, reason: 'full', listing },
      )
      await clock.advance(1_000)
      expect(turns).toHaveLength(1)
    }
  })

  test.each(['waiting', 'lost'] as const)(
    'a batch that grows is asked for after an answer that shows the one before (%s)',
    async (outcome) => {
      view = batched()
      const line = lineOf({ agents: 4 })
      await count(4, 3, 1)
      const batchScope = skyhookScope(skyhook, '__default__', ['__default__'])
      await put(indexedName(batchScope, 0))
      const listing = await askWhile(line, () => count(4, 3, 3), batchScope)
      const lost = { outcome: 'lost', reason: 'x', lease: indexedName(batchScope, 0), listing, othersFree: 0 } as const
      line.afterDenial(view, outcome === 'lost' ? lost : { outcome, reason: 'full', listing })
      await clock.advance(1_000)
      expect(turns).toHaveLength(1)
    },
  )

  test('the ledger of an answer does not replace one that was seen after the request began', async () => {
    view = budgeted({ percent: 50 })
    const line = lineOf({ agents: 4 })
    await count(6, 5)
    await put(slot0)
    const listing = await askWhile(line, () => count(2, 1))
    line.afterDenial(view, { outcome: 'waiting', reason: 'full', listing })
    await clock.advance(1_000)
    expect(turns).toEqual([])
    await count(6, 5)
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  })
})

describe('a node whose turn is far', () => {
  test('the first in a large fleet asks, the others see the ledger once and sleep', async () => {
    await count(1_000, 1_000)
    expect(await ask(lineOf({ agents: 1_000 }))).toBeUndefined()
    stopping.abort()
    requests()
    const line = lineOf({ agents: 1_000, nodeUid: late })
    expect(await ask(line)).toMatchObject({ message: 'the budget of 1 node is used up' })
    await clock.advance(30_000)
    expect([requests(), server.openWatches()]).toEqual([['watch'], 0])
  })

  test('a node that is near and not prepared makes ready before it asks', async () => {
    await count(1_000, 1_000)
    const line = lineOf({ agents: 1_000 })
    expect([...line.distant()]).toEqual(['s']) // nothing was read that says otherwise
    expect(await ask(line, false)).toEqual({ message: 'requesting a slot', retryInMs: 0 })
    expect([...line.distant()]).toEqual([])
    expect(await line.beforeRequest(view, true)).toBeUndefined()
    expect(requests()).toEqual(['watch'])
  })

  test('nodes wait for the count before they send a request, and ask all the same if it stays missing', async () => {
    view = budgeted({ percent: 10 })
    const line = lineOf({ agents: 1_000, nodeUid: late })
    const pause = await line.beforeRequest(view, false)
    expect(pause?.message).toBe('budget unknown: the census has not counted this Skyhook yet')
    expect(pause?.retryInMs).toBeGreaterThan(30_000)
    await clock.advance(10_000)
    expect([requests(), turns, missingCounts, ...line.distant()]).toEqual([['watch'], [], 1, 's'])
    expect(await line.beforeRequest(view, false)).toBeUndefined()
  })

  test('while the count is of earlier work, all nodes are expected to wait', async () => {
    await count(1_000, 3)
    view = { ...view, spec: { ...view.spec, packages: { a: { version: '2.0.0', image: 'a' } } } }
    const line = lineOf({ agents: 1_000, nodeUid: late })
    expect(await ask(line)).toMatchObject({ message: 'the budget of 1 node is used up' })
  })

  test('a sleeping node hears that its turn is near before it asks', async () => {
    await count(1_000, 1_000)
    const line = lineOf({ agents: 1_000, nodeUid: late })
    await ask(line, false)
    await clock.advance(10_000)
    expect([[...line.distant()], nears]).toEqual([['s'], []])
    await put(slot0)
    await count(1_000, 110)
    for (let seconds = 0; seconds < 600 && nears.length === 0; seconds++) await clock.advance(1_000)
    expect([[...line.distant()], nears.length, turns]).toEqual([[], 1, []])
  })

  test.each<[string, number, InterruptionBudget, readonly string[]]>([
    ['of a small cluster is near', 18, { count: 1 }, []],
    ['of a large cluster may be far', 100, { count: 1 }, ['s']],
    ['of a large cluster with a large budget is near', 100, { count: 50 }, []],
    ['is near where there is no budget', 1_000, {}, []],
    ['may be far from the turn that a budget of 0 never brings', 1_000, { count: 0 }, ['s']],
    ['may be far while nobody has counted for a percentage', 1_000, { percent: 50 }, ['s']],
  ])('a node %s', (_, agents, budget, distant) => {
    view = budgeted(budget)
    expect([...lineOf({ agents }).distant()]).toEqual(distant)
  })

  test('a node sleeps until its turn is near, then follows the slot of its place', async () => {
    view = budgeted({ count: 10 })
    for (let index = 0; index < 10; index++) await put(indexedName(scope, index))
    await count(1_000, 1_000)
    const line = lineOf({ agents: 1_000, nodeUid: late })
    await ask(line)
    for (let waiters = 1_000; waiters > 150; waiters -= 10) {
      await count(1_000, waiters)
      await clock.advance(1_000)
    }
    expect([server.openWatches(), turns]).toEqual([1, []])
    const reads = requests().filter((one) => one.includes('ledger'))
    expect(reads.length).toBeLessThan(10)
    for (let index = 0; index < 10; index++) await remove(indexedName(scope, index))
    await clock.advance(5_000)
    expect(turns).toHaveLength(1)
  })

  test.each([
    ['the open batch', 0.12, 0],
    ['the next batch', 0.18, 0],
    ['a later batch', 0.25, 1],
  ])('a node of %s: at %d of a thousand, 64 of whom are out', async (_, place, distant) => {
    view = batched()
    await count(1_000, 936, 64)
    const line = lineOf({ agents: 1_000, nodeUid: uidAt(place + 0.064) })
    await ask(line)
    expect(line.distant().size).toBe(distant)
  })

  test('a node asks when the count says that the open batch has places left', async () => {
    const [all, taken, left] = [1_000, 936, 940]
    view = batched()
    await count(1_000, all, 64)
    const line = lineOf({ agents: 1_000, nodeUid: uidAt(0.064) })
    await ask(line)
    await put(indexedName(skyhookScope(skyhook, '__default__', ['__default__']), 0))
    await count(1_000, taken, 64)
    await deny(line)
    turns.length = 0
    await clock.advance(10_000)
    expect(turns).toEqual([])
    await count(1_000, left, 64)
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  })

  test('a node that waits for the slot of the control plane does not ask for places of the batch', async () => {
    view = batched()
    await count(1_000, 936, 64)
    const line = lineOf({ agents: 1_000, nodeUid: uidAt(0.064) })
    await put(indexedName(skyhookScope(skyhook, '__default__', ['__default__']), 0))
    await deny(line)
    const listing = await listScope(leases, scope)
    line.afterControlPlaneDenial(view, { outcome: 'waiting', reason: 'full', listing })
    turns.length = 0
    await count(1_000, 940, 64)
    await clock.advance(1_000)
    expect(turns).toEqual([])
  })

  test('a node asks at once when its turn has come and its slot is free', async () => {
    await count(1_000, 1_000)
    const line = lineOf({ agents: 1_000, nodeUid: late })
    await ask(line)
    await count(1_000, 5)
    await clock.advance(600_000)
    expect((turns[0] ?? Infinity) - (nears[0] ?? 0)).toBeLessThan(1_000)
  })

  test('a far node without a ledger asks after a second or two', async () => {
    const line = lineOf({ agents: 1_000, nodeUid: late })
    expect(await line.beforeRequest(view, true)).toEqual({ message: 'requesting a slot', retryInMs: 1_500 })
    expect(await line.beforeRequest(view, true)).toBeUndefined()
  })

  test('a far node looks for itself, and for a census, when the ledger stands still', async () => {
    await count(1_000, 1_000)
    const line = lineOf({ agents: 1_000, nodeUid: late })
    await ask(line)
    await clock.advance(1_000_000)
    expect(missingCounts).toBeGreaterThan(0)
    expect(turns.length).toBeGreaterThan(0)
  })

  test('a raised budget brings a far node near', async () => {
    await count(1_000, 1_000)
    const line = lineOf({ agents: 1_000, nodeUid: late })
    await ask(line)
    view = budgeted({ count: 600 })
    line.update(new Set(['s']))
    expect([nears.length, line.distant().size]).toEqual([1, 0])
    await clock.advance(1_000)
    expect(turns).toHaveLength(1)
  })

  test('a ledger that cannot be read is read again', async () => {
    await count(1_000, 1_000)
    const line = lineOf({ agents: 1_000, nodeUid: late })
    await ask(line)
    await count(1_000, 1)
    server.stop()
    await clock.advance(500_000)
    server.start()
    await clock.advance(1_000_000)
    expect(turns.length).toBeGreaterThan(0)
  })
})
