/** What the census watches, and whether it can be trusted. */
import type { KubeObject } from '../../kube/objects.ts'
import {
  type Reflector,
  type ReflectorFact,
  type ReflectorOptions,
  type ReflectorUpdate,
  startReflector,
} from '../../kube/reflector.ts'
import type { Change } from '../../kube/store.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { labelKeys } from '../../lease/names.ts'
import { createPolicyWatch, type PolicyWatch } from '../../lease/policy-watch.ts'
import { leasesPathOf } from '../../lease/slot-reads.ts'
import type { Lease } from '../../lease/slot.ts'
import { cordonKey, isOwnKey, skyhooksWith, statusKey } from '../../schemas/annotations.ts'
import { skyhooksPath } from '../../schemas/api.ts'
import { type Clock, type Random, sleep } from '../../schemas/clock.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { type AgentPod, type Agents, createAgentMonitor } from './agent-liveness.ts'
import type { CensusSettings } from './messages.ts'
import type { CensusNode } from './node-facts.ts'
import { statusOf } from './skyhook-status.ts'

export type ClusterView = {
  readonly nodes: ReadonlyMap<string, CensusNode>
  readonly skyhooks: ReadonlyMap<string, Skyhook & KubeObject>
  readonly ledgers: ReadonlyMap<string, Lease>
  agents(): Agents
  /** The policy that a Skyhook names. */
  readonly policyOf: PolicyWatch['of']
  /** Every list is complete and every watch unbroken, and the own Node is among the nodes. Not before `synced`. */
  isTrusted(): boolean
  /** Since the view could last be trusted; undefined: not yet. */
  distrustedMs(): number | undefined
  /** Lists what a watch does not show. */
  relist(what: 'skyhook' | 'ledger'): void
  /** Resolves when there is enough to count; rejects when the signal aborts before. */
  readonly synced: Promise<void>
  close(): void
}

export type ClusterViewOptions = {
  readonly settings: CensusSettings
  readonly clock: Clock
  readonly random: Random
  readonly signal: AbortSignal
  /** `before` and `after` are undefined for a node that did not exist, or no longer does. */
  readonly onNode: (before: CensusNode | undefined, after: CensusNode | undefined) => void
  readonly onSkyhooks: (changes: readonly Change<Skyhook & KubeObject>[]) => void
  readonly onLedgers: (changes: readonly Change<Lease>[]) => void
  /** A complete list. Its changes were reported before. */
  readonly onListed: (what: 'skyhook' | 'ledger') => void
  /** A change that concerns every Skyhook. */
  readonly onRecount: () => void
  /** The view was trusted and no longer contains the own Node. */
  readonly onOwnNodeMissing: () => void
  readonly onFact: (kind: string, fact: ReflectorFact) => void
}

/** Without pods, nodes that report nothing are unknown; the first count waits this long for them. */
const podsTimeoutMs = 2_000
/** A page is parsed in one piece, and a Node with 50 Skyhooks has 70 KB of metadata. */
const nodePageSize = 100

