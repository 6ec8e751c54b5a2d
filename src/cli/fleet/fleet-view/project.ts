/** What is kept of the objects of a fleet view. There may be thousands of Nodes: only what views and decisions use. */
import type { KubeObject } from '../../../kube/objects.ts'
import type { Lease } from '../../../lease/slot.ts'
import { isOwnKey } from '../../../schemas/annotations.ts'
import type { DeploymentPolicy } from '../../../schemas/deployment-policy.ts'
import type { KubernetesNode, Toleration } from '../../../schemas/kubernetes.ts'
import { isNodeWrightKey } from '../../../schemas/nodewright.ts'
import type { Skyhook } from '../../../schemas/skyhook.ts'
import type { AgentDaemonSet, AgentPod } from './fleet-view.ts'

type ContainerStatus = {
  readonly name?: string
  readonly restartCount?: number
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string }
    readonly running?: { readonly startedAt?: string }
    readonly terminated?: Ended
  }
  readonly lastState?: { readonly terminated?: Ended }
}

type Ended = { readonly reason?: string; readonly exitCode?: number; readonly message?: string }

type PodObject = KubeObject & {
  readonly spec?: {
    readonly nodeName?: string
    readonly containers?: readonly { readonly name?: string; readonly image?: string }[]
    readonly affinity?: {
      readonly nodeAffinity?: {
        readonly requiredDuringSchedulingIgnoredDuringExecution?: {
          readonly nodeSelectorTerms?: readonly {
            readonly matchFields?: readonly { readonly key: string; readonly values?: readonly string[] }[]
          }[]
        }
      }
    }
  }
  readonly status?: {
    /** Why it is Failed, such as `Evicted`. */
    readonly reason?: string
    readonly message?: string
    readonly conditions?: readonly {
      readonly type: string
      readonly status: string
      readonly lastTransitionTime?: string
      readonly message?: string
    }[]
    readonly containerStatuses?: readonly ContainerStatus[]
  }
}

type DaemonSetObject = KubeObject & {
  readonly spec?: {
    readonly template?: {
      readonly spec?: {
        readonly containers?: readonly { readonly name?: string; readonly image?: string }[]
        readonly serviceAccountName?: string
        readonly nodeSelector?: Readonly<Record<string, string>>
        readonly tolerations?: readonly Toleration[]
      }
    }
  }
}

/**
 * A Node with what decisions look at, and the versions of its software. Without images, addresses and capacity, and
 * without annotations of others, except for those that stop work.
 */
export function slimNode({ metadata, spec, status }: KubernetesNode): KubernetesNode {
  const { name, uid, resourceVersion, labels = {}, annotations = {}, creationTimestamp } = metadata
  const own = Object.entries(annotations).filter(([key]) => isOwnKey(key) || isNodeWrightKey(key))
  const conditions = (status?.conditions ?? []).filter(({ type }) => type === 'Ready' || isOwnKey(type))
  const nodeInfo = Object.entries(status?.nodeInfo ?? {}).filter(([key]) => nodeInfoKeys.has(key))
  return {
    metadata: {
      name,
      uid,
      resourceVersion,
      labels,
      annotations: Object.fromEntries(own),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
    },
    spec: {
      ...(spec?.unschedulable !== undefined && { unschedulable: spec.unschedulable }),
      taints: spec?.taints ?? [],
    },
    status: { conditions, nodeInfo: Object.fromEntries(nodeInfo) },
  }
}

const nodeInfoKeys: ReadonlySet<string> = new Set([
  'bootID',
  'kubeletVersion',
  'kernelVersion',
  'osImage',
  'containerRuntimeVersion',
  'architecture',
])

