/** What the census keeps of watched objects: only what it counts, because it keeps it for every node. */
import type { KubeObject } from '../kube/objects.ts'
import type { Reflector } from '../kube/reflector.ts'
import { cordonKey, skyhooksWith, statusKey, versionKey } from '../schemas/annotations.ts'
import { apiGroup } from '../schemas/api.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import type { CensusNode } from './node-facts.ts'
import type { AgentPod } from './agent-liveness.ts'
import { statusOf } from './skyhook-status.ts'

/** Listed, and its watch is not broken, so it is at most a moment old. */
export function isHealthy(reflector: Reflector<KubeObject>): boolean {
  const state = reflector.state()
  return state.state === 'synced' && state.lastError === undefined
}

/** The agents' pods; undefined if they cannot be trusted: a list without our own pod is not that of the agents. */
export function agentPodsIn(reflector: Reflector<PodObject>, ownPod: string): AgentPod[] | undefined {
  if (!isHealthy(reflector) || !reflector.store.has(ownPod)) return undefined
  return [...reflector.store.values()].map(({ spec, status }) => ({
    node: spec?.nodeName ?? '',
    isReady: status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true,
  }))
}

/** Nodes that were silent for the previous census: they report a status and counted as unknown all the same. */
export function previouslySilentNodes(
  skyhooks: Iterable<Skyhook>,
  nodes: ReadonlyMap<string, CensusNode>,
): Set<string> {
  const silent = new Set<string>()
  for (const skyhook of skyhooks) {
    for (const [name, countedStatus] of Object.entries(statusOf(skyhook)?.nodeStatus ?? {})) {
      const published = nodes.get(name)?.annotations[statusKey(skyhook.metadata.name)]
      if (countedStatus === 'unknown' && published !== undefined && published !== 'unknown') silent.add(name)
    }
  }
  return silent
}

export type PodObject = KubeObject & {
  readonly spec?: { readonly nodeName?: string }
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

const isOwnAnnotation = (key: string): boolean => key.startsWith(`${apiGroup}/`) && !key.startsWith(versionKey(''))

export function slimNode({ metadata }: KubeObject): KubeObject {
  const { name, uid, resourceVersion, labels = {}, annotations = {} } = metadata
  const ownAnnotations = Object.fromEntries(Object.entries(annotations).filter(([key]) => isOwnAnnotation(key)))
  return { metadata: { name, uid, resourceVersion, labels, annotations: ownAnnotations } }
}

export function censusNode({ metadata: { name, uid, labels = {}, annotations = {} } }: KubeObject): CensusNode {
  return { name, uid, labels, annotations, cordonedBy: skyhooksWith(cordonKey, annotations) }
}

export function slimSkyhook(skyhook: Skyhook & KubeObject): Skyhook & KubeObject {
  const annotations = { ...skyhook.metadata.annotations }
  delete annotations['kubectl.kubernetes.io/last-applied-configuration']
  return { ...skyhook, spec: skyhook.spec ?? {}, metadata: { ...skyhook.metadata, annotations } }
}

export function slimPod({ metadata, spec, status }: PodObject): PodObject {
  const { name, uid, resourceVersion } = metadata
  return {
    metadata: { name, uid, resourceVersion },
    spec: { ...(spec?.nodeName !== undefined && { nodeName: spec.nodeName }) },
    status: { conditions: (status?.conditions ?? []).filter(({ type }) => type === 'Ready') },
  }
}
