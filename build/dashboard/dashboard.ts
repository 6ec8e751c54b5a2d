/**
 * The Grafana dashboard of the chart. `make generate` writes it to chart/monitoring/dashboard.json.
 *
 * One agent serves the series of the fleet. When another one takes over, both may be scraped once: `max by` counts
 * nothing twice.
 */
import { type Dashboard, DashboardCursorSync, VariableRefresh, VariableSort } from '@grafana/schema'
import { type PanelSpec, prometheus, rowOf } from './panels.ts'

/** Of one Skyhook or several, as chosen above the panels. */
const chosen = 'skyhook_name=~"$skyhook"'
const largest = (labels: string, series: string): string => `max by (${labels}) (${series})`

/** What one asks first, at whatever hour. */
const now: readonly PanelSpec[] = [
  {
    title: 'Nodes complete',
    description: 'Percentage of the selected nodes that are complete for the current spec, over the chosen Skyhooks.',
    form: 'stat',
    queries: [
      {
        expr:
          `100 * sum(${largest('skyhook_name', `skyhook_node_status_count{status="complete",${chosen}}`)}) / ` +
          `(sum(${largest('skyhook_name', `skyhook_node_target_count{${chosen}}`)}) > 0)`,
        legend: '',
      },
    ],
    unit: 'percent',
  },
  {
    title: 'Stalled Skyhooks',
    description: 'Skyhooks for which someone has to act.',
    form: 'stat',
    queries: [
      {
        expr:
          `count(${largest('skyhook_name', `skyhookd_fleet_stalled{${chosen}}`)}) or ` +
          `0 * count(${largest('skyhook_name', `skyhook_node_target_count{${chosen}}`)})`,
        legend: '',
      },
    ],
    redFrom: 1,
  },
  {
    title: 'Nodes at work',
    description: 'Nodes in progress. A node that several Skyhooks work on counts once for each.',
    form: 'stat',
    queries: [
      {
        expr: `sum(${largest('skyhook_name, compartment_name', `skyhook_rollout_in_progress{${chosen}}`)})`,
        legend: '',
      },
    ],
  },
  {
    title: 'Longest wait or failure',
    description: 'How long the oldest reason of a node has lasted. This panel shows all Skyhooks.',
    form: 'stat',
    queries: [{ expr: 'max(skyhookd_reason_age_seconds)', legend: '' }],
    unit: 's',
  },
  {
    title: 'Why nodes are not complete',
    description: 'Nodes by Skyhook and reason. docs/usage/reasons.md says what each reason means and what to do.',
    form: 'table',
    queries: [{ expr: largest('skyhook_name, reason', `skyhookd_fleet_node_reasons{${chosen}}`), legend: '' }],
    headings: { skyhook_name: 'Skyhook', reason: 'Reason', Value: 'Nodes' },
  },
]

const skyhooks: readonly PanelSpec[] = [
  {
    title: 'Skyhooks by status',
    description: 'How many Skyhooks have which status.',
    queries: [
      {
        expr: `count by (status) (${largest('skyhook_name, status', `skyhook_status{${chosen}}`)} == 1)`,
        legend: '{{status}}',
      },
    ],
    isStacked: true,
  },
  {
    title: 'Nodes by status',
    description: 'Selected nodes by status. A node that several Skyhooks select counts once for each.',
    queries: [
      {
        expr: `sum by (status) (${largest('skyhook_name, status', `skyhook_node_status_count{${chosen}}`)})`,
        legend: '{{status}}',
      },
    ],
    isStacked: true,
  },
  {
    title: 'Progress',
    description: 'Percentage of the selected nodes that are complete for the current spec.',
    queries: [
      {
        expr:
          `100 * ${largest('skyhook_name', `skyhook_node_status_count{status="complete",${chosen}}`)} / ` +
          `(${largest('skyhook_name', `skyhook_node_target_count{${chosen}}`)} > 0)`,
        legend: '{{skyhook_name}}',
      },
    ],
    unit: 'percent',
  },
  {
    title: 'Reasons of nodes',
    description: 'Why nodes are not complete. docs/usage/reasons.md says what each reason means and what to do.',
    queries: [
      {
        expr: `sum by (reason) (${largest('skyhook_name, reason', `skyhookd_fleet_node_reasons{${chosen}}`)})`,
        legend: '{{reason}}',
      },
    ],
    isStacked: true,
  },
  {
    title: 'Stalled',
    description: 'Skyhooks for which someone has to act, with the reason of their condition Stalled.',
    queries: [
      {
        expr: largest('skyhook_name, reason', `skyhookd_fleet_stalled{${chosen}}`),
        legend: '{{skyhook_name}}: {{reason}}',
      },
    ],
    isStacked: true,
  },
  {
    title: 'Agents that do not answer',
    description: 'Selected nodes without a Ready agent: for less than 10 minutes (unready), and for longer (silent).',
    queries: [
      {
        expr: largest('skyhook_name, state', `skyhookd_fleet_agents{state=~"unready|silent",${chosen}}`),
        legend: '{{skyhook_name}}: {{state}}',
      },
    ],
  },
]

