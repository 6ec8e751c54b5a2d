/**
 * The series of the fleet, which only the agent of the census serves. All of them are gauges: the elected agent counts
 * them from the cluster, so nothing is lost when the census moves. `make generate` writes docs/usage/metrics.md from
 * it.
 */
import { entryStates, nodeStatuses, stageNames } from '../skyhook.ts'
import { skyhookConditions } from './conditions.ts'
import { everyReason, gauge, type MetricRow } from './metrics.ts'

const skyhook = { skyhook_name: 'name of the Skyhook' } as const
const packageVersion = { ...skyhook, package_name: 'name of the package', package_version: 'its version' } as const
const compartment = {
  ...skyhook,
  policy_name: 'name of the DeploymentPolicy; `legacy` without one',
  compartment_name: 'name of the compartment; `__default__` for nodes in no other compartment, or without a policy',
  strategy: ['fixed', 'linear', 'exponential'],
} as const

/** Reasons as labels: a Node may have text written by an agent of another version, or by a person. */
export const otherReason = 'other'

export const fleetMetrics = {
  skyhook_status: gauge('Status of the Skyhook: 1 for the current one, 0 for all others.', {
    ...skyhook,
    status: nodeStatuses,
  }),
  skyhook_node_status_count: gauge(
    'Selected nodes by their status. The sum over all statuses is the number of selected nodes.',
    { ...skyhook, status: nodeStatuses },
  ),
  skyhook_node_target_count: gauge('Nodes that the Skyhook selects.', skyhook),
  skyhook_package_state_count: gauge(
    'Selected nodes by the state of this version of the package. Nodes without it are in no state.',
    { ...packageVersion, state: entryStates },
  ),
  skyhook_package_stage_count: gauge(
    'Selected nodes by the stage of this version of the package. Nodes without it are in no stage.',
    { ...packageVersion, stage: stageNames },
  ),
  skyhook_package_restarts_count: gauge(
    'Failed attempts of the current stage of this version of the package, over all selected nodes.',
    packageVersion,
  ),
  skyhook_rollout_matched_nodes: gauge('Selected nodes in the compartment.', compartment),
  skyhook_rollout_ceiling: gauge(
    'Nodes of the compartment that its budget lets out at the same time; all of them without a budget.',
    compartment,
  ),
  skyhook_rollout_in_progress: gauge('Nodes of the compartment with the status `in_progress`.', compartment),
  skyhook_rollout_completed: gauge('Complete nodes of the compartment.', compartment),
  skyhook_rollout_progress_percent: gauge(
    'Percentage of the nodes of the compartment that are complete, from 0 to 100, rounded down.',
    compartment,
  ),
  skyhook_rollout_current_batch: gauge(
    'Number of the current batch of the compartment, from 1; 0 without batches.',
    compartment,
  ),
  skyhook_rollout_consecutive_failures: gauge('Failed batches in a row.', compartment),
  skyhook_rollout_should_stop: gauge(
    '1 if too many batches in a row have failed: no node starts until the batches are reset. Otherwise 0.',
    compartment,
  ),
  skyhookd_fleet_generation: gauge(
    '`metadata.generation` of the Skyhook: each edit of its spec raises it, as does its deletion.',
    skyhook,
  ),
  skyhookd_fleet_node_reasons: gauge(
    'Selected nodes that are not complete, by the reason that their agent gives; absent where there is none.',
    { ...skyhook, reason: `${everyReason}; \`${otherReason}\` for what an agent of another version gives` },
  ),
  skyhookd_fleet_stalled: gauge(
    '1 while the Skyhook needs intervention, by the reason of its condition `Stalled`; otherwise absent.',
    {
      ...skyhook,
      reason: Object.keys(skyhookConditions.Stalled.reasons).filter((name) => name !== 'NotStalled'),
    },
  ),
  skyhookd_fleet_unattended_nodes: gauge(
    'Selected nodes that were at work by their last report and whose agent has not answered for 10 minutes: they ' +
      'keep their slots, and no agent works there.',
    skyhook,
  ),
  skyhookd_fleet_agents: gauge(
    'Selected nodes by the state of their agent: `unready` is not Ready, or missing, for less than 10 minutes, ' +
      '`silent` for longer, and `unknown` while the pods of the agents cannot be listed.',
    { ...skyhook, state: ['ready', 'unready', 'silent', 'unknown'] },
  ),
  skyhookd_fleet_left_over_cordons: gauge(
    'Nodes that carry the cordon mark of a Skyhook that is gone, does not select them, or is complete on them. An ' +
      'agent removes such a mark at once.',
    {},
  ),
} as const satisfies Record<string, MetricRow & { readonly type: 'gauge' }>

export type FleetMetricName = keyof typeof fleetMetrics
export type FleetLabelsOf<Name extends FleetMetricName> = Readonly<
  Record<keyof (typeof fleetMetrics)[Name]['labels'], string>
>

/** Values of the labels, in the order of the catalogue, and that of the series. */
export type FleetSample = readonly [labels: readonly string[], value: number]
/** The series of one object, such as a Skyhook. */
export type FleetSeries = { readonly [Name in FleetMetricName]?: readonly FleetSample[] }
