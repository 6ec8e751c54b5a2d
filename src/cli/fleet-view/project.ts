/** What is kept of the objects of a fleet view: thousands of Nodes, and only what is shown or decided by. */
import type { KubeObject } from '../../kube/objects.ts'
import { versionKey } from '../../schemas/annotations.ts'
import { apiGroup } from '../../schemas/api.ts'
import type { KubernetesNode, Toleration } from '../../schemas/kubernetes.ts'
import { isNodeWrightKey } from '../../schemas/nodewright.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import type { AgentDaemonSet, AgentPod } from './fleet-view.ts'

type ContainerStatus = {
  readonly name?: string
  readonly restartCount?: number
  readonly state?: {
    readonly waiting?: { readonly reason?: string }
    readonly terminated?: { readonly reason?: string }
  }
}

export type PodObject = KubeObject & {
  readonly spec?: {
    readonly nodeName?: string
    readonly containers?: readonly { readonly name?: string; readonly image?: string }[]
  }
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string; lastTransitionTime?: string }[]
    readonly containerStatuses?: readonly ContainerStatus[]
  }
}

export type DaemonSetObject = KubeObject & {
  readonly spec?: {
    readonly template?: {
      readonly spec?: {
        readonly containers?: readonly { readonly name?: string; readonly image?: string }[]
        readonly nodeSelector?: Readonly<Record<string, string>>
        readonly tolerations?: readonly Toleration[]
        readonly affinity?: object
      }
    }
  }
}

/** A Node with what decisions look at: no images, no capacity, no annotations of others but those that stop work. */
export function slimNode({ metadata, spec, status }: KubernetesNode): KubernetesNode {
  const { name, uid, resourceVersion, labels = {}, annotations = {}, creationTimestamp } = metadata
  const own = Object.entries(annotations).filter(([key]) => isOwnKey(key) || isNodeWrightKey(key))
  const conditions = (status?.conditions ?? []).filter(({ type }) => type === 'Ready' || isOwnKey(type))
  const bootID = status?.nodeInfo?.bootID
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
    status: { conditions, nodeInfo: bootID === undefined ? {} : { bootID } },
  }
}

const isOwnKey = (key: string): boolean => key.startsWith(`${apiGroup}/`) && !key.startsWith(versionKey(''))

/** A Skyhook without what kubectl and the API server keep in it for themselves. */
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

export function agentPodOf({ metadata, spec, status }: PodObject): AgentPod {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready')
  const since = Date.parse(ready?.lastTransitionTime ?? metadata.creationTimestamp ?? '')
  const states = status?.containerStatuses?.map(({ state }) => state?.waiting?.reason ?? state?.terminated?.reason)
  return {
    name: metadata.name,
    node: spec?.nodeName ?? '',
    isReady: ready?.status === 'True',
    sinceMs: Number.isNaN(since) ? undefined : since,
    isDeleting: metadata.deletionTimestamp !== undefined,
    containerError: states?.find((reason) => reason !== undefined),
    restarts: status?.containerStatuses?.find((one) => one.name === agentContainer)?.restartCount ?? 0,
    image: imageOf(spec?.containers),
  }
}

export function daemonSetOf({ metadata, spec }: DaemonSetObject): AgentDaemonSet {
  const { containers, nodeSelector = {}, tolerations = [], affinity } = spec?.template?.spec ?? {}
  return {
    name: metadata.name,
    image: imageOf(containers),
    nodeSelector,
    hasAffinity: affinity !== undefined,
    tolerations,
  }
}

const agentContainer = 'agent'

const imageOf = (containers: readonly { readonly name?: string; readonly image?: string }[] = []): string =>
  (containers.find(({ name }) => name === agentContainer) ?? containers[0])?.image ?? ''
