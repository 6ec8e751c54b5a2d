/** The conditions of a Skyhook: three in the kstatus convention, those of the operator, and ours. */
import type { Ledger } from '../../lease/ledger.ts'
import { disableKey, ignoreLabel, type NodeStateEntry, nodeStateKey, pauseKey } from '../../schemas/annotations.ts'
import { apiGroup } from '../../schemas/api.ts'
import type { SkyhookConditionReason } from '../../schemas/catalogue/conditions.ts'
import type { ReasonName } from '../../schemas/catalogue/reasons.ts'
import { clip, plainExcerpt } from '../../schemas/plain-text.ts'
import type { NodeStatus, Skyhook } from '../../schemas/skyhook.ts'
import { formatTime } from '../../schemas/time.ts'
import { named } from '../../schemas/wording.ts'
import { hasFailed, nodesWithoutBudget, rolloutProblem } from './compartment-status.ts'
import { type Counts, isFailing } from '../model/count.ts'
import type { FinalizerPlan } from '../model/finalizer.ts'
import type { NodeFact } from '../model/node-facts.ts'
import { operatorConditions, policyNotFound } from './operator-conditions.ts'
import {
  type Condition,
  type ConditionContent,
  conditionOf,
  type NodeState,
  statusOf,
} from '../model/skyhook-status.ts'
import { formatIncompleteNodes, formatNodeNames, maxDetailLength } from '../model/summary-text.ts'

export type ConditionsInput = {
  /** With the status before, if there was one. */
  readonly skyhook: Skyhook
  readonly counts: Counts
  /** The current one, with the state of the batches. */
  readonly ledger?: Ledger | undefined
  readonly status: NodeStatus
  readonly finalizer: FinalizerPlan
  /** The spec has just changed the work of the nodes: complete nodes may not have seen it, and prove nothing. */
  readonly isSpecPropagating: boolean
  /** The census saw that change a moment ago: a failure or block may be about the previous spec, just corrected. */
  readonly mayFailuresBeOld: boolean
  /** Wall clock. */
  readonly nowMs: number
}

/** The resource definition refuses a whole status for one message above 32,768 characters. */
const maxMessageLength = 4_096

/** All conditions. A transition time changes only with the status of its condition. Conditions of others stay. */
export function nextConditions(input: ConditionsInput): readonly Condition[] {
  const { skyhook, counts, status } = input
  const now = formatTime(input.nowMs)
  const previous = statusOf(skyhook)
  const contents = [
    ...kstatusConditions(input),
    ...operatorConditions(skyhook, counts, status),
    ...problemConditions(counts),
  ]
  const types = new Set<string>(contents.map(({ type }) => type))
  types.add(policyNotFound) // removed when the policy exists, or is no longer named
  const others = (previous?.conditions ?? []).filter(({ type }) => !types.has(type))
  const ours = contents.map(({ type, status, reason, message }): Condition => {
    const before = conditionOf(previous, type)
    const lastTransitionTime = before?.status === status ? before.lastTransitionTime : now
    const observedGeneration = skyhook.metadata.generation ?? 0
    return {
      type,
      status,
      observedGeneration,
      lastTransitionTime,
      reason,
      message: plainExcerpt(message, maxMessageLength),
    }
  })
  return [...ours, ...others]
}

/**
 * Whether all selected nodes were complete for this generation once. Nodes that join or start over later make Ready
 * False, and not this.
 */
function convergedCondition({ skyhook }: ConditionsInput, isReady: boolean): ConditionContent {
  const type = `${apiGroup}/Converged` as const
  const before = conditionOf(statusOf(skyhook), type)
  const wasConverged = before?.status === 'True' && before.observedGeneration === skyhook.metadata.generation
  return isReady || wasConverged
    ? {
        type,
        status: 'True',
        reason: 'Converged',
        message: 'all nodes selected at that time completed this generation',
      }
    : {
        type,
        status: 'False',
        reason: 'NotConverged',
        message: 'no count has found all nodes complete for this generation',
      }
}

/** Ready only when nothing is planned on any selected node. Stalled: it will not complete by itself. */
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
    convergedCondition(input, status === 'True' && reason === 'Complete'),
  ]
}

const isDeleting = ({ metadata }: Skyhook): boolean => metadata.deletionTimestamp !== undefined

function readyOf(input: ConditionsInput): Omit<ConditionContent<'Ready'>, 'type'> {
  const { skyhook, counts, status, finalizer, isSpecPropagating, mayFailuresBeOld } = input
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
  if (complete === nodes.length ? isSpecPropagating : mayFailuresBeOld && heldStatus(input) !== undefined)
    return { status: 'False', reason: 'SpecChanged', message: 'waiting for nodes to observe the new spec' }
  if (nodes.length === 0)
    return { status: 'True', reason: 'NoNodeSelected', message: 'spec.nodeSelectors matches no node' }
  if (complete === nodes.length)
    return { status: 'True', reason: 'Complete', message: `${nodesMessage}${formatFoundComplete(skyhook, nodes)}` }
  if (status === 'unknown') return { status: 'Unknown', reason: 'NodesUnknown', message: nodesMessage }
  return { status: 'False', reason: readyReason[status], message: nodesMessage }
}

/**
 * Why the nodes do not continue. Erroring also while every active node retries: it does not change with each attempt.
 */
function heldStatus({ status, counts }: ConditionsInput): 'erroring' | 'blocked' | undefined {
  if (status === 'erroring' || status === 'blocked') return status
  const atWork = counts.nodes.filter((node) => node.status === 'in_progress')
  return status === 'in_progress' && atWork.every(isFailing) ? 'erroring' : undefined
}

