/** From a moment of the fleet to what the page shows of it. Pure. */
import { labelKeys } from '../../lease/names.ts'
import { known, type Known } from '../../stages/model/snapshot.ts'
import { fleetStatus, type SkyhookStatus } from '../status/fleet-status.ts'
import { agentStates, type NodeFact, nodeFacts, reasonOf } from '../status/node-facts.ts'
import { type LaneHistory, lanesOf } from './lanes.ts'
import type { Identity, NodeSquare, PageState, Rollout, SkyhookBrief } from './page-data.ts'
import type { FleetMoment } from './source.ts'

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
  const squares = facts.value.map((fact) => squareOf(fact, phases.get(fact.node)))
  return known(squares.toSorted((a, b) => byName.compare(a.node, b.node)))
}

const byName = new Intl.Collator('en', { numeric: true })

function squareOf(fact: NodeFact, phase: string | undefined): NodeSquare {
  const { node, status } = fact
  const slot = phase === undefined ? {} : { phase }
  const found = reasonOf(fact)
  if (found === undefined) return { node, status, ...slot }
  const { reason, message, sinceMs } = found
  return { node, status, reason, message, ...(sinceMs !== undefined && { sinceMs }), ...slot }
}
