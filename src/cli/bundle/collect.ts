/** Reads what a support archive has, and takes out what it must not have. */
import { listAll } from '../../kube/list.ts'
import type { KubeObject } from '../../kube/objects.ts'
import type { KubeTransport, Query } from '../../kube/transport.ts'
import { labelKeys } from '../../lease/names.ts'
import { leasesPathOf } from '../../lease/slot-reads.ts'
import { cordonKey, journalKey, skyhooksWith } from '../../schemas/annotations.ts'
import { policiesPath, skyhooksPath } from '../../schemas/api.ts'
import { sha256Hex } from '../../schemas/canonical-json.ts'
import type { Clock } from '../../schemas/clock.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { publishedOf } from '../../schemas/published.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { version as toolVersion } from '../../schemas/version.ts'
import { counted } from '../../schemas/wording.ts'
import { appliedHash, completionHash } from '../../stages/model/applied-hash.ts'
import type { Known } from '../../stages/model/snapshot.ts'
import { agentSelector } from '../fleet-view/read-fleet.ts'
import { readable } from '../fleet-view/readable.ts'
import { jsonText } from './archive.ts'
import { type Bundle, bundleFormat, type SourceEntry } from './bundle.ts'
import { nodeForBundle, podForBundle, settingsForBundle } from './project.ts'
import { createRedactor, literalsOf, type Redactor } from './redact.ts'

/** Pods of that many nodes are read: with a budget, few are out of service. */
const maxPodReads = 50
const nodePageSize = 100

type Source = {
  readonly what: string
  readonly path: string
  readonly query?: Query
  /** Within the archive. */
  readonly file: string
  readonly project?: (object: KubeObject) => KubeObject
}

type ReadSource = Source & { readonly objects: Known<readonly KubeObject[]> }

export type BundleRequest = {
  readonly namespace: string
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Pods are read of these nodes too. */
  readonly nodes: readonly string[]
  /** More files, by name: JSON that is redacted too. */
  readonly documents: ReadonlyMap<string, unknown>
}

/** Throws for an API server that does not answer. Reads no Secret. */
export async function collectBundle(transport: KubeTransport, request: BundleRequest): Promise<Bundle> {
  const { namespace, clock, signal } = request
  const takenAtMs = clock.wallMs()
  const read = async (source: Source): Promise<ReadSource> => {
    const { what, path, query, project = (object) => object } = source
    const listed = listAll<KubeObject, KubeObject>(transport, path, {
      transform: project,
      signal,
      ...(query && { query }),
      ...(what === 'Nodes' && { pageSize: nodePageSize }),
    })
    return {
      ...source,
      objects: await readable(
        what,
        listed.then(({ items }) => items),
      ),
    }
  }
  const sources = await Promise.all(sourcesOf(namespace).map(read))
  const objectsOf = (what: string): readonly KubeObject[] => {
    const found = sources.find((one) => one.what === what)
    return found?.objects.known === true ? found.objects.value : []
  }
  const nodes = objectsOf('Nodes') as readonly KubernetesNode[]
  const withPods = [...new Set([...request.nodes, ...nodes.filter(isCordoned).map(({ metadata }) => metadata.name)])]
  const pods = await Promise.all(withPods.slice(0, maxPodReads).map((node) => read(podsOf(node))))
  const all = [...sources, ...pods]
  const objects = all.flatMap((one) => (one.objects.known ? one.objects.value : []))
  const redactor = redactorFor(objects, objectsOf('Skyhooks') as readonly Skyhook[], nodes)
  const files = new Map([...request.documents].map(([name, document]) => [name, jsonText(redactor.object(document))]))
  const entries = all.map(({ what, path, query = {}, file, objects: found }): SourceEntry => {
    if (!found.known) return { what, path, query, unknown: redactor.text(found.why) }
    files.set(file, jsonText({ items: found.value.map((object) => redactor.object(object)) }))
    return { what, path, query, file, count: found.value.length }
  })
  return {
    index: {
      apiVersion: bundleFormat,
      kind: 'Bundle',
      takenAt: new Date(takenAtMs).toISOString(),
      toolVersion,
      namespace,
      sources: entries,
      leftOut: leftOutTexts(redactor, withPods.length - pods.length),
    },
    files,
  }
}

