/** What each query of the dashboard has to show, by the recorded history of the objects alone. */
import { readSlot, type Lease } from '../../src/lease/slot.ts'
import { nodeStatuses, type Skyhook } from '../../src/schemas/skyhook.ts'
import { formatLabels, type Labels } from '../kit/objects/exposition.ts'
import { type Moment, nodesFor, skyhooksOf } from './history.ts'

/** Values by labels, as `key` writes them. */
export type Values = Map<string, number>
export const key = (labels: Labels): string => formatLabels(labels)

export type PanelTruth = {
  /** Who serves the series: the elected agent those of the fleet, and each agent those of its node. */
  readonly from: 'census' | 'agents'
  readonly valuesAt: (moment: Moment, atMs: number) => Values
  /** Of the value itself; default 0. */
  readonly tolerance?: number
  /** Labels of which the history says nothing. */
  readonly ignoring?: readonly string[]
}

type Selected = ReturnType<typeof nodesFor>
type Compartment = {
  readonly matched: number
  readonly ceiling: number
  readonly inProgress: number
  readonly completed: number
  readonly batchState?: { readonly currentBatch?: number; readonly consecutiveFailures?: number }
}

const selected = (moment: Moment, skyhook: Skyhook, atMs: number): Selected =>
  nodesFor(moment, skyhook, atMs).filter(({ isSelected }) => isSelected)

function statusOf({ agent, status }: Selected[number]): string {
  if (agent === 'silent') return 'unknown'
  return status ?? (agent === 'ready' ? 'waiting' : 'unknown')
}

function add(values: Values, labels: Labels, value: number): void {
  values.set(key(labels), (values.get(key(labels)) ?? 0) + value)
}

/** Of each Skyhook, one after the other. */
const overSkyhooks =
  (tell: (values: Values, skyhook: Skyhook, nodes: Selected, moment: Moment, atMs: number) => void) =>
  (moment: Moment, atMs: number): Values => {
    const values: Values = new Map()
    for (const skyhook of skyhooksOf(moment)) tell(values, skyhook, selected(moment, skyhook, atMs), moment, atMs)
    return values
  }

/** As the status has them; a Skyhook without a budget has one compartment without a ceiling of its own. */
const compartment = (valueOf: (compartment: Compartment) => number): PanelTruth => ({
  from: 'census',
  valuesAt: overSkyhooks((values, { metadata, status = {} }, nodes) => {
    const matched = nodes.length
    const whole: Compartment = {
      matched,
      ceiling: matched,
      inProgress: nodes.filter((node) => statusOf(node) === 'in_progress').length,
      completed: nodes.filter((node) => statusOf(node) === 'complete').length,
    }
    const found = (status['compartmentStatuses'] ?? { __default__: whole }) as Readonly<Record<string, Compartment>>
    for (const [name, one] of Object.entries(found))
      add(values, { skyhook_name: metadata.name, compartment_name: name }, valueOf(one))
  }),
})

const entries = (label: 'state' | 'stage'): PanelTruth => ({
  from: 'census',
  valuesAt: overSkyhooks((values, { metadata }, nodes) => {
    for (const { name, version, [label]: value } of nodes.flatMap((node) => node.entries))
      if (value !== undefined)
        add(values, { skyhook_name: metadata.name, package_name: name, package_version: version, [label]: value }, 1)
  }),
})

type Row = { readonly type: string; readonly status: string; readonly reason: string }

const isStalled = ({ type, status }: Row): boolean => type === 'Stalled' && status === 'True'
const conditionsOf = ({ status = {} }: Skyhook): readonly Row[] => (status['conditions'] ?? []) as readonly Row[]

/** One number of all values of another query; none where that has none. */
const folded = (truth: PanelTruth, fold: (values: readonly number[]) => number): PanelTruth => ({
  ...truth,
  valuesAt(moment, atMs) {
    const values = [...truth.valuesAt(moment, atMs).values()]
    return new Map(values.length === 0 ? [] : [[key({}), fold(values)]])
  },
})

const inProgress = compartment((one) => one.inProgress)
const oldestReason: PanelTruth = {
  from: 'agents',
  tolerance: 15,
  valuesAt(moment, atMs) {
    const values: Values = new Map()
    for (const skyhook of skyhooksOf(moment))
      for (const { agent, reason } of nodesFor(moment, skyhook, atMs)) {
        if (reason === undefined || agent !== 'ready') continue
        const name = key({ reason: reason.reason })
        values.set(name, Math.max(values.get(name) ?? 0, (atMs - Date.parse(reason.since)) / 1_000))
      }
    return values
  },
}

