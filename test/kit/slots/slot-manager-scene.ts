/** Slot managers of several nodes on a simulated API server, each with its own slots and its own line. */
import { onTestFinished } from 'vitest'
import { followOwnSlots, type OwnSlots } from '../../../src/daemon/slots/own-slots.ts'
import { createSlotLine } from '../../../src/daemon/slots/slot-line.ts'
import { createSlotManager, type SlotManager } from '../../../src/daemon/slots/slot-manager.ts'
import { createFleetSize } from '../../../src/daemon/state/fleet-size.ts'
import { createLog } from '../../../src/daemon/telemetry/log.ts'
import type { Leases } from '../../../src/lease/slot-reads.ts'
import { skyhooksPath } from '../../../src/schemas/api.ts'
import { type Budget, budgetOf } from '../../../src/schemas/budget.ts'
import { emptyJournal } from '../../../src/schemas/journal.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../../src/schemas/skyhook.ts'
import { known, type OwnSlot, type SkyhookView } from '../../../src/stages/model/snapshot.ts'
import { leasesPath, sampleServer } from '../api-server/sample-server.ts'
import { createSeededRandom } from '../virtual-clock.ts'

export const runtimeRequiredTaint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' }

/** A node's manager with what it knows of its slots. */
export type TestedManager = SlotManager & Pick<OwnSlots, 'held' | 'untilKnown'>

export const nodeOf = (name: string, labels: Record<string, string> = {}): KubernetesNode => ({
  metadata: { name, uid: `${name}-uid`, resourceVersion: '1', labels },
})

/** The only slot of the node; throws where it holds none. */
export function heldBy(manager: TestedManager): OwnSlot {
  const held = manager.held()
  const [slot] = held.known ? held.value : []
  if (!slot) throw new Error('no slot is held')
  return slot
}

export const isHolding = (manager: TestedManager): boolean => {
  const held = manager.held()
  return held.known && held.value.length > 0
}

/**
 * The managers of n1 and n2 know their slots, of which there are none. Everything ends with the test.
 * `defaultBudget`: of Skyhooks that name none.
 */
export async function startSlotManagerScene({ defaultBudget = {} }: { readonly defaultBudget?: Budget } = {}) {
  const api = sampleServer()
  const { clock } = api
  const transport = api.connect()
  const stopping = new AbortController()
  const { signal } = stopping
  onTestFinished(() => stopping.abort())

  let views: readonly SkyhookView[] = []
  const nodes = new Map<string, KubernetesNode | undefined>()
  /** The wait for each granted slot, in seconds. */
  const acquired: number[] = []
  /** Phase and age in seconds of each released slot. */
  const released: string[] = []
  /** What the managers have logged. */
  const messages: string[] = []
  let wakes = 0
  let uncountedSince: string | undefined

  /** Of this node, as at the start of its agent: it does not know its slots yet. */
  function managerOf(name: string): TestedManager {
    const leases: Leases = { transport, namespace: 'default', clock }
    const sources = {
      leases,
      node: () => nodes.get(name),
      bootId: () => 'boot',
      skyhooks: () => known(views),
      journal: () => emptyJournal(`${name}-uid`),
      clock,
      random: createSeededRandom(1),
      signal,
    }
    const ownSlots = followOwnSlots({
      ...sources,
      nodeName: name,
      wake: () => void wakes++,
      onFact: () => undefined,
    })
    const line = createSlotLine({
      ...sources,
      nodeUid: () => `${name}-uid`,
      fleet: createFleetSize(2),
      random: { number: () => 0, hex: () => '' },
      onTurn: () => undefined,
      onNear: () => undefined,
      onCountMissing: () => undefined,
    })
    const manager = createSlotManager({
      ...sources,
      defaultBudget,
      ownSlots,
      line,
      runtimeRequiredTaint,
      log: {
        ...createLog('silent', {}),
        info: (_, message) => void messages.push(message),
        warn: (_, message) => void messages.push(message),
      },
      uncountedSince: () => uncountedSince,
      onReleased: (phase, seconds) => void released.push(`${phase} ${seconds}`),
      onAcquired: (seconds) => void acquired.push(seconds),
    })
    return { ...manager, held: ownSlots.held, untilKnown: ownSlots.untilKnown }
  }

  /** The same with the node's Node, once it knows its slots. */
  async function readyManagerOf(name: string): Promise<TestedManager> {
    if (!nodes.has(name)) nodes.set(name, nodeOf(name))
    const manager = managerOf(name)
    await manager.untilKnown()
    return manager
  }

  /** Writes the Skyhook `s`, and shows it to all managers. By default one node at a time. */
  function putSkyhook(spec: object = {}, metadata: object = {}): SkyhookView {
    const stored = api.put(skyhooksPath, {
      metadata: { name: 's', ...metadata },
      spec: { interruptionBudget: { count: 1 }, packages: {}, ...spec },
    }) as unknown as Skyhook
    const budget = budgetOf(stored.spec, defaultBudget)
    const view = { metadata: stored.metadata, spec: stored.spec, budget, stale: false }
    views = [view]
    return view
  }

  /** Whether they were created or not. */
  const requestedLeases = (): { readonly name: string; readonly labels: object }[] =>
    api.sent
      .filter(({ method, path }) => method === 'POST' && path === leasesPath)
      .map(({ body }) => (body as { metadata: { name: string; labels: object } }).metadata)

  return {
    api,
    transport,
    clock,
    signal,
    acquired,
    released,
    messages,
    /** How often a manager's own slots have woken the loop of its agent. */
    wakes: () => wakes,
    managerOf,
    readyManagerOf,
    /** As the Lease of the election says. */
    setUncountedSince: (time: string | undefined): void => void (uncountedSince = time),
    /** Undefined: the agent does not know its Node. */
    putNode: (name: string, node: KubernetesNode | undefined): void => void nodes.set(name, node),
    putSkyhook,
    requestedLeases,
    /** Of the requested Leases, those that exist. */
    leaseCount: (): number =>
      new Set(requestedLeases().flatMap(({ name }) => (api.get(leasesPath, name) ? [name] : []))).size,
    /** LISTs of Leases that were requested so far. */
    listCount: (): number =>
      api.sent.filter(({ method, path, isWatch }) => method === 'GET' && path === leasesPath && !isWatch).length,
    first: await readyManagerOf('n1'),
    second: await readyManagerOf('n2'),
  }
}
