/** Whether the node has an agent that acts; if its pod is not Ready, why, and whether that passes. */
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { tolerates } from '../../../schemas/selectors.ts'
import { silentAfterMs } from '../../../stages/skyhook/gates.ts'
import type { AgentDaemonSet, AgentPod, FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import { unreadVitals, type Vitals, type Warning } from '../../fleet/fleet-view/vitals.ts'
import type { Finding } from './finding.ts'
import { nodeFinding, rebootFinding } from './node-finding.ts'

type AgentsView = Pick<FleetView<KubernetesNode>, 'agents' | 'daemonSet' | 'namespace' | 'takenAtMs' | 'slots'>

/**
 * Undefined for an agent that is Ready and current on a Ready node, and also if pods may not be read: then nothing is
 * known of it.
 */
export function agentFinding(
  fleet: AgentsView,
  node: KubernetesNode,
  vitals: Vitals = unreadVitals,
): Finding | undefined {
  const pod = agentPodOn(fleet, node)
  // the node controller marks the pods of a NotReady node as not Ready
  const ofNode = nodeFinding(fleet, node, vitals.heartbeats)
  if (ofNode) return rebootFinding(fleet, node, ofNode.sinceMs) ?? ofNode
  if (!fleet.agents.known) return undefined
  const daemonSet = fleet.daemonSet.known ? fleet.daemonSet.value : undefined
  if (pod === undefined) return missingAgent(fleet, daemonSet, node, vitals)
  if (pod.isReady) return outdatedAgent(fleet, pod, daemonSet)
  const ofPod = deadAgent(fleet, pod, vitals)
  return ofPod.isOfReboot ? (rebootFinding(fleet, node, pod.sinceMs) ?? ofPod.finding) : ofPod.finding
}

/** The pod that counts: a Ready one, else one that is not ending. An unscheduled pod belongs to its intended node. */
export function agentPodOn(
  { agents }: Pick<AgentsView, 'agents'>,
  { metadata: { name } }: KubernetesNode,
): AgentPod | undefined {
  if (!agents.known) return undefined
  const pods = agents.value.filter((pod) => (pod.node || pod.unplaced?.node) === name && !pod.isDeleting)
  return pods.find(({ isReady }) => isReady) ?? pods[0]
}

function missingAgent(
  { namespace }: Pick<AgentsView, 'namespace'>,
  daemonSet: AgentDaemonSet | undefined,
  node: KubernetesNode,
  { warnings }: Vitals,
): Finding {
  const { name } = node.metadata
  const refusal = daemonSet && warningAbout('DaemonSet', daemonSet.name, warnings)
  const obstacle = daemonSet && (obstacleOf(daemonSet, node) ?? (refusal && refusedBy(refusal.message, namespace)))
  const found = { gate: 'agent', cause: 'no-agent', sinceMs: undefined } as const
  const objects = [{ kind: 'Node', name }]
  if (daemonSet === undefined || obstacle === undefined)
    return {
      ...found,
      objects,
      message: `the node has no agent pod in namespace ${namespace}`,
      unblock: 'the DaemonSet of the chart must place a pod on the node: look at its Events and its affinity',
      command: `kubectl -n ${namespace} describe daemonset ${daemonSet?.name ?? '-l app.kubernetes.io/name=skyhookd'}`,
    }
  return {
    ...found,
    objects: [{ kind: 'DaemonSet', namespace, name: daemonSet.name }, ...objects],
    message: `the node has no agent pod: DaemonSet ${namespace}/${daemonSet.name} ${obstacle.why}`,
    unblock: obstacle.unblock,
    command: obstacle.command ?? `kubectl -n ${namespace} get daemonset ${daemonSet.name} -o yaml`,
  }
}

type Obstacle = { readonly why: string; readonly unblock: string; readonly command?: string }

/** `message`: of the Event of the DaemonSet, whose controller retries by itself. */
function refusedBy(message: string, namespace: string): Obstacle {
  const why = `cannot create it: ${message}`
  if (/violates PodSecurity/.test(message))
    return {
      why,
      unblock: `allow privileged pods in namespace ${namespace}: agents need a hostPath and the network of the host`,
      command: `kubectl label namespace ${namespace} pod-security.kubernetes.io/enforce=privileged --overwrite`,
    }
  return {
    why,
    unblock: 'fix what the message names: a quota, a webhook or a policy refuses the pod',
    command: `kubectl -n ${namespace} get events --field-selector involvedObject.kind=DaemonSet,type=Warning`,
  }
}

function obstacleOf(
  { nodeSelector, tolerations }: AgentDaemonSet,
  { metadata, spec }: KubernetesNode,
): Obstacle | undefined {
  const label = Object.entries(nodeSelector).find(([key, value]) => metadata.labels?.[key] !== value)
  if (label)
    return {
      why: `asks for the label ${label[0]}=${label[1]}`,
      unblock: 'label the node, or change nodeSelector in the values of the chart',
    }
  const taint = spec?.taints?.find(
    (one) => one.effect !== 'PreferNoSchedule' && !isDefault(one.key) && !tolerates(tolerations, one),
  )
  return (
    taint && {
      why: `does not tolerate the taint ${taint.key}:${taint.effect}`,
      unblock: 'remove the taint, or add it to tolerations in the values of the chart',
    }
  )
}

/** The DaemonSet controller adds tolerations of these to each pod. */
const isDefault = (key: string): boolean => key.startsWith('node.kubernetes.io/')

/** `isOfReboot`: the reboot of its host may be the cause. */
function deadAgent(
  { namespace, takenAtMs }: AgentsView,
  pod: AgentPod,
  { warnings }: Vitals,
): { readonly finding: Finding; readonly isOfReboot: boolean } {
  const { name, sinceMs } = pod
  const { kind, why } = podFailure(pod, warnings, takenAtMs)
  const describe = `kubectl -n ${namespace} describe pod ${name}`
  const log = logOf(pod, kind)
  const finding: Finding = {
    gate: 'agent',
    cause: 'agent-dead',
    message: `the agent does not answer: pod ${namespace}/${name} is not Ready${why === '' ? '' : ` (${why})`}`,
    objects: [{ kind: 'Pod', namespace, name }],
    sinceMs,
    unblock: `${podRemedies[kind](pod)}; steps that run on the host continue without it`,
    command: log === undefined ? describe : `${describe} && kubectl -n ${namespace} logs ${name}${log}`,
  }
  return { finding, isOfReboot: kind === 'crash' || kind === 'hang' || kind === 'start' }
}
const podRemedies = {
  image: ({ image }) => `the node has to pull ${image}: correct image and imagePullSecrets in the values of the chart`,
  'set-up': () => 'fix what the message names: the pod then starts by itself',
  crash: () => 'fix what the log names: the pod must become Ready',
  hang: () => 'the pod must become Ready: the log shows what it waits for',
  start: () => 'the pod must become Ready',
} as const satisfies Readonly<Record<PodFailure['kind'], (pod: AgentPod) => string>>

/** Which log: undefined if no container has one. The log before a restart shows why it ended. */
function logOf({ containerError, restarts }: AgentPod, kind: PodFailure['kind']): string | undefined {
  if (kind === 'image' || kind === 'set-up' || (kind === 'start' && containerError !== undefined)) return undefined
  return restarts > 0 ? ' --previous' : ''
}

const notReady = ({ containerError }: AgentPod): string =>
  `is not Ready${containerError === undefined ? '' : ` (${containerError})`}`

/** Its image differs from that of the DaemonSet, or, if that may not be read, from that of most other agents. */
function outdatedAgent(
  { agents, namespace }: AgentsView,
  { name, image, sinceMs }: AgentPod,
  daemonSet: AgentDaemonSet | undefined,
): Finding | undefined {
  const pods = agents.known ? agents.value : []
  const expected = daemonSet?.image ?? usualImage(pods)
  if (expected === undefined || expected === '' || image === '' || image === expected) return undefined
  const owner = daemonSet ? `DaemonSet ${namespace}/${daemonSet.name} has` : 'most other agents run'
  const found = { gate: 'agent', cause: 'agent-too-old', sinceMs } as const
  const message = `the agent runs ${image}, and ${owner} ${expected}`
  const own = { kind: 'Pod', namespace, name }
  const blocking = pods.find((pod) => pod.image === expected && !pod.isReady && !pod.isDeleting)
  // replacing this agent would only make one more that is not Ready
  if (blocking)
    return {
      ...found,
      message:
        `${message}: its rolling update waits for pod ${blocking.name}` +
        `${blocking.node === '' ? '' : ` on node ${blocking.node}`}, which ${notReady(blocking)}`,
      objects: [own, { kind: 'Pod', namespace, name: blocking.name }],
      unblock: `pod ${blocking.name} must become Ready: the rolling update of the DaemonSet waits for it`,
      command: `kubectl -n ${namespace} describe pod ${blocking.name}`,
    }
  return {
    ...found,
    message,
    objects: [own],
    unblock: 'the rolling update of the DaemonSet must reach the node; deleting the pod replaces it immediately',
    command: `kubectl -n ${namespace} delete pod ${name}`,
  }
}

/** Undefined if no image has the majority. */
function usualImage(agents: readonly AgentPod[]): string | undefined {
  const counts = Map.groupBy(agents, ({ image }) => image)
  return [...counts].find(([, pods]) => pods.length * 2 > agents.length)?.[0]
}

/**
 * `image`: it cannot be pulled. `set-up`: its container cannot be made, or its pod cannot be placed. `crash`: its
 * container ended. `hang`: it runs and does not answer. `start`: it is on its way.
 */
type PodFailure = {
  readonly kind: 'image' | 'set-up' | 'crash' | 'hang' | 'start'
  /** For brackets: the message of the kubelet or the scheduler; may be empty. */
  readonly why: string
  /** It does not pass by itself, unlike the start of a pod that a rolling update replaces. */
  readonly isLasting: boolean
}

const imageErrors: ReadonlySet<string> = new Set([
  'ErrImagePull',
  'ImagePullBackOff',
  'InvalidImageName',
  'ErrImageNeverPull',
  'ImageInspectError',
  'RegistryUnavailable',
  'SignatureValidationFailed',
])
const setUpErrors: ReadonlySet<string> = new Set([
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'StartError',
  'ContainerCannotRun',
  'Evicted',
])
/** Normal reasons to wait, while a pod starts. */
const startStates: ReadonlySet<string | undefined> = new Set([undefined, 'ContainerCreating', 'PodInitializing'])

/** An agent answers its probe a second after its start. */
export const slowStartMs = 30_000

/** The kubelet retries a mount after two minutes at most. */
const repeatedWithinMs = 150_000

/** `pod` is not Ready. */
export function podFailure(pod: AgentPod, warnings: Vitals['warnings'], nowMs: number): PodFailure {
  const { containerError, sinceMs, runningSinceMs, unplaced } = pod
  const isOld = nowMs - (sinceMs ?? -Infinity) >= silentAfterMs
  const why = [containerError, pod.containerMessage].filter((text) => text !== undefined && text !== '').join(': ')
  if (unplaced) return { kind: 'set-up', why: unplaced.why, isLasting: true }
  if (containerError !== undefined && imageErrors.has(containerError)) return { kind: 'image', why, isLasting: true }
  if (containerError !== undefined && setUpErrors.has(containerError)) return { kind: 'set-up', why, isLasting: true }
  if (!startStates.has(containerError)) return { kind: 'crash', why, isLasting: true }
  if (runningSinceMs !== undefined)
    return { kind: 'hang', why: '', isLasting: isOld || nowMs - runningSinceMs >= slowStartMs }
  const warning = warningAbout('Pod', pod.name, warnings)
  // mounts and sandboxes are retried: a young one may be a first attempt, and an old one may have passed since
  if (warning && nowMs - warning.atMs < repeatedWithinMs)
    return { kind: 'set-up', why: warning.message, isLasting: nowMs - (sinceMs ?? -Infinity) >= slowStartMs / 2 }
  return { kind: 'start', why, isLasting: isOld }
}

const warningAbout = (kind: string, name: string, warnings: Vitals['warnings']): Warning | undefined =>
  warnings.known ? warnings.value.find((one) => one.kind === kind && one.name === name) : undefined