/** No step ran on these nodes, which may be a surprise. */
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

const obstacles = {
  pause: `annotation ${pauseKey}`,
  disable: `annotation ${disableKey}`,
  ignore: `label ${ignoreLabel} of the nodes`,
} as const

function stalledOf(input: ConditionsInput): Pick<ConditionContent<'Stalled'>, 'reason' | 'message'> | undefined {
  const { skyhook, counts, finalizer, mayFailuresBeOld, nowMs } = input
  if (isDeleting(skyhook) && finalizer.action === 'wait' && finalizer.blockedBy !== undefined) {
    const nodes = formatNodeNames(finalizer.nodes)
    const message = `remove the ${obstacles[finalizer.blockedBy]}; packages must be uninstalled from ${nodes}`
    return { reason: 'DeletionBlocked', message }
  }
  if (counts.specProblem !== undefined) return { reason: 'InvalidSpec', message: counts.specProblem }
  const problem = rolloutProblem({ skyhook, counts, ledger: input.ledger, nowMs })
  if (problem !== undefined && !(mayFailuresBeOld && problem.reason === 'FailedNodesHoldBudget')) return problem
  return mayFailuresBeOld || counts.isPaused || counts.isDisabled ? undefined : failedNodes(input)
}

/** All incomplete nodes have failed for good, are silent, or wait in a line that does not move. */
function failedNodes(input: ConditionsInput): Pick<ConditionContent<'Stalled'>, 'reason' | 'message'> | undefined {
  const { counts, skyhook, ledger, nowMs } = input
  const failed = counts.nodes.filter((node) => hasFailed(node, nowMs))
  if (failed.length === 0) return undefined
  const held = nodesWithoutBudget({ counts, skyhook, ledger })
  const isAtEnd = (node: NodeFact): boolean =>
    node.status === 'complete' || node.agent === 'silent' || held.has(node) || hasFailed(node, nowMs)
  if (!counts.nodes.every(isAtEnd)) return undefined
  // also one that retries, or waits without a slot: the message does not change with each attempt
  const shown = failed.map(
    (node): NodeFact => ({ ...node, status: node.status === 'blocked' ? 'blocked' : 'erroring' }),
  )
  return {
    reason: shown.some(({ status }) => status === 'erroring') ? 'NodesErroring' : 'NodesBlocked',
    message: `${failed.length} of ${counts.nodes.length} nodes${formatIncompleteNodes(shown)}`,
  }
}

/** Conditions about problems that one node's reason or entry shows, and that users look for on the Skyhook. */

/** Nodes whose drain is blocked, the worst first, and nodes whose uninstall fails. */
export const problemConditions = (counts: Counts): ConditionContent[] => [
  drainBlockedCondition(counts),
  uninstallFailedCondition(counts),
]

const drainBlocked: ReasonName = 'DrainBlocked'
/** Each with its pods and budgets. */
const maxDrains = 5

/** The node whose drain has been blocked for the longest time comes first. */
function drainBlockedCondition({ nodes }: Counts): ConditionContent {
  const type = `${apiGroup}/DrainBlocked` as const
  const blocked = nodes
    .filter(({ agent, reason }) => reason?.reason === drainBlocked && agent !== 'silent')
    .toSorted((a, b) => blockedSinceMs(a) - blockedSinceMs(b) || (a.name < b.name ? -1 : 1))
  if (blocked.length === 0) return { type, status: 'False', reason: 'NotBlocked', message: 'no drain is blocked' }
  const drains = blocked.map((node) => {
    const sinceMs = blockedSinceMs(node)
    const since = sinceMs === Infinity ? '' : ` since ${formatTime(sinceMs)}`
    return `${node.name}${since} (${clip(node.reason?.message ?? '', maxDetailLength)})`
  })
  const message = `blocked drains: ${blocked.length}, the longest first: ${named(drains, maxDrains)}`
  return { type, status: 'True', reason: 'DrainBlocked', message }
}

const blockedSinceMs = ({ reason }: NodeFact): number => reason?.sinceMs ?? Infinity

/** An uninstall that failed is retried. That of a package which left the spec is given up after some attempts. */
function uninstallFailedCondition({ nodes }: Counts): ConditionContent {
  const type = `${apiGroup}/UninstallFailed` as const
  const read = new Map<NodeState, readonly NodeStateEntry[]>() // most nodes of a fleet share theirs
  const uninstallsIn = (entries: NodeState): readonly NodeStateEntry[] => {
    const known = read.get(entries) ?? Object.values(entries).filter(({ stage }) => stage === 'uninstall')
    read.set(entries, known)
    return known
  }
  const uninstalls = nodes.flatMap(({ name, entries }) =>
    uninstallsIn(entries).map((entry) => ({ entry, text: `${name} (${entry.name} ${entry.version})` })),
  )
  const givenUp = uninstalls.filter(({ entry }) => entry.state === 'unknown')
  // also during the next attempt, so that the message does not change with each
  const failing = uninstalls.filter(
    ({ entry: { state, restarts = 0 } }) => state === 'erroring' || (state === 'in_progress' && restarts > 0),
  )
  if (givenUp.length === 0 && failing.length === 0)
    return { type, status: 'False', reason: 'NotFailed', message: 'no uninstall has failed' }
  const say = (what: string, list: typeof uninstalls): string[] =>
    list.length === 0 ? [] : [`${what}: ${formatNodeNames(list.map(({ text }) => text))}`]
  const message = [...say('given up', givenUp), ...say('tried again', failing)].join('; ')
  return { type, status: 'True', reason: 'UninstallFailed', message }
}
