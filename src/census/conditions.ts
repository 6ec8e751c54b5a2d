/** The conditions of a Skyhook: three in the kstatus convention, and those of the operator. */
import { disableKey, nodeStateKey, pauseKey } from '../schemas/annotations.ts'
import { apiGroup } from '../schemas/api.ts'
import type { SkyhookConditionReason, SkyhookConditionType } from '../schemas/catalogue/conditions.ts'
import type { NodeStatus, Skyhook } from '../schemas/skyhook.ts'
import type { Counts } from './count.ts'
import type { FinalizerPlan } from './finalizer.ts'
import type { NodeFact } from './node-facts.ts'
import { formatNodeNames, formatIncompleteNodes } from './summary-text.ts'
import { conditionOf, statusOf, type Condition, type SkyhookStatus } from './skyhook-status.ts'

export type ConditionsInput = {
  /** With the status before, if there was one. */
  readonly skyhook: Skyhook
  readonly counts: Counts
  readonly status: NodeStatus
  readonly finalizer: FinalizerPlan
  /** The spec has just changed what the nodes have to do: complete nodes may not have seen it, and prove nothing. */
  readonly isSpecPropagating: boolean
  /** RFC 3339, for conditions that change. */
  readonly now: string
}

/** Type and reason are names of the catalogue. */
type ConditionContent<Type extends SkyhookConditionType = SkyhookConditionType> = Type extends unknown
  ? Pick<Condition, 'status' | 'message'> & { readonly type: Type; readonly reason: SkyhookConditionReason<Type> }
  : never

/** All conditions. A transition time changes only with the status of its condition. Conditions of others stay. */
export function nextConditions(input: ConditionsInput): readonly Condition[] {
  const { skyhook, counts, status, now } = input
  const previous = statusOf(skyhook)
  const contents = [...kstatusConditions(input), ...operatorConditions(counts, status, previous)]
  const types = new Set<string>(contents.map(({ type }) => type))
  if (!skyhook.spec.deploymentPolicy) types.add(`${apiGroup}/DeploymentPolicyNotFound`) // goes with the policy's name
  const others = (previous?.conditions ?? []).filter(({ type }) => !types.has(type))
  const ours = contents.map(({ type, status, reason, message }): Condition => {
    const before = conditionOf(previous, type)
    const lastTransitionTime = before?.status === status ? before.lastTransitionTime : now
    const observedGeneration = skyhook.metadata.generation ?? 0
    return { type, status, observedGeneration, lastTransitionTime, reason, message }
  })
  return [...ours, ...others]
}

/** Ready only when nothing is planned on any selected node. Stalled: it continues only by retries, or not by itself. */
function kstatusConditions(input: ConditionsInput): ConditionContent[] {
  const { status, reason, message } = readyOf(input)
  const stalled = stalledOf(input)
  const isMoving = status !== 'True' && stalled === undefined && reason !== 'Paused' && reason !== 'Disabled'
  return [
    { type: 'Ready', status, reason, message },
    {
      type: 'Reconciling',
      status: isMoving ? 'True' : 'False',
      reason: isMoving ? reason : status === 'True' ? 'Complete' : stalled === undefined ? reason : 'Stalled',
      message: isMoving ? message : status === 'True' ? 'all nodes are complete' : 'nothing is in progress',
    },
    stalled === undefined
      ? { type: 'Stalled', status: 'False', reason: 'NotStalled', message: 'no node is stalled' }
      : { type: 'Stalled', status: 'True', ...stalled },
  ]
}

const isDeleting = ({ metadata }: Skyhook): boolean => metadata.deletionTimestamp !== undefined

function readyOf(input: ConditionsInput): Omit<ConditionContent<'Ready'>, 'type'> {
  const { skyhook, counts, status, finalizer, isSpecPropagating } = input
  const { nodes, complete, specProblem } = counts
  const nodesMessage = `${complete} of ${nodes.length} nodes complete${formatIncompleteNodes(nodes)}`
  if (isDeleting(skyhook)) {
    const remaining =
      finalizer.action === 'wait' && finalizer.nodes.length > 0
        ? `; still uninstalling: ${formatNodeNames(finalizer.nodes)}`
        : ''
    return { status: 'False', reason: 'Deleting', message: `the Skyhook is being deleted${remaining}` }
  }
  if (specProblem !== undefined) return { status: 'False', reason: 'InvalidSpec', message: specProblem }
  if (complete === nodes.length && isSpecPropagating)
    return { status: 'False', reason: 'SpecChanged', message: 'waiting for nodes to observe the new spec' }
  if (nodes.length === 0)
    return { status: 'True', reason: 'NoNodesSelected', message: 'spec.nodeSelectors matches no node' }
  if (complete === nodes.length)
    return { status: 'True', reason: 'Complete', message: `${nodesMessage}${formatFoundComplete(skyhook, nodes)}` }
  if (status === 'unknown') return { status: 'Unknown', reason: 'NodesUnknown', message: nodesMessage }
  return { status: 'False', reason: readyReason[status], message: nodesMessage }
}

