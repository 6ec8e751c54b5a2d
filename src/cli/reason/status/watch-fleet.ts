/** The fleet view of a screen, kept current by watches. */
import { isTransient, isUnauthorized } from '../../../kube/errors.ts'
import type { KubeObject } from '../../../kube/objects.ts'
import { type LastError, lastErrorOf, type ReflectorState, startReflector } from '../../../kube/reflector.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { type Clock, type Random, sleep } from '../../../schemas/clock.ts'
import { messageOf } from '../../../schemas/json.ts'
import { type Known, known, unknown } from '../../../stages/model/snapshot.ts'
import { silentAfterMs } from '../../../stages/skyhook/gates.ts'
import { type Collection, fleetCollections, heldLeases, nodesAs } from '../../fleet/fleet-view/collections.ts'
import type { AgentPod, FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import { mapped, valueOr, whyHidden } from '../../fleet/fleet-view/readable.ts'
import { createNodeReader, type NodeRow } from './node-report.ts'

/** Changes are drawn together: a rollout of thousands of nodes has many a second. */
const defaultDrawIntervalMs = 1_000
/** A page is parsed in one piece, and four lists are read at the same time. */
const watchedPageSize = 25
/** Ages grow without any change. */
const maxDrawIntervalMs = 10_000

/** The identity of an object, and what is kept of it. */
type Entry<T> = KubeObject & { readonly kept?: T | undefined }

export type FleetWatch = {
  readonly transport: KubeTransport
  readonly clock: Clock
  readonly random: Random
  readonly signal: AbortSignal
  /** The first read; its policies and settings are not updated. */
  readonly first: FleetView<NodeRow>
  readonly draw: (fleet: FleetView<NodeRow>, freshness: Freshness) => void
  /** At least this long between two draws, in ms; a second by default. */
  readonly drawIntervalMs?: number
  /** The caller has something to draw, though nothing has changed in the fleet. */
  readonly isDue?: () => boolean
}

/** Whether the screen follows the cluster. */
export type Freshness =
  | { readonly state: 'live' }
  /** The API server does not answer, or refuses what it allowed before. `sinceMs`: since 1970. */
  | { readonly state: 'lost'; readonly sinceMs: number; readonly why: string }

/** Draws after changes, at most once in each interval. Rejects with the signal's reason when it aborts. */
export async function watchFleet(watch: FleetWatch): Promise<never> {
  const { transport, clock, random, signal, first, draw, isDue, drawIntervalMs = defaultDrawIntervalMs } = watch
  const { namespace } = first
  let isChanged = true
  const departed = createDepartedAgents()
  const clockOffsetMs = first.takenAtMs - clock.steadyMs()
  const nowMs = (): number => clock.steadyMs() + clockOffsetMs
  const follow = <T>(collection: Collection<T>, onDeleted?: (kept: T) => void) => {
    const { what, path, query = {}, keep, metadataOnly = false } = collection
    const reflector = startReflector<Entry<T>>(transport, {
      clock,
      random,
      signal,
      path,
      query,
      metadataOnly,
      timing: { pageSize: watchedPageSize },
      transform: (object) => ({ metadata: identityOf(object), kept: keep(object as never) }),
      onChange({ changes }) {
        isChanged = true
        for (const { type, object } of changes) if (type === 'deleted' && object.kept) onDeleted?.(object.kept)
      },
    })
    const all = (): readonly T[] =>
      [...reflector.store.values()].flatMap(({ kept }) => (kept === undefined ? [] : [kept]))
    const { synced } = reflector
    const state = (): ReflectorState => reflector.state()
    return { state, synced, values: () => valuesOf(state(), what, all) }
  }
  const collections = fleetCollections(namespace)
  // taints are not metadata, and matter only if Skyhooks keep nodes closed by them
  const needsTaints = valueOr(first.skyhooks, []).some(({ spec }) => spec.runtimeRequired === true)
  const nodes = follow(nodesAs(createNodeReader(), !needsTaints))
  const skyhooks = follow(collections.skyhooks)
  const leases = follow(collections.leases)
  const agents = follow(collections.agents, (agent) => departed.note(agent, nowMs()))
  const view = (): FleetView<NodeRow> => ({
    ...first,
    takenAtMs: nowMs(),
    skyhooks: skyhooks.values(),
    nodes: nodes.values(),
    ...heldLeases(leases.values()),
    agents: mapped(agents.values(), (present) => [...present, ...departed.agents(nowMs())]),
  })
  const followed = [nodes, skyhooks, leases, agents]
  const freshness = (): Freshness => {
    const lost = followed.flatMap(({ state }) => lostOf(state()))
    const [earliest] = lost.toSorted((a, b) => a.sinceMs - b.sinceMs)
    if (earliest === undefined) return { state: 'live' }
    return { state: 'lost', sinceMs: earliest.sinceMs + clockOffsetMs, why: messageOf(earliest.error) }
  }
  draw(first, { state: 'live' })
  await Promise.race([
    Promise.allSettled(followed.map(({ synced }) => synced)),
    sleep(clock, maxDrawIntervalMs, signal),
  ])
  for (let drawnAtMs = -Infinity; ; ) {
    if (isChanged || isDue?.() === true || clock.monotonicMs() - drawnAtMs >= maxDrawIntervalMs) {
      isChanged = false
      drawnAtMs = clock.monotonicMs()
      draw(view(), freshness())
    }
    await sleep(clock, drawIntervalMs, signal)
  }
}

/** A kind that the caller may never read is unknown, which is not a failure. */
function lostOf(state: ReflectorState): LastError[] {
  const lastError = lastErrorOf(state)
  if (lastError === undefined) return []
  const isLost = isTransient(lastError.error) || isUnauthorized(lastError.error) || state.state === 'synced'
  return isLost ? [lastError] : []
}

/** A list stays shown while its watch is broken: the next LIST has the changes. */
function valuesOf<T>(found: ReflectorState, what: string, all: () => readonly T[]): Known<readonly T[]> {
  if (found.state !== 'unknown') return known(all())
  return unknown(whyHidden(found.lastError?.error, what) ?? `${what} cannot be read at the moment`)
}

const identityOf = ({ metadata: { name, uid, resourceVersion } }: KubeObject): KubeObject['metadata'] => ({
  name,
  uid,
  resourceVersion,
})

/** Agents whose pods are gone, for as long as their nodes do not count as silent. Times in ms since 1970. */
type DepartedAgents = {
  readonly note: (agent: AgentPod, nowMs: number) => void
  /** Represented by pods that are not Ready, at the latest since they disappeared. */
  readonly agents: (nowMs: number) => readonly AgentPod[]
}

/** A replaced pod is gone before the next one exists. At that moment the API does not show why. */
function createDepartedAgents(): DepartedAgents {
  const byNode = new Map<string, AgentPod & { readonly sinceMs: number }>()
  return {
    note(agent, nowMs) {
      const sinceMs = agent.isReady ? nowMs : (agent.sinceMs ?? nowMs)
      byNode.set(agent.node, { ...agent, isReady: false, isDeleting: true, image: '', sinceMs })
    },
    agents(nowMs) {
      for (const [node, { sinceMs }] of byNode) if (nowMs - sinceMs >= silentAfterMs) byNode.delete(node)
      return [...byNode.values()]
    },
  }
}
