/**
 * Many nodes that want one slot each of one Skyhook: the agent's own code for slots on a simulated API server and
 * virtual time. Hosts and steps are left out: a node that has its slot works for a while and gives it back.
 */
import { planLedger } from '../../../src/census/ledger/ledger-plan.ts'
import { followOwnSlots } from '../../../src/daemon/slots/own-slots.ts'
import { createSlotLine } from '../../../src/daemon/slots/slot-line.ts'
import { createSlotManager } from '../../../src/daemon/slots/slot-manager.ts'
import { createFleetSize, readDelayMs, waitReportDelayMs } from '../../../src/daemon/state/fleet-size.ts'
import { createLog } from '../../../src/daemon/telemetry/log.ts'
import { readLedger, writeLedger } from '../../../src/lease/ledger.ts'
import { hashFraction } from '../../../src/lease/waiting.ts'
import { ledgerName } from '../../../src/lease/names.ts'
import type { Lease } from '../../../src/lease/slot.ts'
import { skyhooksPath, skyhookTypeMeta } from '../../../src/schemas/api.ts'
import { sleep } from '../../../src/schemas/clock.ts'
import { emptyJournal } from '../../../src/schemas/journal.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { InterruptionBudget, Skyhook, SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { appliedHash } from '../../../src/stages/model/package-inputs.ts'
import { settleMs } from '../../../src/stages/model/plan.ts'
import { known, type OwnSlot, type SkyhookView } from '../../../src/stages/model/snapshot.ts'
import { createSeededRandom, createVirtualClock } from '../../kit/virtual-clock.ts'
import { type ClientOptions, createClient } from '../../kit/api-server/client.ts'
import { createSimulatedApiServer } from '../../kit/api-server/server.ts'
import { readBudget } from '../../../src/schemas/budget.ts'

export type WaitingNodesOptions = {
  readonly nodes: number
  readonly budget: InterruptionBudget
  /** How long a node works under its slot. */
  readonly workMs: (random: () => number) => number
  readonly seed: number
  /** From a request to its answer, and half of it for an event of a watch. */
  readonly latencyMs?: number
  /** How long a node fetches layers; 0 if absent. */
  readonly fetchMs?: number
  /** So many of those that come first wait and never ask; the census does not know why. */
  readonly unable?: number
  /** All of them join the cluster, and this is the budget for that. */
  readonly joining?: number
  /** How late the census hears what nodes do: they write their Nodes late, and its watch is read late. */
  readonly countLagMs?: number
  /** No census counts. */
  readonly isWithoutCensus?: boolean
}

/** From the network alone, where nothing else is said: half of it there, half back. */
export const usualLatencyMs = 10