function sourcesOf(namespace: string): readonly Source[] {
  const inNamespace = `in namespace ${namespace}`
  const ofAgents = { labelSelector: agentSelector }
  const events = (kind: string): Source => ({
    what: `Events about ${kind}s`,
    path: '/api/v1/namespaces/default/events',
    query: { fieldSelector: `involvedObject.kind=${kind}` },
    file: `events-${kind.toLowerCase()}s.json`,
  })
  return [
    { what: 'Skyhooks', path: skyhooksPath, file: 'skyhooks.json' },
    { what: 'DeploymentPolicies', path: policiesPath, file: 'deploymentpolicies.json' },
    {
      what: 'Nodes',
      path: '/api/v1/nodes',
      file: 'nodes.json',
      project: (node) => nodeForBundle(node as KubernetesNode),
    },
    {
      what: `Leases ${inNamespace}`,
      path: leasesPathOf({ namespace }),
      query: { labelSelector: labelKeys.slotKind },
      file: 'leases.json',
    },
    {
      what: `Pods ${inNamespace}`,
      path: `/api/v1/namespaces/${namespace}/pods`,
      query: ofAgents,
      file: 'agents.json',
    },
    {
      what: `DaemonSets ${inNamespace}`,
      path: `/apis/apps/v1/namespaces/${namespace}/daemonsets`,
      query: ofAgents,
      file: 'daemonset.json',
    },
    {
      what: `ConfigMaps ${inNamespace}`,
      path: `/api/v1/namespaces/${namespace}/configmaps`,
      query: ofAgents,
      file: 'settings.json',
      project: settingsForBundle,
    },
    { what: `Events ${inNamespace}`, path: `/api/v1/namespaces/${namespace}/events`, file: 'events-agents.json' },
    events('Node'),
    events('Skyhook'),
    { what: 'PodDisruptionBudgets', path: '/apis/policy/v1/poddisruptionbudgets', file: 'poddisruptionbudgets.json' },
  ]
}

const podsOf = (node: string): Source => ({
  what: `Pods on node ${node}`,
  path: '/api/v1/pods',
  query: { fieldSelector: `spec.nodeName=${node}` },
  file: `pods/${node}.json`,
  project: podForBundle,
})

const isCordoned = ({ metadata }: KubernetesNode): boolean => skyhooksWith(cordonKey, metadata.annotations).length > 0

/**
 * Nodes carry hashes of the specs that they completed, and of their own state. Where redaction changes a spec or a
 * state, its hash is computed again, so that explain still sees what is complete and what was edited.
 */
function redactorFor(
  objects: readonly KubeObject[],
  skyhooks: readonly Skyhook[],
  nodes: readonly KubernetesNode[],
): Redactor {
  const names = new Set(
    objects.flatMap(({ metadata: { name, namespace = '', labels = {} } }) => [
      name,
      namespace,
      ...Object.values(labels),
    ]),
  )
  const packageNames = skyhooks.flatMap(({ spec }) =>
    Object.entries(spec?.packages ?? {}).flatMap(([name, { version, image }]) => [name, version, image]),
  )
  const literals = literalsOf(objects, new Set([...names, ...packageNames]))
  const first = createRedactor({ literals })
  const translations = new Map<string, string>()
  for (const { metadata, spec } of skyhooks) {
    if (!spec) continue
    const redacted = first.object(spec)
    translations.set(appliedHash(spec), appliedHash(redacted))
    translations.set(completionHash({ metadata, spec }), completionHash({ metadata, spec: redacted }))
  }
  for (const node of nodes)
    for (const skyhook of skyhooksWith(journalKey, node.metadata.annotations)) {
      const { state } = publishedOf(node, skyhook)
      if (state !== undefined && first.text(state) !== state)
        translations.set(sha256Hex(state), sha256Hex(first.text(state)))
    }
  for (const [from, to] of translations) if (from === to) translations.delete(from)
  return createRedactor({ literals, translations })
}

function leftOutTexts({ counts }: Redactor, nodesWithoutPods: number): readonly string[] {
  const { environmentValues, configurationValues, managedFields, lastApplied, maskedTexts } = counts
  return [
    'Secrets: none was read',
    `values of environment variables: ${environmentValues}`,
    `contents of configuration files of packages: ${configurationValues}; hashes of specs are those of what is left`,
    `last-applied annotations: ${lastApplied}`,
    `managedFields: ${managedFields}`,
    `texts in which something looked like a secret, or like a value or line that is left out: ${maskedTexts}`,
    'Nodes: annotations of others, images, addresses, capacity',
    'pods beside those of the agents: everything but names, labels, owners, tolerations and readiness; pods of nodes ' +
      'that were in service and not named with --node',
    ...(nodesWithoutPods > 0
      ? [`pods of ${counted(nodesWithoutPods, 'more node that is', 'more nodes that are')} out of service`]
      : []),
    'ConfigMaps beside the settings of the agents',
    'logs: see kubectl skyhook logs',
  ]
}
