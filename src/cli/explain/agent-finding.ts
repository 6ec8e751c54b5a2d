/** Whether the node has an agent that acts. */
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { tolerates } from '../../schemas/selectors.ts'
import type { AgentDaemonSet, AgentPod, FleetView } from '../fleet-view/fleet-view.ts'
import type { Finding } from './finding.ts'

type AgentsView = Pick<FleetView<KubernetesNode>, 'agents' | 'daemonSet' | 'namespace' | 'takenAtMs'>

/** Undefined for an agent that is Ready and current, and also where pods may not be read: then nothing is known. */
export function agentFinding(fleet: AgentsView, node: KubernetesNode): Finding | undefined {
  const { agents, namespace } = fleet
  if (!agents.known) return undefined
  const daemonSet = fleet.daemonSet.known ? fleet.daemonSet.value : undefined
  const pods = agents.value.filter((pod) => pod.node === node.metadata.name && !pod.isDeleting)
  const pod = pods.find(({ isReady }) => isReady) ?? pods[0]
  if (pod === undefined) return missingAgent(namespace, daemonSet, node)
  if (!pod.isReady) return deadAgent(namespace, pod)
  return outdatedAgent(fleet, pod, daemonSet)
}

function missingAgent(namespace: string, daemonSet: AgentDaemonSet | undefined, node: KubernetesNode): Finding {
  const { name } = node.metadata
  const obstacle = daemonSet && obstacleOf(daemonSet, node)
  const found = { gate: 'agent', cause: 'no-agent', sinceMs: undefined } as const
  const objects = [{ kind: 'Node', name }]
  if (daemonSet === undefined || obstacle === undefined)
    return {
      ...found,
      objects,
      message: `the node has no agent pod in namespace ${namespace}`,
      unblock: 'the DaemonSet of the chart has to place a pod on the node: look at its Events and its affinity',
      command: `kubectl -n ${namespace} describe daemonset ${daemonSet?.name ?? '-l app.kubernetes.io/name=skyhookd'}`,
    }
  return {
    ...found,
    objects: [{ kind: 'DaemonSet', namespace, name: daemonSet.name }, ...objects],
    message: `the node has no agent pod: DaemonSet ${namespace}/${daemonSet.name} ${obstacle.why}`,
    unblock: obstacle.unblock,
    command: `kubectl -n ${namespace} get daemonset ${daemonSet.name} -o yaml`,
  }
}

function obstacleOf(
  { nodeSelector, tolerations }: AgentDaemonSet,
  { metadata, spec }: KubernetesNode,
): { readonly why: string; readonly unblock: string } | undefined {
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

/** The log before a restart says why it ended; without a restart there is only the one of now. */
function deadAgent(namespace: string, pod: AgentPod): Finding {
  const { name, sinceMs, restarts } = pod
  const log = `kubectl -n ${namespace} logs ${name}${restarts > 0 ? ' --previous' : ''}`
  return {
    gate: 'agent',
    cause: 'agent-dead',
    message: `the agent does not answer: pod ${namespace}/${name} ${notReady(pod)}`,
    objects: [{ kind: 'Pod', namespace, name }],
    sinceMs,
    unblock: 'the pod has to become Ready; steps that run on the host continue without it',
    command: `kubectl -n ${namespace} describe pod ${name} && ${log}`,
  }
}

const notReady = ({ containerError }: AgentPod): string =>
  `is not Ready${containerError === undefined ? '' : ` (${containerError})`}`

/** Of another image than the DaemonSet, or, where that may not be read, than most other agents. */
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
  // to replace this agent too would only make one more that is not Ready
  if (blocking)
    return {
      ...found,
      message:
        `${message}: its rolling update waits for pod ${blocking.name}` +
        `${blocking.node === '' ? '' : ` on node ${blocking.node}`}, which ${notReady(blocking)}`,
      objects: [own, { kind: 'Pod', namespace, name: blocking.name }],
      unblock: `pod ${blocking.name} has to become Ready: the rolling update of the DaemonSet waits for it`,
      command: `kubectl -n ${namespace} describe pod ${blocking.name}`,
    }
  return {
    ...found,
    message,
    objects: [own],
    unblock: 'the rolling update of the DaemonSet has to reach the node; deleting the pod replaces it at once',
    command: `kubectl -n ${namespace} delete pod ${name}`,
  }
}

/** Undefined where no image has the majority. */
function usualImage(agents: readonly AgentPod[]): string | undefined {
  const counts = Map.groupBy(agents, ({ image }) => image)
  return [...counts].find(([, pods]) => pods.length * 2 > agents.length)?.[0]
}
