import type { Ledger } from '../lease/ledger.ts'
import type { NodeStatus, Skyhook } from '../schemas/skyhook.ts'
import { compartmentStatuses } from './compartment-status.ts'
import { nextConditions } from './conditions.ts'
import type { ConfigUpdates } from '../schemas/config-updates.ts'
import { rollUp, type Counts } from './count.ts'
import type { FinalizerPlan } from './finalizer.ts'
import type { NodeFact } from './node-facts.ts'
import { nodeMaps } from './status-maps.ts'
import { conditionOf, statusOf, type SkyhookStatus } from './skyhook-status.ts'

export type StatusInput = {
  readonly skyhook: Skyhook
  readonly counts: Counts
  /** The current one, with the state of the batches. */
  readonly ledger?: Ledger | undefined
  readonly finalizer: FinalizerPlan
  readonly isSpecPropagating: boolean
  readonly mayFailuresBeOld: boolean
  /** Of edits since the nodes were complete; by default those of the status before. */
  readonly configUpdates?: ConfigUpdates | undefined
  /** The API server serves the group of NodeWright; by default it does not. */
  readonly isNodeWrightServed?: boolean
  readonly nowMs: number
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
