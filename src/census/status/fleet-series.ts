/** Converts the counts to the series of the fleet. Pure: no series is remembered, so none is left over. */
import { compartmentsOf } from '../../lease/policy/compartments.ts'
import { statusKey } from '../../schemas/annotations.ts'
import { skyhookConditions } from '../../schemas/catalogue/conditions.ts'
import {
  type FleetLabelsOf,
  type FleetMetricName,
  type FleetSample,
  type FleetSeries,
  fleetMetrics,
  otherReason,
} from '../../schemas/catalogue/fleet-metrics.ts'
import { reasons } from '../../schemas/catalogue/reasons.ts'
import { defaultCompartment } from '../../schemas/deployment-policy.ts'
import { selects } from '../../schemas/selectors.ts'
import {
  type EntryState,
  entryStates,
  nodeStatuses,
  type Skyhook,
  type StageName,
  stageNames,
} from '../../schemas/skyhook.ts'
import { type CompartmentInput, compartmentStatuses } from './compartment-status.ts'
import { type Counts, rollUp } from '../model/count.ts'
import type { CensusNode, NodeFact } from '../model/node-facts.ts'
import { type CompartmentStatus, conditionOf, statusOf } from '../model/skyhook-status.ts'

export type SeriesInput = CompartmentInput & {
  /** Those that were counted, and others. */
  readonly nodes: ReadonlyMap<string, CensusNode>
}

/** The operator's label where no policy is named. */
const legacyPolicy = 'legacy'

/** All series of one Skyhook. */
export function skyhookSeries({ skyhook, counts, ledger, nodes }: SeriesInput): FleetSeries {
  const { finish, add } = createSeries()
  const { name, generation = 0 } = skyhook.metadata
  const of = { skyhook_name: name }
  const current = rollUp(counts)
  const byStatus = countBy(counts.nodes, ({ status }) => status)
  for (const status of nodeStatuses) {
    add('skyhook_status', { ...of, status }, status === current ? 1 : 0)
    add('skyhook_node_status_count', { ...of, status }, byStatus.get(status) ?? 0)
  }
  add('skyhook_node_target_count', of, counts.nodes.length)
  add('skyhookd_fleet_generation', of, generation)

  for (const { name, version, states, stages, restarts } of packageCounts(skyhook, counts.nodes)) {
    const labels = { ...of, package_name: name, package_version: version }
    for (const [state, count] of states) add('skyhook_package_state_count', { ...labels, state }, count)
    for (const [stage, count] of stages) add('skyhook_package_stage_count', { ...labels, stage }, count)
    add('skyhook_package_restarts_count', labels, restarts)
  }

  const strategies = strategiesOf(counts)
  for (const [compartment, status] of rolloutsOf({ skyhook, counts, ledger })) {
    const labels = {
      ...of,
      policy_name: skyhook.spec.deploymentPolicy ?? legacyPolicy,
      compartment_name: compartment,
      strategy: strategies.get(compartment) ?? 'fixed',
    }
    const { batchState = {} } = status
    add('skyhook_rollout_matched_nodes', labels, status.matched)
    add('skyhook_rollout_ceiling', labels, status.ceiling)
    add('skyhook_rollout_in_progress', labels, status.inProgress)
    add('skyhook_rollout_completed', labels, status.completed)
    add('skyhook_rollout_progress_percent', labels, status.progressPercent)
    add('skyhook_rollout_current_batch', labels, batchState.currentBatch ?? 0)
    add('skyhook_rollout_consecutive_failures', labels, batchState.consecutiveFailures ?? 0)
    add('skyhook_rollout_should_stop', labels, Number(batchState.shouldStop ?? false))
  }

  const byReason = countBy(counts.nodes, ({ reason }) => reason && known(reasons, reason.reason))
  for (const [reason, count] of byReason) add('skyhookd_fleet_node_reasons', { ...of, reason }, count)
  const stalled = conditionOf(statusOf(skyhook), 'Stalled')
  if (stalled?.status === 'True') {
    const reason = known(skyhookConditions.Stalled.reasons, stalled.reason)
    add('skyhookd_fleet_stalled', { ...of, reason }, 1)
  }
  const byAgent = countBy(counts.nodes, ({ agent }) => agent)
  for (const state of fleetMetrics.skyhookd_fleet_agents.labels.state)
    add('skyhookd_fleet_agents', { ...of, state }, byAgent.get(state) ?? 0)
  const unattended = counts.nodes.filter(
    (fact) => fact.agent === 'silent' && isAtWork(nodes.get(fact.name)?.annotations[statusKey(name)]),
  )
  add('skyhookd_fleet_unattended_nodes', of, unattended.length)
  return finish()
}

