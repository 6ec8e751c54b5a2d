/**
 * One node in the lines for the slots of one Skyhook, on a simulated API server. Time passes, other nodes act and the
 * census counts only when the test says so.
 */
import { type Ledger, ledgerAnnotation, selectorHash } from '../../../src/lease/ledger.ts'
import {
  bootstrapScope,
  controlPlaneScope,
  indexedName,
  indexLabels,
  ledgerLabels,
  ledgerName,
  nodeSlotName,
  parseIndexedName,
  type Scope,
  skyhookScope,
  slotLabels,
} from '../../../src/lease/names.ts'
import { firstBatch } from '../../../src/lease/policy/batch.ts'
import { readStrategy } from '../../../src/lease/policy/strategy.ts'
import { type Leases, leasesPathOf, listScope, type ScopeListing } from '../../../src/lease/slot-reads.ts'
import { hashFraction } from '../../../src/lease/waiting.ts'
import { createSlotLine, type Denied } from '../../../src/daemon/slots/slot-line.ts'
import type { Denial } from '../../../src/daemon/slots/denials.ts'
import { createFleetSize } from '../../../src/daemon/state/fleet-size.ts'
import { readBudget } from '../../../src/schemas/budget.ts'
import type { InterruptionBudget } from '../../../src/schemas/skyhook.ts'
import { appliedHash } from '../../../src/stages/model/package-inputs.ts'
import { known, type SkyhookView, unknown } from '../../../src/stages/model/snapshot.ts'
import { createClient } from '../api-server/client.ts'
import { createSimulatedApiServer } from '../api-server/server.ts'
import { createSeededRandom, createVirtualClock } from '../virtual-clock.ts'

const skyhook = { name: 's', uid: '3f2504e0-4f89-11d3-9a0c-0305e82c3301' }
const scope = skyhookScope(skyhook)
export const slotAt = (index: number): string => indexedName(scope, index)
export const [slot0, slot1] = [slotAt(0), slotAt(1)]
/** It has no index. */
export const recoverySlot = nodeSlotName(scope, 'other')
/** Of the nodes that no compartment of the policy selects. */
export const batchScope = skyhookScope(skyhook, '__default__', ['__default__'])
export const batchSlotAt = (index: number): string => indexedName(batchScope, index)
export const batchSlot = batchSlotAt(0)
export const controlPlaneSlot = indexedName(controlPlaneScope, 0)
export const joiningSlot = indexedName(bootstrapScope(skyhook), 0)

const isOfScope = (one: Scope, slot: string): boolean =>
  slot === indexedName(one, parseIndexedName(slot)?.index ?? Infinity)

/** The uid of a node whose place is about there: 0 comes first, 1 comes last. */
export const uidAt = (fraction: number): string =>
  Array.from({ length: 2_000 }, (_, index) => `uid-${index}`).reduce((best, uid) =>
    Math.abs(hashFraction(uid) - fraction) < Math.abs(hashFraction(best) - fraction) ? uid : best,
  )
export const [early, late] = [uidAt(0.001), uidAt(0.9)]

export const budgeted = (
  interruptionBudget: InterruptionBudget,
  bootstrap?: { readonly count: number },
): SkyhookView => ({
  metadata: { ...skyhook, resourceVersion: '1' },
  spec: { interruptionBudget, ...(bootstrap && { bootstrap }) },
  budget: readBudget(interruptionBudget),
  stale: false,
})

