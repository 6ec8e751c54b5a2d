import { disableKey, ignoreLabel, pauseKey } from '../../schemas/annotations.ts'
import type { Reason } from '../../schemas/catalogue/reason.ts'
import type { Taint } from '../../schemas/kubernetes.ts'
import { selects, tolerates } from '../../schemas/selectors.ts'
import type { NodeStatus } from '../../schemas/skyhook.ts'
import { isKubernetesTaint, isNotReadyTaint, requiredTaints, taintText } from '../drain/node-spec.ts'
import type { SkyhookView, Snapshot } from '../model/snapshot.ts'
import { specProblems } from '../package/spec-problems.ts'
import { otherOperatorGate } from './other-operator.ts'

export const isSelected = (view: SkyhookView, snapshot: Snapshot): boolean =>
  selects(view.spec.nodeSelectors, snapshot.node.metadata.labels ?? {})

const isTrue = (value: string | undefined): boolean => value === 'true'

type Named = Pick<SkyhookView, 'metadata'>
export const isPaused = ({ metadata }: Named): boolean => isTrue(metadata.annotations?.[pauseKey])
export const isDisabled = ({ metadata }: Named): boolean => isTrue(metadata.annotations?.[disableKey])
export const isIgnored = (snapshot: Snapshot): boolean => isTrue(snapshot.node.metadata.labels?.[ignoreLabel])

/** Why no node starts with this spec, in one message; the CRD already refuses most of these errors. */
export const specProblem = ({ spec }: SkyhookView): Reason | undefined => invalidSpec(specProblems(spec.packages ?? {}))

const invalidSpec = (problems: readonly string[]): Reason | undefined =>
  problems.length === 0 ? undefined : { reason: 'InvalidSpec', message: problems.join('; ') }

/**
 * It is unknown how many nodes may be out: the Skyhook waits for its policy, and later Skyhooks wait for it. A policy
 * that is missing for a short time must not change the order of the work.
 */
function missingPolicy({ spec, policy }: SkyhookView): Reason | undefined {
  if (policy?.state === 'unknown' && policy.isRefused) return { reason: 'ApiRequestRefused', message: policy.why }
  if (policy?.state !== 'missing') return undefined
  const message = `DeploymentPolicy ${JSON.stringify(spec.deploymentPolicy)} not found`
  return { reason: 'DeploymentPolicyNotFound', message }
}

/** Taints of the node that keep this Skyhook away; its own, cordons and the runtime-required taint never do. */
function untoleratedTaints(view: SkyhookView, snapshot: Snapshot): readonly Taint[] {
  const { runtimeRequiredTaint } = snapshot.settings
  const tolerations = [
    { key: 'node.kubernetes.io/unschedulable', operator: 'Exists' as const },
    ...requiredTaints(runtimeRequiredTaint).map(({ key }) => ({ key, operator: 'Exists' as const })),
    ...(view.spec.additionalTolerations ?? []),
  ]
  return (snapshot.node.spec?.taints ?? []).filter(
    (taint) => taint.effect !== 'PreferNoSchedule' && !tolerates(tolerations, taint),
  )
}

const textsOf = (taints: readonly Taint[]): string => taints.map(taintText).join(', ')

/** Tolerating or removing these would not help: they go when the node is Ready. */
function unready(view: SkyhookView, snapshot: Snapshot): Reason | undefined {
  const ready = snapshot.node.status?.conditions?.find(({ type }) => type === 'Ready')
  const taints = untoleratedTaints(view, snapshot).filter(isNotReadyTaint)
  if (taints.length === 0 || ready?.status === 'True') return undefined
  const why = ready?.message ? ` (${ready.message})` : ''
  return {
    reason: 'NodeNotReady',
    message: `the node is NotReady${why}: it has ${textsOf(taints)}, which Kubernetes lifts when the node is Ready`,
  }
}

function tainted(view: SkyhookView, snapshot: Snapshot): Reason | undefined {
  const isUnready = unready(view, snapshot) !== undefined
  const taints = untoleratedTaints(view, snapshot).filter((taint) => !(isUnready && isNotReadyTaint(taint)))
  if (taints.length === 0) return undefined
  const ofPeople = taints.filter((taint) => !isKubernetesTaint(taint))
  const remedy =
    ofPeople.length > 0
      ? 'tolerate it in spec.additionalTolerations or remove it'
      : 'Kubernetes lifts it when its cause is over, which kubectl describe node shows'
  return {
    reason: 'TaintNotTolerated',
    message: `the node has ${textsOf(taints)}: ${remedy}`,
    ...(ofPeople.length === 0 && { code: 'node-condition' }),
  }
}

