/**
 * The state of each node that a Skyhook selects, as the census counts it, and what closes nodes for pods while nothing
 * is at work there. Pure.
 */
import type { Taint } from '../../../schemas/kubernetes.ts'
import type { NodeReason } from '../../../schemas/published.ts'
import { selects } from '../../../schemas/selectors.ts'
import type { NodeStatus, Skyhook } from '../../../schemas/skyhook.ts'
import { hasRequiredTaint } from '../../../stages/drain/node-spec.ts'
import { completionHash } from '../../../stages/model/package-inputs.ts'
import { type Known, known, type SkyhookView } from '../../../stages/model/snapshot.ts'
import { type AgentState, countedStatus, idleStatus, silentAfterMs } from '../../../stages/skyhook/gates.ts'
import { slowStartMs } from '../explain/agent-finding.ts'
import type { AgentPod, FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import { valueOr } from '../../fleet/fleet-view/readable.ts'
import { defaultSettings } from '../../fleet/fleet-view/settings.ts'
import type { NodeReport, NodeRow } from './node-report.ts'

/** The facts that a screen shows of a node that a Skyhook selects. */
export type NodeFact = {
  readonly node: string
  readonly status: NodeStatus
  readonly report: NodeReport | undefined
  /** Its agent does not answer: its reports may be old. */
  readonly isSilent: boolean
  /** The kubelet's reason why the container of its agent does not run. */
  readonly agentError: string | undefined
  /** Since when its agent does not answer, in ms since 1970, where that lasts longer than a start. */
  readonly unreadySinceMs: number | undefined
  /** It stays cordoned when its work is done. */
  readonly isHeld: boolean
  /** Agents ignore it. */
  readonly isIgnored: boolean
  /** What keeps new pods off while nothing is at work there. */
  readonly closedBy: Closure | undefined
}

/** In the order of the Nodes; unknown where they may not be read. */
export function nodeFacts(
  fleet: FleetView<NodeRow>,
  skyhook: Skyhook,
  agentOf: AgentStates,
): Known<readonly NodeFact[]> {
  if (!fleet.nodes.known) return fleet.nodes
  const { metadata, spec } = skyhook
  const idle = idleStatus({ metadata, policy: policyOf(fleet, skyhook) })
  const applied = completionHash({ metadata, spec })
  const { runtimeRequiredTaint: requiredTaint } = valueOr(fleet.settings, defaultSettings)
  const podOf = new Map(valueOr(fleet.agents, []).map((pod) => [pod.node, pod]))
  const selected = fleet.nodes.value.filter(({ labels }) => selects(spec.nodeSelectors, labels))
  return known(
    selected.map((row) => {
      const report = row.reports.get(metadata.name)
      const agent = agentOf(row)
      const isCurrent = report?.applied === applied
      const status = countedStatus({ status: report?.status, isCurrent }, agent, idle)
      const closedBy = closureOf(row, skyhook, { status, requiredTaint })
      const { name: node, isHeld, isIgnored } = row
      const pod = podOf.get(node)
      const isStarting = pod?.sinceMs === undefined || fleet.takenAtMs - pod.sinceMs < slowStartMs
      return {
        node,
        status,
        report,
        isSilent: agent === 'silent',
        agentError: pod?.containerError,
        unreadySinceMs: agent === 'unready' && !isStarting ? pod.sinceMs : undefined,
        isHeld,
        isIgnored,
        closedBy,
      }
    }),
  )
}

/** Only a policy that is known to be missing blocks nodes. */
function policyOf({ policies }: FleetView<NodeRow>, { spec }: Skyhook): SkyhookView['policy'] {
  const name = spec.deploymentPolicy
  const isMissing = name && policies.known && !policies.value.some(({ metadata }) => metadata.name === name)
  return isMissing ? { state: 'missing' } : undefined
}

/** The agent of each node, at the moment of a fleet view. */
export type AgentStates = (node: NodeRow) => AgentState

/**
 * The census measures for how long it has seen no Ready pod. One look has only the age of the current object: the pod,
 * or the Node if it has no pod.
 */
export function agentStates({ agents, takenAtMs }: FleetView<NodeRow>): AgentStates {
  if (!agents.known) return () => 'unknown'
  const podsOf = Map.groupBy(agents.value, ({ node }) => node)
  const isRecent = (sinceMs: number | undefined): boolean =>
    sinceMs !== undefined && takenAtMs - sinceMs < silentAfterMs
  const stateOf = (pods: readonly AgentPod[]): AgentState => {
    if (pods.some(({ isReady }) => isReady)) return 'ready'
    return pods.some(({ sinceMs }) => isRecent(sinceMs)) ? 'unready' : 'silent'
  }
  return ({ name, createdAtMs }) => {
    const pods = podsOf.get(name)
    if (pods !== undefined) return stateOf(pods)
    return isRecent(createdAtMs) ? 'unready' : 'silent'
  }
}

/** Why a node is not complete, by what it publishes or by the silence of its agent; undefined where neither says it. */
export function reasonOf(fact: NodeFact): NodeReason | undefined {
  const { status, report, unreadySinceMs } = fact
  if (status === 'unknown') return unknownReason(fact)
  if (status === 'complete') return undefined
  if (report?.reason !== undefined) return report.reason
  return unreadySinceMs === undefined ? undefined : { ...silentReason(fact), sinceMs: unreadySinceMs }
}

const errorOf = ({ agentError }: NodeFact): string => (agentError === undefined ? '' : `: ${agentError}`)

const silentReason = (fact: NodeFact): Pick<NodeReason, 'reason' | 'message'> => ({
  reason: 'AgentNotReady',
  message: `the agent does not answer${errorOf(fact)}`,
})

/** Why the progress of a node is unknown. */
function unknownReason(fact: NodeFact): NodeReason {
  if (fact.isSilent) return { ...silentReason(fact), sinceMs: undefined }
  const message =
    fact.report === undefined
      ? `the agent has not reported anything yet${errorOf(fact)}`
      : 'the report of the node about this Skyhook cannot be read'
  return { reason: 'AgentNotReady', message, sinceMs: undefined }
}

export type Closure = 'taint' | 'cordon' | 'keep-cordoned'

/** By name; `by`: what closes them. */
export type ClosedNodes = { readonly by: Closure; readonly nodes: readonly string[] }

const idleStatuses: ReadonlySet<NodeStatus> = new Set(['waiting', 'paused', 'disabled', 'blocked'])

/** Undefined for a node that this Skyhook does not close, or that is at work. `status`: that of the Skyhook. */
function closureOf(
  { reports, cordonedBy, isHeld, taints = [] }: NodeRow,
  { metadata, spec }: Skyhook,
  { status, requiredTaint }: { readonly status: NodeStatus; readonly requiredTaint: Taint },
): Closure | undefined {
  if ([...reports.values()].some((one) => one.status === 'in_progress' || one.status === 'erroring')) return undefined
  const isIdle = idleStatuses.has(status)
  if (isIdle && cordonedBy.includes(metadata.name)) return 'cordon'
  if (isIdle && spec.runtimeRequired === true && hasRequiredTaint({ spec: { taints } }, requiredTaint)) return 'taint'
  return isHeld ? 'keep-cordoned' : undefined
}

/** In order of importance. */
export function closedNodes(
  nodes: readonly { readonly node: string; readonly closedBy: Closure | undefined }[],
): readonly ClosedNodes[] {
  return (['taint', 'cordon', 'keep-cordoned'] as const).flatMap((by) => {
    const names = nodes.filter(({ closedBy }) => closedBy === by).map(({ node }) => node)
    return names.length === 0 ? [] : [{ by, nodes: names.toSorted((a, b) => (a < b ? -1 : 1)) }]
  })
}