/** Starts all nodes at once, as after the creation of their Skyhook. */
export async function startWaitingNodes(options: WaitingNodesOptions) {
  const { nodes, budget, workMs, seed, latencyMs = usualLatencyMs, joining, countLagMs = 3_000 } = options
  const clock = createVirtualClock(undefined, { settleTurns: 0 })
  const random = createSeededRandom(seed)
  const server = createSimulatedApiServer({ clock, random, historyLength: 20_000 })
  server.faults.rules.push({ name: 'network', fault: { kind: 'slow-watch', byMs: latencyMs / 2 } })
  const connect = (name: string, more: Partial<ClientOptions> = {}) =>
    createClient(server, { name, clock, random, ...more })
  const admin = connect('admin')
  await admin.json('POST', '/api/v1/namespaces', { body: { metadata: { name: 'skyhook' } } })
  const created = await admin.json<Skyhook>('POST', skyhooksPath, {
    body: {
      ...skyhookTypeMeta,
      metadata: { name: 's' },
      spec: { interruptionBudget: budget, ...bootstrapOf(joining), packages: {} },
    },
  })
  let view: SkyhookView = { metadata: created.metadata, spec: created.spec, budget: readBudget(budget), stale: false }
  const stopping = new AbortController()
  const { signal } = stopping
  let [waiting, complete, waitingWrites] = [0, 0, 0]
  let [fetches, fetchesBeforeFirst] = [0, 0]
  let watchEvents = 0
  const members: { readonly update: () => void; readonly uid: string }[] = []

  async function join(name: string): Promise<void> {
    const node = await admin.json<KubernetesNode>('POST', '/api/v1/nodes', {
      body: {
        metadata: { name },
        ...(joining !== undefined && { spec: { taints: [joiningTaint] } }),
      },
    })
    const client = connect(name, { latencyMs: () => latencyMs })
    const transport: typeof client = {
      ...client,
      async stream(path, request) {
        const stream = await client.stream(path, request)
        return counted(stream, () => void watchEvents++)
      },
    }
    const leases = { transport, namespace: 'skyhook', clock }
    let state: 'wanting' | 'working' | 'complete' = 'wanting'
    let layers: 'missing' | 'coming' | 'here' = 'missing'
    let isBusy = false
    let shown = ''
    let cancelTimer = (): void => undefined
    const fleet = createFleetSize(nodes)
    fleet.observe(nodes)
    const line = createSlotLine({
      leases,
      nodeUid: () => node.metadata.uid,
      skyhooks: () => known([view]),
      fleet,
      random,
      onTurn(skyhook) {
        if (slots.requestNow(skyhook)) pass()
      },
      onNear: () => pass(),
      onCountMissing: () => undefined,
      signal,
    })
    const sources = {
      leases,
      node: () => node,
      bootId: () => 'boot',
      skyhooks: () => known([view]),
      journal: () => emptyJournal(node.metadata.uid),
      clock,
      random,
      signal,
    }
    const ownSlots = followOwnSlots({
      ...sources,
      nodeName: name,
      wake: () => undefined,
      onFact: () => undefined,
    })
    const slots = createSlotManager({
      defaultBudget: {},
      ...sources,
      ownSlots,
      line,
      runtimeRequiredTaint: joiningTaint,
      log: createLog('silent', {}),
      uncountedSince: () => undefined,
      onReleased: () => undefined,
      onAcquired: () => undefined,
    })
    await ownSlots.untilKnown()

    /** A Node says what it waits for once it has lasted. */
    const publish = (text: string): void => {
      shown = text
      clock.startTimer(settleMs({ spreadMs: waitReportDelayMs(nodes, name) }), () => {
        if (shown !== text || state !== 'wanting') return
        shown = `published ${text}`
        waitingWrites++
      })
    }

    const heldSlot = (): OwnSlot | undefined => {
      const held = ownSlots.held()
      return held.known ? held.value[0] : undefined
    }

    const fetchLayers = async (): Promise<void> => {
      layers = 'coming'
      fetches++
      await sleep(clock, options.fetchMs ?? 0)
      layers = 'here'
    }

    const work = async (): Promise<void> => {
      const granted = heldSlot()
      if (granted === undefined) return
      if (layers === 'missing') await fetchLayers()
      await slots.confirm(granted, view)
      if (heldSlot()?.ownership !== 'confirmed') return
      state = 'working'
      waiting--
      const totalMs = workMs(() => random.number())
      for (const phase of ['draining', 'working', 'interrupting'] as const) {
        await sleep(clock, totalMs / 3)
        await slots.renew(granted, phase)
      }
      await slots.release(granted)
      state = 'complete'
      if (complete === 0) fetchesBeforeFirst = fetches
      complete++
    }

    const pass = (): void => {
      cancelTimer()
      slots.keepWaiting(new Set(state === 'wanting' ? ['s'] : []))
      if (isBusy || state !== 'wanting' || signal.aborted) return
      const denial = slots.denials().get('s')
      if (denial !== undefined && ![shown, shown.replace('published ', '')].includes(denial.message))
        publish(denial.message)
      // as the stages decide it (src/stages/skyhook/plan-skyhook.ts)
      if (layers === 'coming') return
      if (layers === 'missing' && !line.distant().has('s')) return void fetchLayers().then(pass)
      const inMs = (denial?.nextRequestAtMs ?? 0) - clock.wallMs()
      if (inMs > 0) {
        cancelTimer = clock.startTimer(inMs, pass)
        return
      }
      isBusy = true
      void slots
        .acquire(view, layers === 'here' ? 'working' : 'preparing', false, joining !== undefined)
        .then(work)
        .finally(() => {
          isBusy = false
          pass()
        })
    }
    members.push({ update: pass, uid: node.metadata.uid })
  }

  for (let index = 0; index < nodes; index++) void join(`node-${index}`)
  await clock.advance(3_000)
  waiting = nodes
  const inOrder = members.toSorted((a, b) => hashFraction(a.uid) - hashFraction(b.uid))
  const able = inOrder.slice(options.unable ?? 0)
  // as the agents read an edit
  for (const { update } of able) clock.startTimer(readDelayMs(nodes, random.number()), update)
  server.audit.length = 0
  watchEvents = 0
  const startedAtMs = clock.monotonicMs()

  let lastWriteMs: number | undefined
  let matchedMemory: Parameters<typeof planLedger>[0]['matched']
  let matched = nodes
  const past = [{ atMs: -Infinity, complete: 0, waiters: nodes }]
  /** What the nodes have written of themselves by now. */
  function published(): { readonly complete: number; readonly waiters: number } {
    const nowMs = clock.monotonicMs()
    past.push({ atMs: nowMs, complete, waiters: waiting })
    const { complete: done, waiters } = past.findLast(({ atMs }) => atMs <= nowMs - countLagMs) as (typeof past)[number]
    return { complete: done, waiters }
  }

  /** What the census does with its counts. */
  async function count(): Promise<void> {
    const { name, uid } = view.metadata
    const found = server.object('leases', 'skyhook', ledgerName({ name, uid })) as unknown as Lease | undefined
    const read = found === undefined ? undefined : readLedger(found)
    const plan = planLedger({
      skyhook: { metadata: view.metadata, spec: view.spec },
      counts: {
        nodes: Array.from({ length: matched }, () => undefined) as never,
        ...published(),
        applied: appliedHash(view.spec),
        isPaused: false,
        isDisabled: false,
        specProblem: undefined,
        compartments: [{ name: '', nodes: Array.from({ length: matched }, () => undefined) as never }],
        budget: view.budget,
        policy: undefined,
      },
      agents: nodes,
      currentLedger: read?.outcome === 'read' ? read.ledger : undefined,
      isKept: false,
      matched: matchedMemory,
      slotTimes: [],
      lastWriteMs,
      nowMs: clock.monotonicMs(),
      wallMs: clock.wallMs(),
    })
    matchedMemory = plan.matched
    if (plan.writeAtMs > clock.monotonicMs()) return
    lastWriteMs = clock.monotonicMs()
    await writeLedger({ transport: admin, namespace: 'skyhook', clock }, { skyhook: { name, uid }, found }, plan.ledger)
  }
  const counting = (): void => {
    if (signal.aborted) return
    void count()
    clock.startTimer(200, counting)
  }
  if (options.isWithoutCensus !== true) counting()

  const requests = (verb: string, resource = 'leases', isCollection = false): number =>
    server.audit.filter(
      (one) =>
        one.client.startsWith('node-') &&
        one.verb === verb &&
        one.resource === resource &&
        (!isCollection || one.name === ''),
    ).length

  return {
    clock,
    server,
    /** Held at this moment. */
    slots: () => server.objects('leases').filter(({ metadata }) => /\.(slot|node)-/.test(metadata.name)).length,
    /** Per node. */
    figures: () => ({
      lists: requests('list') / nodes,
      watches: requests('watch') / nodes,
      gets: requests('get') / nodes,
      creates: requests('create') / nodes,
      puts: requests('update') / nodes,
      watchEvents: watchEvents / nodes,
      /** Writes of the Node because of what it waits for. */
      waitingWrites: waitingWrites / nodes,
      /** Fetches of layers, of all nodes, until the first one had done its work. */
      fetchesBeforeFirst,
      seconds: (clock.monotonicMs() - startedAtMs) / 1_000,
      busiestSecondLists: busiestSecond(),
    }),
    /** Nodes that fetched layers. */
    fetches: () => fetches,
    complete: () => complete,
    /** Nodes without a slot under which they work, those aside that never ask. */
    waiting: () => waiting - (options.unable ?? 0),
    /** More Nodes than before register; they run no agent. */
    setMatched(next: number) {
      for (let index = matched; index < next; index++)
        void admin.json('POST', '/api/v1/nodes', { body: { metadata: { name: `silent-${index}` } } })
      matched = next
    },
    async editBudget(next: InterruptionBudget) {
      const patched = await admin.json<Skyhook>('PATCH', `${skyhooksPath}/s`, {
        contentType: 'application/merge-patch+json',
        body: { spec: { interruptionBudget: next } },
      })
      view = { metadata: patched.metadata, spec: patched.spec, budget: readBudget(next), stale: false }
      for (const { update } of members) update()
    },
    async untilComplete(withinMs: number) {
      for (;;) {
        if (complete >= able.length) return
        if (clock.monotonicMs() - startedAtMs > withinMs) throw new Error(`${complete} of ${nodes} are complete`)
        await clock.advance(1_000)
      }
    },
    stop: () => stopping.abort(new Error('over')),
  }

  function busiestSecond(): number {
    const bySecond = new Map<number, number>()
    for (const { verb, atMs } of server.audit)
      if (verb === 'list') bySecond.set(Math.floor(atMs / 1_000), (bySecond.get(Math.floor(atMs / 1_000)) ?? 0) + 1)
    return Math.max(0, ...bySecond.values())
  }
}