/** Nothing ran for these nodes, which may be a surprise. */
function formatFoundComplete({ metadata }: Skyhook, nodes: readonly NodeFact[]): string {
  const found = nodes.filter(({ isFoundComplete }) => isFoundComplete)
  if (found.length === 0) return ''
  const remedy = `remove the annotation ${nodeStateKey(metadata.name)} of a node to run its packages again`
  return `; ${found.length} from before this Skyhook was created: ${remedy}`
}

const readyReason = {
  complete: 'Complete',
  unknown: 'NodesUnknown',
  in_progress: 'InProgress',
  erroring: 'NodesErroring',
  blocked: 'NodesBlocked',
  waiting: 'Waiting',
  paused: 'Paused',
  disabled: 'Disabled',
} as const satisfies Record<NodeStatus, SkyhookConditionReason<'Ready'>>

function stalledOf(input: ConditionsInput): Pick<ConditionContent<'Stalled'>, 'reason' | 'message'> | undefined {
  const { skyhook, counts, status, finalizer } = input
  if (isDeleting(skyhook) && finalizer.action === 'wait' && finalizer.blockedBy !== undefined) {
    const annotation = finalizer.blockedBy === 'pause' ? pauseKey : disableKey
    const nodes = formatNodeNames(finalizer.nodes)
    const message = `remove the annotation ${annotation}; packages must be uninstalled from ${nodes}`
    return { reason: 'DeletionBlocked', message }
  }
  if (counts.specProblem !== undefined) return { reason: 'InvalidSpec', message: counts.specProblem }
  if (status !== 'erroring' && status !== 'blocked') return undefined
  const stalledNodes = counts.nodes.filter((node) => node.status === status)
  return {
    reason: readyReason[status],
    message: `${stalledNodes.length} of ${counts.nodes.length} nodes${formatIncompleteNodes(stalledNodes)}`,
  }
}

/** The operator's conditions, in its words, with at most twenty names. */
function operatorConditions(
  counts: Counts,
  status: NodeStatus,
  previous: SkyhookStatus | undefined,
): ConditionContent[] {
  const namesOf = (test: (node: NodeFact) => boolean): string =>
    formatNodeNames(counts.nodes.filter(test).map(({ name }) => name))
  const untolerated = namesOf(({ reason }) => reason?.reason === 'TaintNotTolerated')
  const ignored = namesOf(({ isIgnored }) => isIgnored)
  return [
    ...transitionCondition(status, previous),
    ...applyPackageCondition(counts, previous),
    {
      type: `${apiGroup}/TaintNotTolerable`,
      reason: 'TaintNotTolerable',
      ...(untolerated === ''
        ? { status: 'False', message: 'All nodes have tolerable taints.' }
        : { status: 'True', message: `Node [${untolerated}] has taints that are not tolerable. Skipping.` }),
    },
    {
      type: `${apiGroup}/NodesIgnored`,
      reason: 'NodesIgnored',
      ...(ignored === ''
        ? { status: 'False', message: 'No nodes have ignore label set.' }
        : { status: 'True', message: `Node [${ignored}] has ignore label set. Skipping.` }),
    },
  ]
}

function transitionCondition(status: NodeStatus, previous: SkyhookStatus | undefined): ConditionContent[] {
  const type = `${apiGroup}/Transition` as const
  const before = previous?.status
  const last = conditionOf(previous, type)
  // the operator leaves out the first one
  if (before === undefined || (before === status && last === undefined)) return []
  const message = before === status && last !== undefined ? last.message : `Transitioned [${before}] -> [${status}]`
  return [{ type, status: status === 'complete' ? 'True' : 'False', reason: status, message }]
}

/** The latest package that a node started; of many since the last write, the last by name. */
function applyPackageCondition({ nodes }: Counts, previous: SkyhookStatus | undefined): ConditionContent[] {
  const type = `${apiGroup}/ApplyPackage` as const
  const messages = nodes.flatMap(({ name, entries }) => {
    const before = previous?.nodeState?.[name]
    if (before === undefined && previous?.nodeStateTruncated === true) return [] // it may be an old one
    return Object.entries(entries)
      .filter(
        ([key, { stage, state }]) =>
          state === 'in_progress' && (before?.[key]?.state !== 'in_progress' || before[key].stage !== stage),
      )
      .map(([, entry]) => `Applying package [${entry.name}:${entry.version}] to node [${name}]`)
  })
  const message = messages.at(-1) ?? conditionOf(previous, type)?.message
  return message === undefined ? [] : [{ type, status: 'True', reason: 'ApplyPackage', message }]
}