/** By title of the panel and letter of the query. */
export const panelTruths: Readonly<Record<string, PanelTruth>> = {
  'Nodes complete A': {
    from: 'census',
    valuesAt(moment, atMs) {
      const nodes = skyhooksOf(moment).flatMap((skyhook) => selected(moment, skyhook, atMs))
      const complete = nodes.filter((node) => statusOf(node) === 'complete').length
      return new Map(nodes.length === 0 ? [] : [[key({}), (100 * complete) / nodes.length]])
    },
  },
  'Stalled Skyhooks A': {
    from: 'census',
    valuesAt: overSkyhooks((values, skyhook) => add(values, {}, conditionsOf(skyhook).filter(isStalled).length)),
  },
  'Nodes at work A': folded(inProgress, (values) => values.reduce((sum, one) => sum + one, 0)),
  'Longest wait or failure A': folded(oldestReason, (values) => Math.max(...values)),
  'Why nodes are not complete A': {
    from: 'census',
    valuesAt: overSkyhooks((values, { metadata: { name } }, nodes) => {
      for (const node of nodes)
        if (node.reason !== undefined && statusOf(node) !== 'complete')
          add(values, { skyhook_name: name, reason: node.reason.reason }, 1)
    }),
  },
  'Skyhooks by status A': {
    from: 'census',
    valuesAt: overSkyhooks((values, { status = {} }) => {
      if (typeof status['status'] === 'string') add(values, { status: status['status'] }, 1)
    }),
  },
  'Nodes by status A': {
    from: 'census',
    valuesAt: overSkyhooks((values, _, nodes) => {
      for (const status of nodeStatuses) add(values, { status }, 0)
      for (const node of nodes) add(values, { status: statusOf(node) }, 1)
    }),
  },
  'Progress A': {
    from: 'census',
    valuesAt: overSkyhooks((values, { metadata }, nodes) => {
      const complete = nodes.filter((node) => statusOf(node) === 'complete').length
      if (nodes.length > 0) add(values, { skyhook_name: metadata.name }, (100 * complete) / nodes.length)
    }),
  },
  'Reasons of nodes A': {
    from: 'census',
    valuesAt: overSkyhooks((values, _, nodes) => {
      for (const node of nodes)
        if (node.reason !== undefined && statusOf(node) !== 'complete') add(values, { reason: node.reason.reason }, 1)
    }),
  },
  'Stalled A': {
    from: 'census',
    valuesAt: overSkyhooks((values, skyhook) => {
      for (const { reason } of conditionsOf(skyhook).filter(isStalled))
        add(values, { skyhook_name: skyhook.metadata.name, reason }, 1)
    }),
  },
  'Agents that do not answer A': {
    from: 'census',
    valuesAt: overSkyhooks((values, { metadata }, nodes) => {
      for (const state of ['unready', 'silent'])
        add(values, { skyhook_name: metadata.name, state }, nodes.filter(({ agent }) => agent === state).length)
    }),
  },
  'Nodes in progress A': inProgress,
  'Nodes in progress B': compartment(({ ceiling }) => ceiling),
  'Complete nodes A': compartment(({ completed }) => completed),
  'Complete nodes B': compartment(({ matched }) => matched),
  'Batches A': compartment(({ batchState }) => batchState?.currentBatch ?? 0),
  'Batches B': compartment(({ batchState }) => batchState?.consecutiveFailures ?? 0),
  'Packages by state A': entries('state'),
  'Packages by stage A': entries('stage'),
  'Failed attempts A': {
    from: 'census',
    valuesAt: overSkyhooks((values, { metadata, spec }, nodes) => {
      const of = { skyhook_name: metadata.name }
      for (const [name, { version }] of Object.entries(spec.packages ?? {}))
        add(values, { ...of, package_name: name, package_version: version }, 0)
      for (const { name, version, restarts = 0 } of nodes.flatMap((node) => node.entries))
        add(values, { ...of, package_name: name, package_version: version }, restarts)
    }),
  },
  'Slots by phase A': {
    from: 'agents',
    valuesAt(moment) {
      const values: Values = new Map()
      for (const lease of moment.leases.values()) {
        const slot = readSlot(lease as unknown as Lease)
        if (slot !== undefined && !moment.agentAwaySinceMs.has(slot.holder)) add(values, { phase: slot.phase }, 1)
      }
      return values
    },
  },
  'Oldest reason A': oldestReason,
  'Nodes that nobody looks after A': {
    from: 'census',
    valuesAt: overSkyhooks((values, { metadata }, nodes) => {
      const isAtWork = ({ status }: Selected[number]): boolean => status === 'in_progress' || status === 'erroring'
      const unattended = nodes.filter((node) => node.agent === 'silent' && isAtWork(node))
      add(values, { skyhook_name: metadata.name }, unattended.length)
    }),
  },
  'Nodes that nobody looks after B': {
    from: 'census',
    valuesAt(moment, atMs) {
      const leftOver = new Set(
        skyhooksOf(moment).flatMap((skyhook) =>
          nodesFor(moment, skyhook, atMs)
            .filter((node) => node.hasCordonMark && (!node.isSelected || node.status === 'complete'))
            .map(({ name }) => name),
        ),
      )
      return new Map([[key({}), leftOver.size]])
    },
  },
  'Agents by version A': {
    from: 'agents',
    ignoring: ['version'],
    valuesAt({ nodes, agentAwaySinceMs }) {
      const agents = nodes.size - agentAwaySinceMs.size
      return new Map(agents === 0 ? [] : [[key({}), agents]])
    },
  },
}