const joiningTaint = { key: 'skyhook.nvidia.com', effect: 'NoSchedule' } as const

const bootstrapOf = (count: number | undefined): Partial<SkyhookSpec> =>
  count === undefined ? {} : { bootstrap: { count } }

/** The same stream; each event on it is counted. */
function counted<T extends AsyncIterable<Uint8Array>>(stream: T, onEvent: () => void): T {
  const read = stream[Symbol.asyncIterator].bind(stream)
  stream[Symbol.asyncIterator] = async function* () {
    for await (const chunk of { [Symbol.asyncIterator]: read }) {
      for (const byte of chunk) if (byte === 10) onEvent()
      yield chunk
    }
  }
  return stream
}

/** From each release of a slot to the next CREATE, in ms, for a budget of 1. */
export function observeHandOvers(server: Awaited<ReturnType<typeof startWaitingNodes>>['server'], now: () => number) {
  const took: number[] = []
  let freedAtMs: number | undefined
  server.observe({
    committed({ type, version }) {
      if (!version.object.metadata.name.includes('.slot-')) return
      if (type === 'DELETED') freedAtMs = now()
      else if (type === 'ADDED' && freedAtMs !== undefined) {
        took.push(now() - freedAtMs)
        freedAtMs = undefined
      }
    },
  })
  return took
}

/**
 * The longest time from now on, in ms, for which fewer slots than the budget were held while nodes waited. The budget
 * is constant.
 */
export function observeIdleSlots(fleet: Awaited<ReturnType<typeof startWaitingNodes>>, budget: number): () => number {
  let longestMs = 0
  let idleSinceMs: number | undefined
  const look = (): void => {
    const nowMs = fleet.clock.monotonicMs()
    if (idleSinceMs !== undefined) longestMs = Math.max(longestMs, nowMs - idleSinceMs)
    const isIdle = fleet.waiting() > 0 && fleet.slots() < budget
    idleSinceMs = isIdle ? (idleSinceMs ?? nowMs) : undefined
  }
  fleet.server.observe({ committed: look })
  return () => {
    look()
    return longestMs
  }
}