export function startClusterView(transport: KubeTransport, options: ClusterViewOptions): ClusterView {
  const { settings, clock, random, signal } = options
  const { nodeName, podName, namespace } = settings
  const nodes = new Map<string, CensusNode>()
  let wasTrusted = false
  let trustedAtMs: number | undefined

  const areListsTrusted = (): boolean =>
    isHealthy(nodeObjects) && isHealthy(skyhooks) && isHealthy(ledgers) && nodes.has(nodeName)
  const recheckTrust = (): void => {
    const isTrusted = areListsTrusted()
    if (isTrusted && !wasTrusted) options.onRecount()
    if (!isTrusted && isHealthy(nodeObjects) && !nodes.has(nodeName) && wasTrusted) options.onOwnNodeMissing()
    wasTrusted = isTrusted
  }
  const follow = <T extends KubeObject>(
    kind: string,
    onChange: (update: ReflectorUpdate<T>) => void,
    request: Pick<ReflectorOptions<T>, 'path' | 'query' | 'metadataOnly' | 'transform' | 'onListed' | 'timing'>,
  ) =>
    startReflector<T>(transport, {
      ...request,
      clock,
      random,
      onChange,
      onFact: (fact) => options.onFact(kind, fact),
      signal,
    })

  const updateNodes = ({ changes }: ReflectorUpdate<KubeObject>): void => {
    let hasNodeSetChanged = false
    for (const { type, key, object } of changes) {
      const before = nodes.get(key)
      const after = type === 'deleted' ? undefined : censusNode(object)
      if (after === undefined) nodes.delete(key)
      else nodes.set(key, after)
      hasNodeSetChanged ||= (before === undefined) !== (after === undefined)
      if (wasTrusted) options.onNode(before, after)
    }
    if (hasNodeSetChanged) monitor.refresh()
    recheckTrust()
  }
  const nodeObjects = follow<KubeObject>('nodes', updateNodes, {
    path: '/api/v1/nodes',
    metadataOnly: true,
    transform: slimNode,
    timing: { pageSize: nodePageSize },
  })
  const updateSkyhooks = ({ changes }: ReflectorUpdate<Skyhook & KubeObject>): void => {
    if (changes.length > 0) options.onSkyhooks(changes)
    recheckTrust()
  }
  const skyhooks = follow('skyhooks', updateSkyhooks, {
    path: skyhooksPath,
    transform: slimSkyhook,
    onListed: () => options.onListed('skyhook'),
  })
  const updateLedgers = ({ changes }: ReflectorUpdate<Lease>): void => {
    if (changes.length > 0) options.onLedgers(changes)
    recheckTrust()
  }
  const ledgers = follow('ledgers', updateLedgers, {
    path: leasesPathOf({ namespace }),
    query: { labelSelector: `${labelKeys.slotKind}=ledger` },
    onListed: () => options.onListed('ledger'),
  })
  const pods = follow<PodObject>('pods', () => monitor.refresh(), {
    path: `/api/v1/namespaces/${namespace}/pods`,
    query: { labelSelector: settings.agentPodSelector },
    transform: slimPod,
  })
  const monitor = createAgentMonitor({
    clock,
    nodes,
    pods: () => agentPodsIn(pods, podName),
    onChange: options.onRecount,
  })

  const policies = createPolicyWatch(transport, {
    clock,
    random,
    onChange: options.onRecount,
    onFact: (fact) => options.onFact('deploymentpolicies', fact),
    signal,
  })

  const untilSynced = async (): Promise<void> => {
    await Promise.all([nodeObjects.synced, skyhooks.synced, ledgers.synced])
    await Promise.race([pods.synced, sleep(clock, podsTimeoutMs, signal)])
    monitor.start(previouslySilentNodes(skyhooks.store.values(), nodes))
    recheckTrust()
  }

  const isTrusted = (): boolean => {
    const isNow = monitor.isStarted() && areListsTrusted()
    if (isNow) trustedAtMs = clock.monotonicMs()
    return isNow
  }

  return {
    nodes,
    skyhooks: skyhooks.store,
    ledgers: ledgers.store,
    agents: monitor.agents,
    policyOf: (name) => policies.of(name),
    isTrusted,
    distrustedMs: () => (isTrusted() ? 0 : trustedAtMs && clock.monotonicMs() - trustedAtMs),
    relist: (what) => (what === 'skyhook' ? skyhooks : ledgers).relist(),
    synced: untilSynced(),
    close: monitor.stop,
  }
}

/** What the census keeps of watched objects: only what it counts, because it keeps it for every node. */

/** Listed, and its watch is not broken, so it is at most a moment old. */
function isHealthy(reflector: Reflector<KubeObject>): boolean {
  const state = reflector.state()
  return state.state === 'synced' && state.lastError === undefined
}

/** The agents' pods; undefined if they cannot be trusted: a list without our own pod is not that of the agents. */
function agentPodsIn(reflector: Reflector<PodObject>, ownPod: string): AgentPod[] | undefined {
  if (!isHealthy(reflector) || !reflector.store.has(ownPod)) return undefined
  return [...reflector.store.values()].map(({ spec, status }) => ({
    node: spec?.nodeName ?? '',
    isReady: status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true,
  }))
}

/** Nodes that were silent for the previous census: they report a status and counted as unknown all the same. */
function previouslySilentNodes(skyhooks: Iterable<Skyhook>, nodes: ReadonlyMap<string, CensusNode>): Set<string> {
  const silent = new Set<string>()
  for (const skyhook of skyhooks) {
    for (const [name, countedStatus] of Object.entries(statusOf(skyhook)?.nodeStatus ?? {})) {
      const published = nodes.get(name)?.annotations[statusKey(skyhook.metadata.name)]
      if (countedStatus === 'unknown' && published !== undefined && published !== 'unknown') silent.add(name)
    }
  }
  return silent
}

type PodObject = KubeObject & {
  readonly spec?: { readonly nodeName?: string }
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

function slimNode({ metadata }: KubeObject): KubeObject {
  const { name, uid, resourceVersion, labels = {}, annotations = {} } = metadata
  const ownAnnotations = Object.fromEntries(Object.entries(annotations).filter(([key]) => isOwnKey(key)))
  return { metadata: { name, uid, resourceVersion, labels, annotations: ownAnnotations } }
}

export function censusNode({ metadata: { name, uid, labels = {}, annotations = {} } }: KubeObject): CensusNode {
  return { name, uid, labels, annotations, cordonedBy: skyhooksWith(cordonKey, annotations) }
}

function slimSkyhook(skyhook: Skyhook & KubeObject): Skyhook & KubeObject {
  const annotations = { ...skyhook.metadata.annotations }
  delete annotations['kubectl.kubernetes.io/last-applied-configuration']
  return { ...skyhook, spec: skyhook.spec ?? {}, metadata: { ...skyhook.metadata, annotations } }
}

function slimPod({ metadata, spec, status }: PodObject): PodObject {
  const { name, uid, resourceVersion } = metadata
  return {
    metadata: { name, uid, resourceVersion },
    spec: { ...(spec?.nodeName !== undefined && { nodeName: spec.nodeName }) },
    status: { conditions: (status?.conditions ?? []).filter(({ type }) => type === 'Ready') },
  }
}