const compartment = 'skyhook_name, compartment_name'
const rollouts: readonly PanelSpec[] = [
  {
    title: 'Nodes in progress',
    description: 'Nodes in progress in each compartment, and how many its budget allows.',
    queries: [
      {
        expr: largest(compartment, `skyhook_rollout_in_progress{${chosen}}`),
        legend: '{{skyhook_name}} {{compartment_name}}',
      },
      {
        expr: largest(compartment, `skyhook_rollout_ceiling{${chosen}}`),
        legend: '{{skyhook_name}} {{compartment_name}} ceiling',
      },
    ],
  },
  {
    title: 'Complete nodes',
    description: 'Complete nodes of each compartment, and all of its nodes.',
    queries: [
      {
        expr: largest(compartment, `skyhook_rollout_completed{${chosen}}`),
        legend: '{{skyhook_name}} {{compartment_name}}',
      },
      {
        expr: largest(compartment, `skyhook_rollout_matched_nodes{${chosen}}`),
        legend: '{{skyhook_name}} {{compartment_name}} all',
      },
    ],
  },
  {
    title: 'Batches',
    description: 'Number of the current batch of each compartment with a strategy, and failed batches in a row.',
    queries: [
      {
        expr: largest(compartment, `skyhook_rollout_current_batch{${chosen}}`),
        legend: '{{skyhook_name}} {{compartment_name}}',
      },
      {
        expr: largest(compartment, `skyhook_rollout_consecutive_failures{${chosen}}`),
        legend: '{{skyhook_name}} {{compartment_name}} failed in a row',
      },
    ],
  },
]

const version = 'skyhook_name, package_name, package_version'
const packages: readonly PanelSpec[] = [
  {
    title: 'Packages by state',
    description: 'Nodes by the state of each version of a package.',
    queries: [
      {
        expr: `${largest(`${version}, state`, `skyhook_package_state_count{${chosen}}`)} > 0`,
        legend: '{{package_name}} {{package_version}} {{state}}',
      },
    ],
  },
  {
    title: 'Packages by stage',
    description: 'Nodes by the stage of each version of a package.',
    queries: [
      {
        expr: `${largest(`${version}, stage`, `skyhook_package_stage_count{${chosen}}`)} > 0`,
        legend: '{{package_name}} {{package_version}} {{stage}}',
      },
    ],
  },
  {
    title: 'Failed attempts',
    description: 'Failed attempts of the current stage of each version of a package, over all nodes.',
    queries: [
      {
        expr: largest(version, `skyhook_package_restarts_count{${chosen}}`),
        legend: '{{package_name}} {{package_version}}',
      },
    ],
  },
]

const hosts: readonly PanelSpec[] = [
  {
    title: 'Slots by phase',
    description: 'Nodes at work, by what they do. This panel shows all Skyhooks.',
    queries: [{ expr: 'sum by (phase) (skyhookd_slots)', legend: '{{phase}}' }],
    isStacked: true,
  },
  {
    title: 'Oldest reason',
    description: 'How long the longest wait or failure of each kind has lasted. This panel shows all Skyhooks.',
    queries: [{ expr: largest('reason', 'skyhookd_reason_age_seconds'), legend: '{{reason}}' }],
    unit: 's',
  },
  {
    title: 'Nodes that nobody looks after',
    description: 'Nodes at work whose agent is silent, and cordons that no Skyhook needs. Both should be 0.',
    queries: [
      {
        expr: largest('skyhook_name', `skyhookd_fleet_unattended_nodes{${chosen}}`),
        legend: '{{skyhook_name}}: unattended',
      },
      { expr: 'max(skyhookd_fleet_left_over_cordons)', legend: 'left-over cordons' },
    ],
  },
  {
    title: 'Agents by version',
    description: 'Agents that Prometheus scrapes, by version.',
    queries: [{ expr: 'count by (version) (skyhookd_build_info)', legend: '{{version}}' }],
    isStacked: true,
  },
]

const generation = `skyhookd_fleet_generation{${chosen}}`

/**
 * A line where the generation has risen since the step before. While the census moves no agent has the series:
 * `last_over_time` still knows what it was.
 */
export const edits = {
  name: 'Edits of Skyhooks',
  datasource: prometheus,
  enable: true,
  iconColor: 'blue',
  titleFormat: '{{skyhook_name}}',
  textFormat: 'The spec was edited, or the Skyhook was deleted.',
  expr:
    `${largest('skyhook_name', generation)} > ` +
    largest('skyhook_name', `last_over_time(${generation}[5m] offset $__interval)`),
}

/** Older versions of Grafana read the query itself, newer ones its target. */
const annotation = { ...edits, target: { refId: 'Anno', expr: edits.expr } }

/** The dashboard as Grafana imports it. */
export function dashboard(): Dashboard {
  let next = { firstId: 1, y: 0 }
  const rows = [
    ['Now', now] as const,
    ['Skyhooks', skyhooks] as const,
    ['Rollouts', rollouts] as const,
    ['Packages', packages] as const,
    ['Nodes', hosts] as const,
  ].map(([title, series]) => {
    const { panels, nextId, nextY } = rowOf(title, series, next)
    next = { firstId: nextId, y: nextY }
    return panels
  })
  return {
    title: 'skyhookd',
    uid: 'skyhookd',
    description: 'Rollouts of Skyhooks, and the agents that carry them out.',
    tags: ['skyhookd'],
    schemaVersion: 41,
    version: 1,
    editable: true,
    graphTooltip: DashboardCursorSync.Crosshair,
    refresh: '1m',
    time: { from: 'now-6h', to: 'now' },
    annotations: { list: [annotation] },
    templating: {
      list: [
        { type: 'datasource', name: 'datasource', label: 'Data source', query: 'prometheus' },
        {
          type: 'query',
          name: 'skyhook',
          label: 'Skyhook',
          datasource: prometheus,
          query: 'label_values(skyhook_node_target_count, skyhook_name)',
          refresh: VariableRefresh.onTimeRangeChanged,
          sort: VariableSort.alphabeticalAsc,
          multi: true,
          includeAll: true,
          allValue: '.+',
        },
      ],
    },
    panels: rows.flat(),
  }
}
