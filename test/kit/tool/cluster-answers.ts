/** A cluster as the API server lists it, for tests that break one object of it: what explain and doctor say of it. */
import type { KubeTransport } from '../../../src/kube/transport.ts'
import { ApiError } from '../../../src/kube/errors.ts'
import { clusterReport } from '../../../src/cli/doctor/cluster-report.ts'
import type { Check } from '../../../src/cli/doctor/finding.ts'
import { confirmed, suspicionsOf } from '../../../src/cli/doctor/left-overs.ts'
import { expectedDefinitions } from '../../../src/cli/doctor/read/check-cluster.ts'
import { explainNode, type NodeExplanation } from '../../../src/cli/reason/explain/explain-node.ts'
import { readNodeDetail } from '../../../src/cli/fleet/fleet-view/node-detail.ts'
import { slimNode } from '../../../src/cli/fleet/fleet-view/project.ts'
import { readFleet } from '../../../src/cli/fleet/fleet-view/collections.ts'
import { readVitals } from '../../../src/cli/fleet/fleet-view/vitals.ts'
import type { SlotProgress } from '../../../src/lease/slot.ts'
import { skyhookScope } from '../../../src/lease/names.ts'
import { sha256Hex } from '../../../src/schemas/canonical-json.ts'
import {
  cordonKey,
  eventCodeKey,
  eventPackageKey,
  journalKey,
  nodeStateKey,
  reasonKey,
  statusKey,
} from '../../../src/schemas/annotations.ts'
import type { KubernetesNode, NodeCondition, Taint } from '../../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../../src/schemas/skyhook.ts'
import { listedSlot } from '../slots/listed-slot.ts'
import { createVirtualClock } from '../virtual-clock.ts'
import { fitCluster, nodeOf, nowMs, skyhookOf } from './doctor-facts.ts'

const secondMs = 1_000
export const secondsAgo = (seconds: number): string =>
  new Date(nowMs - seconds * secondMs).toISOString().replace('.000Z', 'Z')

const daySeconds = 86_400
export const agentImage = 'registry.test/skyhookd:1.0.0'

/** By path of the collection. */
export type ClusterObjects = {
  readonly nodes: readonly KubernetesNode[]
  /** Of agents. */
  readonly pods: readonly AgentPodObject[]
  readonly daemonSets: readonly object[]
  readonly skyhooks: readonly Skyhook[]
  /** Slots. */
  readonly leases: readonly object[]
  /** Of kubelets: by node, how many seconds ago each has renewed its Lease. */
  readonly heartbeats: Readonly<Record<string, number>>
  /** In the namespace of the agents. */
  readonly warnings: readonly WarningObject[]
  /** What agents have reported of their nodes. */
  readonly reports: readonly ReportedReason[]
}

export type AgentPodObject = {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string; readonly creationTimestamp: string }
  readonly spec: object
  readonly status: object
}
export type ReportedReason = {
  readonly node: string
  readonly reason: string
  readonly message: string
  readonly code?: string
  readonly package?: string
}
export type WarningObject = { readonly kind: string; readonly name: string; readonly message: string }

const readyCondition = (status: NodeCondition['status'], seconds: number, message: string): NodeCondition => ({
  type: 'Ready',
  status,
  reason: status === 'Unknown' ? 'NodeStatusUnknown' : 'KubeletNotReady',
  message,
  lastTransitionTime: secondsAgo(seconds),
})

/** Of a node that says so since then. */
export const withReady = (
  node: KubernetesNode,
  status: NodeCondition['status'],
  seconds: number,
  message = 'Kubelet stopped posting node status.',
): KubernetesNode => ({
  ...node,
  spec: {
    ...node.spec,
    taints:
      status === 'True'
        ? []
        : [{ key: `node.kubernetes.io/${status === 'Unknown' ? 'unreachable' : 'not-ready'}`, effect: 'NoSchedule' }],
  },
  status: { ...node.status, conditions: [readyCondition(status, seconds, message)] },
})

export const withTaints = (node: KubernetesNode, ...taints: readonly Taint[]): KubernetesNode => ({
  ...node,
  spec: { ...node.spec, taints: [...(node.spec?.taints ?? []), ...taints] },
})

/** A Node that is Ready. */
export const readyNode = (name: string, annotations: Readonly<Record<string, string>> = {}): KubernetesNode =>
  withReady({ ...nodeOf(name, annotations), status: { nodeInfo: { bootID: 'b' } } }, 'True', daySeconds, 'ready')

