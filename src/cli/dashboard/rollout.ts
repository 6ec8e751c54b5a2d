/** From a moment of the fleet to what the page shows of it. Pure. */
import { labelKeys } from '../../lease/names.ts'
import { known, type Known } from '../../stages/model/snapshot.ts'
import { fleetStatus, type SkyhookStatus } from '../status/fleet-status.ts'
import { agentStates, type NodeFact, nodeFacts, reasonOf } from '../status/node-facts.ts'
import type { NodeChanges, NodeSquare, Overview, SkyhookBrief } from './page-data.ts'
import type { FleetMoment } from './source.ts'

/** All Skyhooks, those first that a person should look at. */
export function overviewOf(moment: FleetMoment, statuses: Known<readonly SkyhookStatus[]>): Overview {
  const { fleet, freshness, contactAtMs } = moment
  const skyhooks = statuses.known ? known(statuses.value.map(briefOf)) : statuses
  return { nowMs: fleet.takenAtMs, contactAtMs, freshness, skyhooks }
}

export const statusesOf = ({ fleet, completions }: FleetMoment): Known<readonly SkyhookStatus[]> =>
  fleetStatus(fleet, completions)

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

/** What a person most likely came for: trouble, then work, then the first by name. */
export function defaultSkyhook(statuses: readonly SkyhookStatus[]): string | undefined {
  const rankOf = (status: SkyhookStatus): number => {
    const { selected = 0, complete, troubled } = briefOf(status)
    return troubled > 0 ? 0 : complete < selected ? 1 : 2
  }
  return statuses.toSorted((a, b) => rankOf(a) - rankOf(b))[0]?.name
}

/** The nodes of a Skyhook by name; unknown where they may not be read, undefined for a Skyhook that is not there. */
export function squaresOf(
  { fleet }: Pick<FleetMoment, 'fleet'>,
  skyhook: string,
): Known<readonly NodeSquare[]> | undefined {
  if (!fleet.skyhooks.known) return fleet.skyhooks
  const found = fleet.skyhooks.value.find(({ metadata }) => metadata.name === skyhook)
  if (found === undefined) return undefined
  const facts = nodeFacts(fleet, found, agentStates(fleet))
  if (!facts.known) return facts
  const slots = fleet.slots.known ? fleet.slots.value : []
  const own = slots.filter(({ lease }) => lease.metadata.labels?.[labelKeys.name] === skyhook)
  const phases = new Map(own.map(({ holder, phase }) => [holder, phase]))
  const squares = facts.value.map((fact) => squareOf(fact, phases.get(fact.node)))
  return known(squares.toSorted((a, b) => a.node.localeCompare(b.node, 'en', { numeric: true })))
}

function squareOf(fact: NodeFact, phase: string | undefined): NodeSquare {
  const { node, status } = fact
  const slot = phase === undefined ? {} : { phase }
  const found = reasonOf(fact)
  if (found === undefined) return { node, status, ...slot }
  const { reason, message, sinceMs } = found
  return { node, status, reason, message, ...(sinceMs !== undefined && { sinceMs }), ...slot }
}

/** What has changed since the squares that were sent last, by node and its JSON; `sent` then has what was sent now. */
export function changesOf(sent: Map<string, string>, squares: readonly NodeSquare[]): NodeChanges {
  const isFull = sent.size === 0
  const present = new Set<string>()
  const changed = squares.filter((square) => {
    const text = JSON.stringify(square)
    present.add(square.node)
    if (sent.get(square.node) === text) return false
    sent.set(square.node, text)
    return true
  })
  const removed = [...sent.keys()].filter((node) => !present.has(node))
  for (const node of removed) sent.delete(node)
  return { isFull, changed, removed }
}