/** A Skyhook without the fields that kubectl and the API server keep for themselves. */
export function slimSkyhook(skyhook: Skyhook): Skyhook {
  const { name, uid, resourceVersion, generation, labels, deletionTimestamp, creationTimestamp } = skyhook.metadata
  const annotations = { ...skyhook.metadata.annotations }
  delete annotations['kubectl.kubernetes.io/last-applied-configuration']
  const metadata = { name, uid, resourceVersion, annotations }
  return {
    metadata: {
      ...metadata,
      ...(generation !== undefined && { generation }),
      ...(labels && { labels }),
      ...(deletionTimestamp !== undefined && { deletionTimestamp }),
      ...(creationTimestamp !== undefined && { creationTimestamp }),
    },
    spec: skyhook.spec ?? {},
    status: { conditions: skyhook.status?.['conditions'] ?? [] },
  }
}

export const slimPolicy = ({ metadata, spec }: DeploymentPolicy): DeploymentPolicy => ({ metadata, spec })

export function slimLease({ metadata, spec }: Lease): Lease {
  const { name, uid, resourceVersion, labels, annotations, ownerReferences } = metadata
  return {
    metadata: {
      name,
      uid,
      resourceVersion,
      ...(labels && { labels }),
      ...(annotations && { annotations }),
      ...(ownerReferences && { ownerReferences }),
    },
    ...(spec && { spec }),
  }
}

export function agentPodOf({ metadata, spec, status }: PodObject): AgentPod {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  const since = Date.parse(ready?.lastTransitionTime ?? metadata.creationTimestamp ?? '')
  const containers = status?.containerStatuses ?? []
  const states = containers.map(({ state }) => state?.waiting?.reason ?? state?.terminated?.reason)
  const own = containers.find((one) => one.name === agentContainer)
  const message = [status?.message, ...containers.map(messageOf)].find((text) => text !== undefined && text !== '')
  const runningSinceMs = Date.parse(own?.state?.running?.startedAt ?? '')
  const placing = status?.conditions?.find((one) => one.type === 'PodScheduled' && one.status === 'False')
  return {
    name: metadata.name,
    uid: metadata.uid,
    createdAt: metadata.creationTimestamp ?? '',
    node: spec?.nodeName ?? '',
    isReady: ready?.status === 'True',
    sinceMs: Number.isNaN(since) ? undefined : since,
    isDeleting: metadata.deletionTimestamp !== undefined,
    containerError: states.find((reason) => reason !== undefined) ?? status?.reason,
    restarts: own?.restartCount ?? 0,
    image: imageOf(spec?.containers),
    ...(message !== undefined && { containerMessage: message }),
    ...(!Number.isNaN(runningSinceMs) && { runningSinceMs }),
    ...(placing && { unplaced: { node: intendedNode(spec), why: placing.message ?? '' } }),
    ...(metadata.deletionTimestamp !== undefined && { deletedByMs: Date.parse(metadata.deletionTimestamp) }),
  }
}

/** Of a waiting container, the kubelet's message; of a crashing one, how it ended. */
function messageOf({ state, lastState }: ContainerStatus): string | undefined {
  const ended = state?.terminated ?? lastState?.terminated
  if (state?.running !== undefined) return undefined
  if (ended === undefined) return state?.waiting?.message
  const code = ended.exitCode === undefined ? '' : `exit code ${ended.exitCode}`
  return [ended.reason, code, ended.message].filter((part) => part !== undefined && part !== '').join(', ')
}

/** The DaemonSet controller makes each pod for one node. */
function intendedNode(spec: PodObject['spec']): string {
  const terms = spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  const field = terms.flatMap(({ matchFields = [] }) => matchFields).find(({ key }) => key === 'metadata.name')
  return field?.values?.[0] ?? ''
}

export function daemonSetOf({ metadata, spec }: DaemonSetObject): AgentDaemonSet {
  const { serviceAccountName, containers, nodeSelector = {}, tolerations = [] } = spec?.template?.spec ?? {}
  return {
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    serviceAccount: serviceAccountName ?? 'default',
    version: metadata.labels?.['app.kubernetes.io/version'],
    image: imageOf(containers),
    nodeSelector,
    tolerations,
  }
}

/** The container of a pod that has the agent's log. */
export const agentContainer = 'agent'

const imageOf = (containers: readonly { readonly name?: string; readonly image?: string }[] = []): string =>
  (containers.find(({ name }) => name === agentContainer) ?? containers[0])?.image ?? ''