/** The series that belong to no Skyhook. */
export function clusterSeries(
  skyhooks: ReadonlyMap<string, Skyhook>,
  nodes: ReadonlyMap<string, CensusNode>,
): FleetSeries {
  const { finish, add } = createSeries()
  const leftOver = [...nodes.values()].filter((node) =>
    node.cordonedBy.some((name) => {
      const skyhook = skyhooks.get(name)
      return (
        skyhook === undefined ||
        !selects(skyhook.spec.nodeSelectors, node.labels) ||
        node.annotations[statusKey(name)] === 'complete'
      )
    }),
  )
  add('skyhookd_fleet_left_over_cordons', {}, leftOver.length)
  return finish()
}

const isAtWork = (published: string | undefined): boolean => published === 'in_progress' || published === 'erroring'

/** A name of the catalogue, or the label for all others. */
const known = (rows: object, name: string): string => (Object.hasOwn(rows, name) ? name : otherReason)

/** By compartment. Empty while the named policy does not exist: its compartments are unknown. */
function rolloutsOf(input: Omit<SeriesInput, 'nodes'>): readonly (readonly [string, CompartmentStatus])[] {
  const { counts } = input
  if (counts.policy !== undefined && counts.policy.state !== 'found') return []
  const limited = compartmentStatuses(input)
  if (limited !== undefined) return Object.entries(limited)
  const byStatus = countBy(counts.nodes, ({ status }) => status)
  const matched = counts.nodes.length
  const completed = byStatus.get('complete') ?? 0
  return [
    [
      defaultCompartment,
      {
        matched,
        ceiling: matched, // without a budget all may be out of service
        inProgress: byStatus.get('in_progress') ?? 0,
        completed,
        progressPercent: matched === 0 ? 0 : Math.floor((completed * 100) / matched),
      },
    ],
  ]
}

const strategiesOf = ({ policy }: Counts): ReadonlyMap<string, string> =>
  new Map(
    policy?.state === 'found' ? compartmentsOf(policy.spec).map(({ name, strategy }) => [name, strategy.kind]) : [],
  )

function countBy<T>(items: readonly T[], keyOf: (item: T) => string | undefined): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const item of items) {
    const key = keyOf(item)
    if (key !== undefined) counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

function createSeries(): {
  /** All that was added. */
  readonly finish: () => FleetSeries
  readonly add: <Name extends FleetMetricName>(name: Name, labels: FleetLabelsOf<Name>, value: number) => void
} {
  const samples = new Map<FleetMetricName, FleetSample[]>()
  return {
    finish: () => Object.fromEntries(samples),
    add(name, labels, value) {
      const values = new Map<string, string>(Object.entries(labels))
      const ofName = samples.get(name) ?? []
      ofName.push([Object.keys(fleetMetrics[name].labels).map((label) => values.get(label) ?? ''), value])
      samples.set(name, ofName)
    },
  }
}

/** How many nodes have each version of a package, by state and stage. */

type PackageCount = {
  readonly name: string
  readonly version: string
  /** All states, and the nodes in each. */
  readonly states: ReadonlyMap<EntryState, number>
  readonly stages: ReadonlyMap<StageName, number>
  /** Of all nodes together. */
  readonly restarts: number
}

/**
 * Versions that nodes still have and the spec does not. Anybody who may edit a Node can add entries, and series of
 * made-up packages must not fill a Prometheus. Those on most nodes are counted.
 */
const maxOtherVersions = 50
/** As long as the name of any object; versions are shorter. */
const maxNameLength = 253

/** The versions of the spec, also those that no node has, then those that are only on nodes. */
function packageCounts({ spec }: Skyhook, nodes: readonly NodeFact[]): readonly PackageCount[] {
  const counts = new Map<string, Count>()
  const countOf = (name: string, version: string): Count => {
    const key = `${name}|${version}`
    const count = counts.get(key) ?? emptyCount(name, version)
    counts.set(key, count)
    return count
  }
  const specified = Object.entries(spec.packages ?? {}).map(([name, { version }]) => countOf(name, version))
  for (const { entries } of nodes)
    for (const { name, version, stage, state, restarts = 0 } of Object.values(entries)) {
      if (name.length > maxNameLength || version.length > maxNameLength) continue
      const count = countOf(name, version)
      count.nodes++
      count.restarts += restarts
      increment(count.states, (state ?? 'unknown') as EntryState)
      increment(count.stages, stage as StageName)
    }
  const others = [...counts.values()]
    .filter((count) => !specified.includes(count))
    .toSorted((a, b) => b.nodes - a.nodes || compare(a.name, b.name) || compare(a.version, b.version))
  return [...specified, ...others.slice(0, maxOtherVersions)]
}

type Count = {
  readonly name: string
  readonly version: string
  nodes: number
  restarts: number
  readonly states: Map<EntryState, number>
  readonly stages: Map<StageName, number>
}

const emptyCount = (name: string, version: string): Count => ({
  name,
  version,
  nodes: 0,
  restarts: 0,
  states: new Map(entryStates.map((state) => [state, 0])),
  stages: new Map(stageNames.map((stage) => [stage, 0])),
})

function increment<Key>(counts: Map<Key, number>, key: Key): void {
  counts.set(key, (counts.get(key) ?? 0) + 1)
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