/** Under a DeploymentPolicy whose batches grow. */
export const batched = (): SkyhookView => ({
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

/** The answer to a request that found no free slot in its LIST. */
export const full = (listing?: ScopeListing): Denied => ({
  outcome: 'waiting',
  reason: 'full',
  ...(listing && { listing }),
})

/** The answer to a request whose slot another node was faster to create. */
export const lost = (lease: string, listing: ScopeListing): Denied => ({
  outcome: 'lost',
  reason: 'taken',
  lease,
  listing,
})

type SceneOptions = {
  readonly agents: number
  /** By default the node is one of the first. */
  readonly nodeUid?: string
  /** What the node knows of the Skyhook at first; by default a budget of one node. */
  readonly view?: SkyhookView
  /** What the node draws each time; by default the middle. */
  readonly drawn?: number
}

export async function createSlotLineScene(options: SceneOptions) {
  const clock = createVirtualClock(undefined, { settleTurns: 0 })
  const random = createSeededRandom(1)
  const server = createSimulatedApiServer({ clock, random })
  const admin = createClient(server, { name: 'admin', clock, random })
  await admin.json('POST', '/api/v1/namespaces', { body: { metadata: { name: 'skyhook' } } })
  const leases: Leases = {
    transport: createClient(server, { name: 'agent', clock, random }),
    namespace: 'skyhook',
    clock,
  }
  const path = leasesPathOf(leases)
  const fleet = createFleetSize(options.agents)
  let view = options.view ?? budgeted({ count: 1 })
  let isListed = true
  // when the line said so, in ms
  const turns: number[] = []
  const nears: number[] = []
  const missingCounts: number[] = []
  /** Why no request is worthwhile, each time that it said so. */
  const reasons: string[] = []

  const line = createSlotLine({
    leases,
    nodeUid: () => options.nodeUid ?? early,
    skyhooks: () => (isListed ? known([view]) : unknown('not listed')),
    fleet,
    random: { number: () => options.drawn ?? 0.5, hex: () => '' },
    onTurn() {
      const why = line.beforeRequest(view, true)
      if (why === undefined) turns.push(clock.monotonicMs())
      else reasons.push(why.message)
    },
    onNear: () => void nears.push(clock.monotonicMs()),
    onCountMissing: () => void missingCounts.push(clock.monotonicMs()),
    signal: new AbortController().signal,
  })

  /** From now on the node knows the Skyhook like this, and waits for its slot. */
  function edit(edited: SkyhookView): void {
    view = edited
    line.update(new Set(['s']))
  }

  /** Another node creates the slot. */
  async function take(slot: string, kind: 'slot' | 'recovery' = 'slot'): Promise<void> {
    const ofName = [batchScope, controlPlaneScope, bootstrapScope(skyhook)].find((one) => isOfScope(one, slot))
    const labels = {
      ...slotLabels(ofName ?? scope, ofName?.kind ?? kind, 'other'),
      ...indexLabels(parseIndexedName(slot)?.index ?? Infinity),
    }
    const metadata = { name: slot, labels }
    await admin.json('POST', path, { body: { metadata, spec: { holderIdentity: 'other' } } })
  }
  /** The other node deletes it. */
  const release = async (slot: string): Promise<void> => void (await admin.json('DELETE', `${path}/${slot}`))

  /**
   * The census writes the ledger: the nodes that wait are those with the last places. `batchSize`: of the open batch,
   * the first one.
   */
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
    const annotations = { [ledgerAnnotation]: JSON.stringify(ledger) }
    const metadata = { ...found?.metadata, name, labels: ledgerLabels(skyhook), annotations }
    if (found === undefined) await admin.json('POST', path, { body: { metadata } })
    else await admin.json('PUT', `${path}/${name}`, { body: { ...found, metadata } })
  }

  const list = async (inScope = scope): Promise<ScopeListing> => await listScope(leases, inScope)

  /** Returns the LIST that the request goes by. Its answer is for the test to give. */
  async function beginRequest(inScope = scope): Promise<ScopeListing> {
    return await list(inScope)
  }

  /** A request finds no free slot. Returns when to ask again at the latest, in ms. */
  async function deny(inScope = scope): Promise<number> {
    const listing = await beginRequest(inScope)
    return line.afterDenial(view, full(listing), 'slot').retryInMs
  }

  const beforeRequest = (isPrepared = true): Denial | undefined => line.beforeRequest(view, isPrepared)

  /** Before the first request in a large fleet: the node is asked again when it has seen the ledger. */
  async function askByCount(isPrepared = true): Promise<Denial | undefined> {
    beforeRequest(isPrepared)
    await clock.advance(2_000)
    turns.length = 0
    return beforeRequest(isPrepared)
  }

  /** Requests of the node since the last call, as `watch s-….slot-0`. */
  function requests(): string[] {
    const own = server.audit.filter(({ client }) => client === 'agent')
    server.audit.length = 0
    return own.map(({ verb, name }) => `${verb} ${name}`.trim())
  }

  return {
    clock,
    server,
    line,
    turns,
    reasons,
    nears,
    missingCounts,
    /** The Skyhook as the node knows it now. */
    view: () => view,
    edit,
    /** From now on the Skyhooks are not known, as before they are listed. */
    forgetSkyhooks: () => void (isListed = false),
    take,
    release,
    count,
    list,
    beginRequest,
    deny,
    beforeRequest,
    askByCount,
    requests,
  }
}

type SlotLineScene = Awaited<ReturnType<typeof createSlotLineScene>>

/** One of three nodes was denied the only slot, which another node holds, and waits for it. */
export async function createDeniedScene(): Promise<SlotLineScene> {
  const scene = await createSlotLineScene({ agents: 3 })
  await scene.take(slot0)
  await scene.deny()
  return scene
}

/** A thousand nodes wait for the only slot, and this one sleeps: about 900 come first. */
export async function createSleepingScene({ drawn = 0.5 } = {}): Promise<SlotLineScene> {
  const scene = await createSlotLineScene({ agents: 1_000, nodeUid: late, drawn })
  await scene.count(1_000, 1_000)
  await scene.askByCount()
  return scene
}
