/** The conditions of a Skyhook: three by kstatus for machines, and those of the original operator. */
import { disableKey, pauseKey, prefix } from '../schemas/annotations.ts'
import type { NodeStatus } from '../schemas/skyhook.ts'
import type { Counts } from './count.ts'
import type { FinalizerPlan } from './finalizer.ts'
import { nodeList, stateOfNodes } from './summary-text.ts'
import { conditionOf, type Condition, type SkyhookStatus } from './skyhook-status.ts'

export type ConditionsInput = {
  readonly generation: number
  readonly counts: Counts
  readonly status: NodeStatus
  readonly finalizer: FinalizerPlan
  readonly isDeleting: boolean
  /** The spec has just changed what the nodes have to do: they may not have seen it, so complete nodes prove nothing yet. */
  readonly isFresh: boolean
  readonly hasPolicy: boolean
  readonly previous: SkyhookStatus | undefined
  /** RFC 3339, for conditions that change. */
  readonly now: string
}

type Said = Pick<Condition, 'type' | 'status' | 'reason' | 'message'>

/** All conditions; a time of transition changes only where the status of a condition did. Conditions of others are kept. */
export function nextConditions(input: ConditionsInput): readonly Condition[] {
  const { generation, previous, now } = input
  const said = [...kstatus(input), ...incumbent(input)]
  const types = new Set(said.map(({ type }) => type))
  if (!input.hasPolicy) types.add(`${prefix}/DeploymentPolicyNotFound`) // goes with the policy's name
  const others = (previous?.conditions ?? []).filter(({ type }) => !types.has(type))
  const ours = said.map(({ type, status, reason, message }): Condition => {
    const before = conditionOf(previous, type)
    const lastTransitionTime = before?.status === status ? before.lastTransitionTime : now
    return { type, status, observedGeneration: generation, lastTransitionTime, reason, message }
  })
  return [...ours, ...others]
}

/** Ready only when nothing is planned on any selected node. Stalled = it does not go on by itself, or only by trying again. */
function kstatus(input: ConditionsInput): Said[] {
  const { status, reason, message } = readyOf(input)
  const stalled = stalledOf(input)
  const isMoving = status !== 'True' && stalled === undefined && reason !== 'Paused' && reason !== 'Disabled'
  return [
    { type: 'Ready', status, reason, message },
    {
      type: 'Reconciling',
      status: isMoving ? 'True' : 'False',
      reason: isMoving ? reason : status === 'True' ? 'Complete' : stalled === undefined ? reason : 'Stalled',
      message: isMoving ? message : status === 'True' ? 'nothing is left to do' : 'nothing moves at the moment',
    },
    stalled === undefined
      ? { type: 'Stalled', status: 'False', reason: 'NotStalled', message: 'no node is held up' }
      : { type: 'Stalled', status: 'True', ...stalled },
  ]
}

function readyOf({ counts, status, finalizer, isDeleting, isFresh }: ConditionsInput): Omit<Said, 'type'> {
  const { nodes, complete, specProblem } = counts
  const nodesSay = `${complete} of ${nodes.length} nodes complete${stateOfNodes(nodes)}`
  if (isDeleting) {
    const left = finalizer.do === 'wait' && finalizer.nodes.length > 0 ? `; still to uninstall: ${nodeList(finalizer.nodes)}` : ''
    return { status: 'False', reason: 'Deleting', message: `the Skyhook is being deleted${left}` }
  }
  if (specProblem !== undefined) return { status: 'False', reason: 'InvalidSpec', message: specProblem }
  if (complete === nodes.length && isFresh)
    return { status: 'False', reason: 'SpecChanged', message: 'the nodes are given a moment to see the change' }
  if (nodes.length === 0) return { status: 'True', reason: 'NoNodesSelected', message: 'spec.nodeSelectors matches no node' }
  if (complete === nodes.length) return { status: 'True', reason: 'Complete', message: nodesSay }
  if (status === 'unknown') return { status: 'Unknown', reason: 'NodesUnknown', message: nodesSay }
  return { status: 'False', reason: readyReason[status], message: nodesSay }
}