/** The input of a gate; `precedingSkyhook`: one that comes first and has work on this node. */
type StartGate = (view: SkyhookView, snapshot: Snapshot, precedingSkyhook: string | undefined) => Reason | undefined

/** In the order in which they are reported; each returns why it is closed. */
const startGates: readonly StartGate[] = [
  (_, snapshot) =>
    isIgnored(snapshot) ? { reason: 'Ignored', message: `the node has the label ${ignoreLabel}=true` } : undefined,
  (view) =>
    isDisabled(view) ? { reason: 'Disabled', message: `the Skyhook has the annotation ${disableKey}=true` } : undefined,
  (view) =>
    isPaused(view) ? { reason: 'Paused', message: `the Skyhook has the annotation ${pauseKey}=true` } : undefined,
  otherOperatorGate,
  specProblem,
  missingPolicy,
  (_view, _snapshot, precedingSkyhook) =>
    precedingSkyhook === undefined
      ? undefined
      : {
          reason: 'WaitingForPriority',
          message: `Skyhook ${precedingSkyhook} comes first and is not complete on this node`,
        },
  (_, snapshot) =>
    snapshot.host.state === 'unusable'
      ? (otherRebootReason(snapshot) ?? { reason: snapshot.host.reason, message: snapshot.host.message })
      : undefined,
  unready,
  tainted,
]

/** Why a Skyhook may not start on this node now, before slots are checked. They only gate the start. */
export function startGate(
  view: SkyhookView,
  snapshot: Snapshot,
  precedingSkyhook: string | undefined,
): Reason | undefined {
  for (const gate of startGates) {
    const closed = gate(view, snapshot, precedingSkyhook)
    if (closed) return closed
  }
  return undefined
}

/** All closed gates instead of the first one: everything that a person would have to open. */
export const closedStartGates: (...of: Parameters<StartGate>) => readonly Reason[] = (
  view,
  snapshot,
  precedingSkyhook,
) => startGates.flatMap((gate) => gate(view, snapshot, precedingSkyhook) ?? [])

/**
 * When the host goes down, the bus ends before the agent does: that does not make the host unusable for waiting
 * Skyhooks.
 */
function otherRebootReason({ journal, bootId }: Snapshot): Reason | undefined {
  const rebooting = Object.entries(journal.skyhooks).find(
    ([, { interrupt }]) => interrupt?.interrupt.type === 'reboot' && interrupt.bootId === bootId,
  )
  return rebooting && { reason: 'RebootPending', message: `the host is about to reboot for Skyhook ${rebooting[0]}` }
}

/** Why a started Skyhook currently starts nothing new; running steps end and are recorded, slot and cordon stay. */
export function pauseReason(view: SkyhookView, snapshot: Snapshot): Reason | undefined {
  if (isIgnored(snapshot))
    return { reason: 'Ignored', message: `the node has the label ${ignoreLabel}=true; work is suspended` }
  if (isPaused(view))
    return { reason: 'Paused', message: `the Skyhook has the annotation ${pauseKey}=true; work is suspended` }
  if (snapshot.host.state === 'unusable') return { reason: snapshot.host.reason, message: snapshot.host.message }
  return specProblem(view)
}

/**
 * The status with which a node counts for a Skyhook: in the Skyhook's status, which the census writes, and in the tool.
 * Pure.
 */

/** The node's agent by its pods. `unready`: no Ready pod, but not for long; `unknown`: the pods cannot be listed. */
export type AgentState = 'ready' | 'unready' | 'silent' | 'unknown'

/** Longer than the replacement of an agent takes, including an image pull over a slow link. */
export const silentAfterMs = 10 * 60_000

/** The status of a node that has not started: it waits, or is held up with the Skyhook. */
export function idleStatus(view: Pick<SkyhookView, 'metadata' | 'policy'>): NodeStatus {
  if (isPaused(view)) return 'paused'
  if (isDisabled(view)) return 'disabled'
  return view.policy !== undefined && view.policy.state !== 'found' ? 'blocked' : 'waiting'
}

type Reported = {
  /** The published status; `unreadable` for anything else. */
  readonly status: NodeStatus | 'unreadable' | undefined
  /** Its completion belongs to the current spec, this Node object and the published state. */
  readonly isCurrent: boolean
}

/** The node of a silent agent is unknown, regardless of its last report. */
export function countedStatus({ status, isCurrent }: Reported, agent: AgentState, idle: NodeStatus): NodeStatus {
  if (agent === 'silent') return 'unknown'
  if (status === undefined) return agent === 'ready' ? idle : 'unknown'
  if (status === 'unreadable') return 'unknown'
  if (status !== 'complete') return status
  return isCurrent ? 'complete' : idle
}
