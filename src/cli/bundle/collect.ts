/** Reads the content of a support archive, and removes what it must not contain. */
import type { KubeObject } from '../../kube/objects.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { cordonKey, journalKey, skyhooksWith } from '../../schemas/annotations.ts'
import { sha256Hex } from '../../schemas/canonical-json.ts'
import type { Clock } from '../../schemas/clock.ts'
import { ownValue } from '../../schemas/json.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { publishedOf } from '../../schemas/published.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { version as toolVersion } from '../../schemas/version.ts'
import { counted } from '../../schemas/wording.ts'
import { appliedHash, completionHash, inputsHash, inputsOf } from '../../stages/model/package-inputs.ts'
import type { Known } from '../../stages/model/snapshot.ts'
import { type Collection, readerOf, fleetCollections } from '../fleet/fleet-view/collections.ts'
import { budgets, eventsAbout, podsOn } from '../fleet/fleet-view/node-detail.ts'
import { settingsFileOf } from '../fleet/fleet-view/settings.ts'
import { jsonText, type Bundle, bundleFormat, type SourceEntry } from './archive.ts'
import { createRedactor, literalsOf, type Redactor } from './redact.ts'

/** The most nodes whose pods are read: with a budget, few nodes are out of service. */
const maxPodReads = 50

/** A collection for the archive, with the objects that `keep` returns. */
type Source = Collection<KubeObject> & {
  /** The file within the archive. */
  readonly file: string
}

type ReadSource = Source & { readonly objects: Known<readonly KubeObject[]> }

export type BundleRequest = {
  readonly namespace: string
  readonly clock: Clock
  readonly signal: AbortSignal
  /** The pods of these nodes are read, too. */
  readonly nodes: readonly string[]
  /** More files by name: JSON, which is redacted, too. */
  readonly documents: ReadonlyMap<string, unknown>
}

/** Throws if the API server does not answer. Reads no Secret. */
export async function collectBundle(transport: KubeTransport, request: BundleRequest): Promise<Bundle> {
  const { namespace, clock, signal } = request
  const takenAtMs = clock.wallMs()
  const list = readerOf(transport, signal)
  const read = async (source: Source): Promise<ReadSource> => ({ ...source, objects: await list(source) })
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
  const { skyhooks, policies, nodes, leases, agents, daemonSets, settings } = fleetCollections(namespace)
  const events = { what: `Events in namespace ${namespace}`, path: `/api/v1/namespaces/${namespace}/events` }
  return [
    whole(skyhooks, 'skyhooks.json'),
    whole(policies, 'deploymentpolicies.json'),
    { ...nodes, file: 'nodes.json' },
    whole(leases, 'leases.json'),
    whole(agents, 'agents.json'),
    whole(daemonSets, 'daemonset.json'),
    { ...settings, file: 'settings.json', keep: settingsFileOf },
    whole(events, 'events-agents.json'),
    whole({ ...eventsAbout('Node'), what: 'Events about Nodes' }, 'events-nodes.json'),
    whole({ ...eventsAbout('Skyhook'), what: 'Events about Skyhooks' }, 'events-skyhooks.json'),
    whole(budgets, 'poddisruptionbudgets.json'),
  ]
}

const whole = (collection: Omit<Collection<unknown>, 'keep'>, file: string): Source => ({
  ...collection,
  file,
  keep: (object: KubeObject) => object,
})

const podsOf = (node: string): Source => ({ ...podsOn(node), what: `Pods on node ${node}`, file: `pods/${node}.json` })

const isCordoned = ({ metadata }: KubernetesNode): boolean => skyhooksWith(cordonKey, metadata.annotations).length > 0

/**
 * Nodes carry hashes of the specs that they completed, and of their own state. If redaction changes a spec or a state,
 * its hash is computed again, so that explain still finds what is complete and what was edited.
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
    for (const [name, one] of Object.entries(redacted.packages ?? {})) {
      const original = ownValue(spec.packages, name)
      if (original) translations.set(inputsHash(inputsOf(original)), inputsHash(inputsOf(one)))
    }
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
    `contents of configuration files of packages: ${configurationValues}; hashes are those of redacted specs`,
    `last-applied annotations: ${lastApplied}`,
    `managedFields: ${managedFields}`,
    `texts with something that looks like a secret, or like a value or line that was left out: ${maskedTexts}`,
    'Nodes: other annotations, images, addresses, capacity',
    'pods other than those of agents: everything except names, labels, owners, tolerations and readiness; pods of ' +
      'nodes that were in service and not named with --node',
    ...(nodesWithoutPods > 0
      ? [`pods of ${counted(nodesWithoutPods, 'more node that is', 'more nodes that are')} out of service`]
      : []),
    'ConfigMaps other than the settings of the agents',
    'logs: see kubectl skyhook logs',
  ]
}