export type PodState = {
  readonly isReady?: boolean
  /** Since when it has been Ready, or not. */
  readonly seconds?: number
  readonly state?: object
  readonly lastState?: object
  readonly restarts?: number
  readonly image?: string
  readonly createdSeconds?: number
}

/** The pod of an agent. Without `state`, its container runs for as long as it is Ready, or not. */
export function agentPod(node: string, pod: PodState = {}): AgentPodObject {
  const { isReady = true, seconds = daySeconds, restarts = 0, image = agentImage, lastState = {} } = pod
  const { state = { running: { startedAt: secondsAgo(seconds) } }, createdSeconds = seconds } = pod
  const status = isReady ? 'True' : 'False'
  return {
    metadata: { name: `skyhookd-${node}`, creationTimestamp: secondsAgo(createdSeconds) },
    spec: { nodeName: node, containers: [{ name: 'agent', image }] },
    status: {
      conditions: [{ type: 'Ready', status, lastTransitionTime: secondsAgo(seconds) }],
      containerStatuses: [{ name: 'agent', restartCount: restarts, state, lastState }],
    },
  }
}

export const waitingFor = (reason: string, message?: string): object => ({ waiting: { reason, message } })

/** A pod that the scheduler has no place for. */
export const unplacedPod = (node: string, message: string, seconds: number): AgentPodObject => ({
  metadata: { name: `skyhookd-${node}`, creationTimestamp: secondsAgo(seconds) },
  spec: {
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] }],
        },
      },
    },
    containers: [{ name: 'agent', image: agentImage }],
  },
  status: { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', message }] },
})

/** A slot of Skyhook `tuning`. */
export const heldSlot = (node: string, phase: SlotProgress['phase'], renewedSeconds: number): object =>
  listedSlot(
    skyhookScope({ name: 'tuning', uid: 'uid-tuning' }),
    { index: 0 },
    { name: node, uid: `uid-${node}`, bootId: 'b' },
    { phase },
    { renewedAtMs: nowMs - renewedSeconds * secondMs },
  ).lease

export const daemonSet = (template: object = {}): object => ({
  metadata: {
    name: 'skyhookd',
    namespace: 'skyhook',
    labels: { 'app.kubernetes.io/name': 'skyhookd', 'app.kubernetes.io/version': '1.0.0' },
  },
  spec: {
    template: {
      spec: {
        serviceAccountName: 'skyhookd',
        containers: [{ name: 'agent', image: agentImage }],
        nodeSelector: { 'kubernetes.io/os': 'linux' },
        tolerations: [{ operator: 'Exists' }],
        ...template,
      },
    },
  },
})

/** What the agent of node-1 has published before the reboot that package `pkg` asks for. */
export function beforeReboot(objects: ClusterObjects, bootId: string): ClusterObjects {
  const pkg = { name: 'pkg', version: '1.0.0', image: 'registry.test/pkg' }
  const state = JSON.stringify({ 'pkg|1.0.0': { ...pkg, stage: 'interrupt', state: 'in_progress' } })
  const companion = {
    v: 1,
    rev: 3,
    sha256: sha256Hex(state),
    nodeUID: 'uid-node-1',
    reboots: { key: { done: 0, askedInBoot: 'b' } },
  }
  const annotations = {
    [nodeStateKey('tuning')]: state,
    [journalKey('tuning')]: JSON.stringify(companion),
    [statusKey('tuning')]: 'in_progress',
    [cordonKey('tuning')]: 'true',
  }
  const nodes = objects.nodes.map((node) =>
    node.metadata.name === 'node-1'
      ? {
          ...node,
          metadata: { ...node.metadata, annotations: { ...node.metadata.annotations, ...annotations } },
          spec: { ...node.spec, unschedulable: true },
          status: { ...node.status, nodeInfo: { bootID: bootId } },
        }
      : node,
  )
  const packages = { pkg: { version: '1.0.0', image: 'registry.test/pkg', interrupt: { type: 'reboot' } } } as const
  return { ...objects, nodes, skyhooks: [skyhookOf('tuning', { interruptionBudget: { count: 2 }, packages })] }
}

const names = ['node-1', 'node-2', 'node-3']

/** Three nodes that wait for Skyhook `tuning`, and nothing is wrong. */
export const healthyCluster: ClusterObjects = {
  nodes: names.map((name) => readyNode(name)),
  pods: names.map((name) => agentPod(name)),
  daemonSets: [daemonSet()],
  skyhooks: [
    skyhookOf('tuning', {
      interruptionBudget: { count: 2 },
      packages: { pkg: { version: '1.0.0', image: 'registry.test/pkg' } },
    }),
  ],
  leases: [],
  heartbeats: { 'node-1': 3, 'node-2': 6, 'node-3': 9 },
  warnings: [],
  reports: [],
}

