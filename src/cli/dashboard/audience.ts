/** The pages that follow the fleet: each is sent all that it shows whenever something changes. */
import { type LaneHistory, withSlots, lanesOf } from './lanes.ts'
import type { Identity, PageState, NodeSquare, Rollout, SkyhookBrief, FleetMoment } from './page-data.ts'
import type { ServerResponse } from 'node:http'
import { plainText } from '../../schemas/plain-text.ts'
import { labelKeys } from '../../lease/names.ts'
import { known, type Known } from '../../stages/model/snapshot.ts'
import { valueOr } from '../fleet/fleet-view/readable.ts'
import { fleetStatus, type SkyhookStatus } from '../reason/status/fleet-status.ts'
import { agentStates, type NodeFact, nodeFacts, reasonOf } from '../reason/status/node-facts.ts'

type Audience = {
  /** To be called with each moment, in order. Lanes grow with it, whether somebody watches or not. */
  show(moment: FleetMoment): void
  /** Adds a page that shows a Skyhook; undefined: the one that needs a look most. Returns what removes it. */
  add(stream: EventStream<PageState>, skyhook: string | undefined): () => void
}

type Member = {
  readonly stream: EventStream<PageState>
  /** The one that was chosen stays, also when another one would be chosen now. */
  skyhook: string | undefined
}

export function createAudience(identity: Identity): Audience {
  const members = new Set<Member>()
  let lanes: LaneHistory = new Map()
  let latest: FleetMoment | undefined

  function update(member: Member): void {
    if (latest === undefined || member.stream.isBehind()) return
    const state = pageState(identity, latest, lanes, member.skyhook)
    member.skyhook ??= state.rollout?.name
    member.stream.send(state)
  }

  return {
    show(moment) {
      lanes = withSlots(lanes, moment.fleet.slots, moment.fleet.takenAtMs)
      latest = moment
      for (const member of members) update(member)
    },
    add(stream, skyhook) {
      const member: Member = { stream, skyhook }
      members.add(member)
      update(member)
      return () => void members.delete(member)
    },
  }
}

/** Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html */
export type EventStream<T> = {
  readonly send: (data: T) => void
  /** The browser does not keep up: what it has not read yet would be replaced by what comes next. */
  isBehind(): boolean
}

/** The browser tries again after this long, when the tool is started again or the machine wakes up. */
const retryMs = 2_000

/** Answers a request with events, until the browser leaves; then `onClose` is called. */
export function openEventStream<T>(response: ServerResponse, onClose: () => void): EventStream<T> {
  response.setHeader('content-type', 'text/event-stream')
  response.write(`retry: ${retryMs}\n\n`)
  response.once('close', onClose)
  return {
    send(data) {
      if (response.writableEnded || response.destroyed) return
      // JSON has no line ends of its own
      response.write(`data: ${pageJson(data)}\n\n`)
    },
    isBehind: () => response.writableNeedDrain,
  }
}

/** What the page gets. Texts of others have no effect there, and none in what the page copies for a terminal. */
export const pageJson = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) => (typeof inner === 'string' ? plainText(inner) : inner))

/** `skyhook`: the one that the page shows; undefined: the one that a person most likely came for. */
export function pageState(
  identity: Identity,
  moment: FleetMoment,
  lanes: LaneHistory,
  skyhook: string | undefined,
): PageState {
  const { fleet, completions, freshness, contactAtMs } = moment
  const statuses = fleetStatus(fleet, completions)
  const list = statuses.known ? statuses.value : []
  const name = skyhook ?? defaultSkyhook(list)
  return {
    identity,
    nowMs: fleet.takenAtMs,
    contactAtMs,
    freshness,
    skyhooks: statuses.known ? known(list.map(briefOf)) : statuses,
    rollout: name === undefined ? undefined : rolloutOf(name, list, moment, lanes),
  }
}

function rolloutOf(
  name: string,
  statuses: readonly SkyhookStatus[],
  { fleet }: FleetMoment,
  lanes: LaneHistory,
): Rollout {
  const status = statuses.find((one) => one.name === name)
  const limit = status?.budget.known === true ? status.budget.value.limit : undefined
  return {
    name,
    status,
    nodes: squaresOf(fleet, name),
    lanes: lanesOf(lanes, name, typeof limit === 'number' ? limit : undefined),
  }
}

const troubledStatuses = ['erroring', 'blocked', 'unknown'] as const

function briefOf({ name, nodes, isPaused, isDisabled, isDeleting, stalled }: SkyhookStatus): SkyhookBrief {
  const counts = nodes.known ? nodes.value : undefined
  const flags = { paused: isPaused, disabled: isDisabled, 'being deleted': isDeleting, stalled: stalled !== undefined }
  return {
    name,
    selected: counts?.selected,
    complete: counts?.byStatus.complete ?? 0,
    troubled: troubledStatuses.reduce((sum, status) => sum + (counts?.byStatus[status] ?? 0), 0),
    flags: Object.entries(flags).flatMap(([flag, isSet]) => (isSet ? [flag] : [])),
  }
}

/** Trouble comes first, then work, then the first by name. */
function defaultSkyhook(statuses: readonly SkyhookStatus[]): string | undefined {
  const rankOf = (status: SkyhookStatus): number => {
    const { selected = 0, complete, troubled } = briefOf(status)
    return troubled > 0 ? 0 : complete < selected ? 1 : 2
  }
  return statuses.toSorted((a, b) => rankOf(a) - rankOf(b))[0]?.name
}

/** The nodes of a Skyhook by name; unknown where they may not be read, none of a Skyhook that is not there. */
function squaresOf(fleet: FleetMoment['fleet'], skyhook: string): Known<readonly NodeSquare[]> {
  if (!fleet.skyhooks.known) return fleet.skyhooks
  const found = fleet.skyhooks.value.find(({ metadata }) => metadata.name === skyhook)
  if (found === undefined) return known([])
  const facts = nodeFacts(fleet, found, agentStates(fleet))
  if (!facts.known) return facts
  const slots = fleet.slots.known ? fleet.slots.value : []
  const own = slots.filter(({ lease }) => lease.metadata.labels?.[labelKeys.name] === skyhook)
  const phases = new Map(own.map(({ holder, phase }) => [holder, phase]))
  const zones = new Map(valueOr(fleet.nodes, []).map(({ name, labels }) => [name, labels[zoneLabel]]))
  const squares = facts.value.map((fact) => squareOf(fact, zones.get(fact.node), phases.get(fact.node)))
  return known(squares.toSorted((a, b) => byName.compare(a.node, b.node)))
}

/** https://kubernetes.io/docs/reference/labels-annotations-taints/#topologykubernetesiozone */
const zoneLabel = 'topology.kubernetes.io/zone'

const byName = new Intl.Collator('en', { numeric: true })

function squareOf(fact: NodeFact, zone: string | undefined, phase: string | undefined): NodeSquare {
  const { node, status } = fact
  const place = { ...(zone && { zone }), ...(phase !== undefined && { phase }) }
  const found = reasonOf(fact)
  if (found === undefined) return { node, status, ...place }
  const { reason, message, sinceMs } = found
  return { node, status, reason, message, ...(sinceMs !== undefined && { sinceMs }), ...place }
}
