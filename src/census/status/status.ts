import { ownValue } from '../../schemas/json.ts'
import type { ConfigUpdates } from '../../schemas/rolled-out-configs.ts'
import type { NodeStatus, Skyhook, SkyhookSpec } from '../../schemas/skyhook.ts'
import { changedKeys } from '../../stages/model/package-inputs.ts'
import { compartmentStatuses } from './compartment-status.ts'
import { type ConditionsInput, nextConditions } from './conditions.ts'
import { rollUp } from '../model/count.ts'
import type { NodeFact } from '../model/node-facts.ts'
import {
  conditionOf,
  type NodeState,
  type SkyhookStatus,
  statusesByUrgency,
  statusOf,
} from '../model/skyhook-status.ts'

export type StatusInput = Omit<ConditionsInput, 'status'> & {
  /** Of edits since the nodes were complete; by default those of the status before. */
  readonly configUpdates?: ConfigUpdates | undefined
  /** The API server serves the group of NodeWright; by default it does not. */
  readonly isNodeWrightServed?: boolean
}

/**
 * The status that follows from the counts and from the status before, which has transition times and fields of others.
 * The same counts give the same status again, so that nothing is written when nothing changed.
 */
export function nextStatus({
  skyhook,
  counts,
  ledger,
  finalizer,
  isSpecPropagating,
  mayFailuresBeOld,
  configUpdates = statusOf(skyhook)?.configUpdates ?? {},
  isNodeWrightServed = false,
  nowMs,
}: StatusInput): SkyhookStatus {
  const { nodes, complete } = counts
  const status = rollUp(counts)
  const compartments = compartmentStatuses({ skyhook, counts, ledger })
  // once all nodes have picked the keys up, they would keep the operator from the interrupts of nodes that join
  const isPickedUp = nodes.length > 0 && status === 'complete' && !isSpecPropagating
  const count = (test: (node: NodeFact) => boolean): number => nodes.filter(test).length
  return {
    ...preservedFields(statusOf(skyhook)),
    observedGeneration: skyhook.metadata.generation ?? 0,
    ...((!isNodeWrightServed || letsNodeWrightWork.has(status)) && { status }),
    conditions: nextConditions({
      skyhook,
      counts,
      ledger,
      status,
      finalizer,
      isSpecPropagating,
      mayFailuresBeOld,
      nowMs,
    }),
    ...nodeMaps(nodes),
    ...(compartments && { compartmentStatuses: compartments }),
    ...(!isPickedUp && Object.keys(configUpdates).length > 0 && { configUpdates }),
    nodesInProgress: count(isInProgress),
    completeNodes: `${complete}/${nodes.length}`,
    packageList: packageList(skyhook),
    nodesSelected: nodes.length,
    nodesUpdated: complete,
    nodesReady: count((node) => node.status === 'complete' && node.isInService),
    nodesUnavailable: count(({ isCordoned }) => isCordoned),
    nodesPending: count((node) => node.status !== 'complete' && !isInProgress(node) && node.agent !== 'silent'),
  }
}

/** With any other status of one Skyhook, NodeWright works on none; what it left there stays. */
const letsNodeWrightWork: ReadonlySet<NodeStatus> = new Set(['complete', 'paused', 'disabled'])

/** Whether somebody may be waiting for the change: a condition turned, or now holds for another generation. */
export function isUrgent(before: SkyhookStatus | undefined, after: SkyhookStatus): boolean {
  return ['Ready', 'Reconciling', 'Stalled'].some((type) => {
    const [was, is] = [conditionOf(before, type), conditionOf(after, type)]
    return was?.status !== is?.status || was?.observedGeneration !== is?.observedGeneration
  })
}

const isInProgress = ({ status }: NodeFact): boolean => status === 'in_progress' || status === 'erroring'

/** What others wrote stays, except for what is written again, and the operator's maps that would age and grow. */
function preservedFields(previous: SkyhookStatus | undefined): SkyhookStatus {
  const preserved: Record<string, unknown> = { ...previous }
  for (const field of ['nodeBootIds', 'nodePriority', 'compartmentStatuses', 'configUpdates']) delete preserved[field]
  return preserved
}

function packageList({ spec }: Skyhook): string {
  return Object.entries(spec.packages ?? {})
    .map(([name, { version }]) => `${name}:${version}`)
    .toSorted()
    .join(',')
}

type NodeMaps = {
  readonly nodeState: Readonly<Record<string, NodeState>>
  readonly nodeStatus: Readonly<Record<string, NodeStatus>>
  readonly nodeStateTruncated: boolean
}

/** Leaves room in an object of 256 KiB for a spec, the conditions and what others keep in the status. */
const maxMapsBytes = 96 * 1024
const maxNodesWhenTruncated = 100

const urgencyOf = ({ status }: NodeFact): number => statusesByUrgency.indexOf(status)

/** State and status of every node, or, where that is too large, of at most 100 incomplete ones within that size. */
function nodeMaps(nodes: readonly NodeFact[], limitBytes = maxMapsBytes): NodeMaps {
  const whole = fill(nodes, limitBytes)
  if (whole !== undefined) return { ...whole, nodeStateTruncated: false }
  const incomplete = nodes
    .filter(({ status }) => status !== 'complete')
    .toSorted((a, b) => urgencyOf(a) - urgencyOf(b) || (a.name < b.name ? -1 : 1))
    .slice(0, maxNodesWhenTruncated)
  for (let nodeCount = incomplete.length; ; nodeCount = Math.floor(nodeCount / 2)) {
    const part = fill(incomplete.slice(0, nodeCount), limitBytes)
    if (part !== undefined) return { ...part, nodeStateTruncated: true }
  }
}

function fill(nodes: readonly NodeFact[], limitBytes: number): Omit<NodeMaps, 'nodeStateTruncated'> | undefined {
  const nodeState: Record<string, NodeState> = {}
  const nodeStatus: Record<string, NodeStatus> = {}
  let bytes = 0
  for (const { name, entries, status } of nodes) {
    // quotes, colons and commas
    bytes += 2 * name.length + status.length + Buffer.byteLength(JSON.stringify(entries)) + 10
    if (bytes > limitBytes) return undefined
    nodeState[name] = entries
    nodeStatus[name] = status
  }
  return { nodeState, nodeStatus }
}

/**
 * `status.configUpdates`, for the way back: the keys of a configMap that the nodes still have to pick up. The operator
 * derives from them which interrupt is due. Agents read it for packages that the operator has left half done.
 */

/**
 * The keys known so far and those that an edit added, changed or removed, for packages that both specs have at the same
 * version: at another one everything is installed. Packages beyond 16 KiB are left out.
 */
export function updatesAfterEdit(known: ConfigUpdates, before: SkyhookSpec, after: SkyhookSpec): ConfigUpdates {
  const updates: Record<string, readonly string[]> = {}
  let bytes = 0
  const packages = Object.entries(after.packages ?? {}).toSorted(([a], [b]) => (a < b ? -1 : 1))
  for (const [name, { version, configMap = {} }] of packages) {
    const old = ownValue(before.packages, name)
    if (old?.version !== version) continue
    const changed = changedKeys(old.configMap ?? {}, configMap)
    const keys = [...new Set([...(ownValue(known, name) ?? []), ...changed])].toSorted()
    bytes += keys.length === 0 ? 0 : Buffer.byteLength(JSON.stringify([name, keys]))
    if (keys.length > 0 && bytes <= maxUpdatesBytes) updates[name] = keys
  }
  return updates
}

/** Keeps the status small where configMaps have many keys; nobody has seen so many change at once. */
const maxUpdatesBytes = 16 * 1024
