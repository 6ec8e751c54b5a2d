/** The fleet view of a screen, kept current by watches. */
import type { KubeObject } from '../../kube/objects.ts'
import { isTransient, isUnauthorized } from '../../kube/errors.ts'
import {
  lastErrorOf,
  type LastError,
  type Reflector,
  type ReflectorState,
  startReflector,
} from '../../kube/reflector.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { labelKeys } from '../../lease/names.ts'
import { leasesPathOf } from '../../lease/slot-reads.ts'
import { isLedger, isStray, type Lease, readSlot } from '../../lease/slot.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import { type Clock, type Random, sleep } from '../../schemas/clock.ts'
import { messageOf } from '../../schemas/json.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { known, type Known, unknown } from '../../stages/model/snapshot.ts'
import type { FleetView } from '../fleet-view/fleet-view.ts'
import { agentPodOf, type PodObject, slimSkyhook } from '../fleet-view/project.ts'
import { agentSelector, slimLease } from '../fleet-view/read-fleet.ts'
import { valueOr, whyHidden } from '../fleet-view/readable.ts'
import { createDepartedAgents } from './departed-agents.ts'
import { createNodeReader, type NodeRow } from './node-report.ts'

/** Changes are drawn together: a rollout of thousands of nodes has many a second. */
const defaultDrawIntervalMs = 1_000
/** A page is parsed as a whole, and four lists are read at once. */
const watchedPageSize = 25
/** Ages move on without any change. */
const maxDrawIntervalMs = 10_000

type NodeEntry = KubernetesNode & { readonly row?: NodeRow }
type PodEntry = PodObject & { readonly agent?: ReturnType<typeof agentPodOf> }

export type FleetWatch = {
  readonly transport: KubeTransport
  readonly clock: Clock
  readonly random: Random
  readonly signal: AbortSignal
  /** What was read at once; policies and settings stay as they are there. */
  readonly first: FleetView<NodeRow>
  readonly draw: (fleet: FleetView<NodeRow>, freshness: Freshness) => void
  /** At least this long between two draws, in ms; a second by default. */
  readonly drawIntervalMs?: number
}

/** Whether what is drawn follows the cluster. */
export type Freshness =
  | { readonly state: 'live' }
  /** The API server does not answer, or refuses what it has allowed before. `sinceMs`: since 1970. */
  | { readonly state: 'lost'; readonly sinceMs: number; readonly why: string }

/** Draws whenever something has changed, at most once in each interval. Rejects with the signal's reason when it aborts. */
export async function watchFleet(watch: FleetWatch): Promise<never> {
  const { transport, clock, random, signal, first, draw, drawIntervalMs = defaultDrawIntervalMs } = watch
  const { namespace } = first
  let isChanged = true
  const rowOf = createNodeReader()
  const departed = createDepartedAgents()
  const clockOffsetMs = first.takenAtMs - clock.steadyMs()
  const nowMs = (): number => clock.steadyMs() + clockOffsetMs
  const timing = { pageSize: watchedPageSize }
  const common = { clock, random, signal, timing, onChange: () => void (isChanged = true) }
  const identity = ({ metadata: { name, uid, resourceVersion } }: KubeObject) => ({
    metadata: { name, uid, resourceVersion },
  })
  const nodes = startReflector<NodeEntry>(transport, {
    ...common,
    path: '/api/v1/nodes',
    // taints are no metadata, and say something only where Skyhooks have nodes closed by them
    metadataOnly: !valueOr(first.skyhooks, []).some(({ spec }) => spec.runtimeRequired === true),
    transform: (node) => ({ ...identity(node), row: rowOf(node) }),
  })
  const skyhooks = startReflector<Skyhook & KubeObject>(transport, {
    ...common,
    path: skyhooksPath,
    transform: slimSkyhook,
  })
  const leases = startReflector<Lease>(transport, {
    ...common,
    path: leasesPathOf({ namespace }),
    query: { labelSelector: labelKeys.slotKind },
    transform: slimLease,
  })
  const pods = startReflector<PodEntry>(transport, {
    ...common,
    path: `/api/v1/namespaces/${namespace}/pods`,
    query: { labelSelector: agentSelector },
    transform: (pod) => ({ ...identity(pod), agent: agentPodOf(pod) }),
    onChange: ({ changes }) => {
      isChanged = true
      for (const { type, object } of changes)
        if (type === 'deleted' && object.agent) departed.note(object.agent, nowMs())
    },
  })
  const view = (): FleetView<NodeRow> => {
    const held = valuesOf(leases, `Leases in namespace ${namespace}`)
    const agents = mapped(valuesOf(pods, `Pods in namespace ${namespace}`), ({ agent }) => agent)
    return {
      ...first,
      takenAtMs: nowMs(),
      skyhooks: valuesOf(skyhooks, 'Skyhooks'),
      nodes: mapped(valuesOf(nodes, 'Nodes'), ({ row }) => row),
      slots: mapped(held, readSlot),
      ledgers: mapped(held, (lease) => (isLedger(lease) ? lease : undefined)),
      strays: mapped(held, (lease) => (isStray(lease) ? lease : undefined)),
      agents: agents.known ? known([...agents.value, ...departed.agents(nowMs())]) : agents,
    }
  }
  const reflectors = [nodes, skyhooks, leases, pods]
  const freshness = (): Freshness => {
    const lost = reflectors.map((reflector) => reflector.state()).flatMap(lostOf)
    const [earliest] = lost.toSorted((a, b) => a.sinceMs - b.sinceMs)
    if (earliest === undefined) return { state: 'live' }
    return { state: 'lost', sinceMs: earliest.sinceMs + clockOffsetMs, why: messageOf(earliest.error) }
  }
  draw(first, { state: 'live' })
  await Promise.race([
    Promise.allSettled(reflectors.map(({ synced }) => synced)),
    sleep(clock, maxDrawIntervalMs, signal),
  ])
  for (let drawnAtMs = -Infinity; ; ) {
    if (isChanged || clock.monotonicMs() - drawnAtMs >= maxDrawIntervalMs) {
      isChanged = false
      drawnAtMs = clock.monotonicMs()
      draw(view(), freshness())
    }
    await sleep(clock, drawIntervalMs, signal)
  }
}

/** A kind that the caller may never read is unknown, which is no loss. */
function lostOf(state: ReflectorState): LastError[] {
  const lastError = lastErrorOf(state)
  if (lastError === undefined) return []
  const isLost = isTransient(lastError.error) || isUnauthorized(lastError.error) || state.state === 'synced'
  return isLost ? [lastError] : []
}

const mapped = <T, U>(values: Known<readonly T[]>, of: (value: T) => U | undefined): Known<readonly U[]> =>
  values.known ? known(values.value.flatMap((value) => of(value) ?? [])) : values

/** What was listed once stays shown while its watch is broken: the next LIST brings what has changed. */
function valuesOf<T extends KubeObject>(reflector: Reflector<T>, what: string): Known<readonly T[]> {
  const found = reflector.state()
  if (found.state !== 'unknown') return known([...reflector.store.values()])
  return unknown(whyHidden(found.lastError?.error, what) ?? `${what} cannot be read at the moment`)
}