/** The node says so, and an Event does. */
export function withReport(objects: ClusterObjects, report: ReportedReason): ClusterObjects {
  const { node: name, ...reason } = report
  const text = JSON.stringify({ ...reason, since: secondsAgo(30) })
  const nodes = objects.nodes.map((node) =>
    node.metadata.name === name
      ? {
          ...node,
          metadata: { ...node.metadata, annotations: { ...node.metadata.annotations, [reasonKey('tuning')]: text } },
        }
      : node,
  )
  return { ...objects, nodes, reports: [...objects.reports, report] }
}

const reportEvent = ({ node, reason, message, code, package: key }: ReportedReason): object => ({
  metadata: {
    name: 'report',
    annotations: {
      ...(code !== undefined && { [eventCodeKey]: code }),
      ...(key !== undefined && { [eventPackageKey]: key }),
    },
  },
  involvedObject: { kind: 'Node', name: node },
  reason,
  message: `Skyhook tuning: ${message}`,
  lastTimestamp: secondsAgo(28),
})

/** The collections that are asked for, as a LIST answers them. */
function answering(objects: ClusterObjects): KubeTransport {
  const events = objects.warnings.map(({ kind, name, message }) => ({
    metadata: { name: 'event', creationTimestamp: secondsAgo(20) },
    involvedObject: { kind, name },
    reason: 'Failed',
    type: 'Warning',
    message,
    lastTimestamp: secondsAgo(10),
  }))
  const heartbeats = Object.entries(objects.heartbeats).map(([name, seconds]) => ({
    metadata: { name },
    spec: { holderIdentity: name, renewTime: secondsAgo(seconds) },
  }))
  const lists = new Map<string, readonly unknown[]>([
    ['/apis/skyhook.nvidia.com/v1alpha1/skyhooks', objects.skyhooks],
    ['/apis/skyhook.nvidia.com/v1alpha1/deploymentpolicies', []],
    ['/api/v1/nodes', objects.nodes],
    ['/apis/coordination.k8s.io/v1/namespaces/skyhook/leases', objects.leases],
    ['/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases', heartbeats],
    ['/api/v1/namespaces/skyhook/pods', objects.pods],
    ['/apis/apps/v1/namespaces/skyhook/daemonsets', objects.daemonSets],
    ['/api/v1/namespaces/skyhook/configmaps', []],
    ['/api/v1/namespaces/skyhook/events', events],
    ['/api/v1/namespaces/default/events', objects.reports.map(reportEvent)],
    ['/api/v1/pods', []],
    ['/apis/policy/v1/poddisruptionbudgets', []],
  ])
  const answer = (path: string): unknown => {
    const items = lists.get(path)
    if (items === undefined) throw new ApiError({ status: 404, reason: 'NotFound', message: `no ${path}` })
    return { items, metadata: { resourceVersion: '1' } }
  }
  return {
    json: async <T>(_method: string, path: string) => answer(path) as T,
    stream: () => Promise.reject(new Error('nothing is watched')),
    close: () => undefined,
  }
}

export type Seen = { readonly explanation: NodeExplanation; readonly checks: readonly Check[] }

/** What explain says of the node, and doctor of the cluster. `second`: what its second look shows. */
export async function look(objects: ClusterObjects, node = 'node-1', second = objects): Promise<Seen> {
  const clock = createVirtualClock(nowMs)
  const fleetOf = async (of: ClusterObjects) =>
    await readFleet(answering(of), { namespace: 'skyhook', clock, nodeOf: slimNode })
  const transport = answering(objects)
  const [fleet, secondFleet] = [await fleetOf(objects), await fleetOf(second)]
  const vitals = await readVitals(transport, { namespace: 'skyhook' })
  const detail = await readNodeDetail(transport, node)
  const found = fleet.nodes.known ? fleet.nodes.value.find(({ metadata }) => metadata.name === node) : undefined
  const skyhook = fleet.skyhooks.known ? fleet.skyhooks.value[0] : undefined
  if (found === undefined || skyhook === undefined) throw new Error('neither may be missing')
  const suspicions = confirmed(suspicionsOf(fleet), suspicionsOf(secondFleet))
  return {
    explanation: explainNode(fleet, { skyhook, node: found, detail, vitals }),
    checks: clusterReport({ ...fitCluster, fleet, vitals }, expectedDefinitions(), suspicions),
  }
}