const readyReason: Record<NodeStatus, string> = {
  complete: 'Complete',
  unknown: 'NodesUnknown',
  in_progress: 'InProgress',
  erroring: 'NodesErroring',
  blocked: 'NodesBlocked',
  waiting: 'Waiting',
  paused: 'Paused',
  disabled: 'Disabled',
}

function stalledOf({ counts, status, finalizer, isDeleting }: ConditionsInput): Pick<Said, 'reason' | 'message'> | undefined {
  if (isDeleting && finalizer.do === 'wait' && finalizer.heldBy !== undefined) {
    const annotation = finalizer.heldBy === 'pause' ? pauseKey : disableKey
    const message = `remove the annotation ${annotation}: packages have to be uninstalled from ${nodeList(finalizer.nodes)}`
    return { reason: 'DeletionBlocked', message }
  }
  if (counts.specProblem !== undefined) return { reason: 'InvalidSpec', message: counts.specProblem }
  if (status !== 'erroring' && status !== 'blocked') return undefined
  const held = counts.nodes.filter((node) => node.status === status)
  return { reason: readyReason[status], message: `${held.length} of ${counts.nodes.length} nodes${stateOfNodes(held)}` }
}

/** The original operator's conditions, in its words; its names are cut at twenty. */
function incumbent({ counts, status, previous }: ConditionsInput): Said[] {
  const intolerant = counts.nodes.filter(({ reason }) => reason?.reason === 'TaintNotTolerated').map(({ name }) => name)
  const ignored = counts.nodes.filter(({ isIgnored }) => isIgnored).map(({ name }) => name)
  return [
    ...transition(status, previous),
    ...lastLaunch(counts, previous),
    {
      type: `${prefix}/TaintNotTolerable`,
      status: intolerant.length > 0 ? 'True' : 'False',
      reason: 'TaintNotTolerable',
      message:
        intolerant.length > 0
          ? `Node [${nodeList(intolerant)}] has taints that are not tolerable. Skipping.`
          : 'All nodes have tolerable taints.',
    },
    {
      type: `${prefix}/NodesIgnored`,
      status: ignored.length > 0 ? 'True' : 'False',
      reason: 'NodesIgnored',
      message: ignored.length > 0 ? `Node [${nodeList(ignored)}] has ignore label set. Skipping.` : 'No nodes have ignore label set.',
    },
  ]
}

function transition(status: NodeStatus, previous: SkyhookStatus | undefined): Said[] {
  const type = `${prefix}/Transition`
  const before = previous?.status
  const last = conditionOf(previous, type)
  if (before === undefined || (before === status && last === undefined)) return [] // the original does not tell the first one
  const message = before === status && last !== undefined ? last.message : `Transitioned [${before}] -> [${status}]`
  return [{ type, status: status === 'complete' ? 'True' : 'False', reason: status, message }]
}

/** The latest package that a node began; where many began since the last write, the last by name. */
function lastLaunch({ nodes }: Counts, previous: SkyhookStatus | undefined): Said[] {
  const type = `${prefix}/ApplyPackage`
  const launches = nodes.flatMap(({ name, entries }) => {
    const before = previous?.nodeState?.[name]
    if (before === undefined && previous?.nodeStateTruncated === true) return [] // whether it is new, nobody knows
    return Object.entries(entries)
      .filter(
        ([key, { stage, state }]) => state === 'in_progress' && (before?.[key]?.state !== 'in_progress' || before[key].stage !== stage),
      )
      .map(([, entry]) => `Applying package [${entry.name}:${entry.version}] to node [${name}]`)
  })
  const message = launches.at(-1) ?? conditionOf(previous, type)?.message
  return message === undefined ? [] : [{ type, status: 'True', reason: 'ApplyPackage', message }]
}
