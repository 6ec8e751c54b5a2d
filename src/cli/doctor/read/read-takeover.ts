/** Reads what a takeover from the Skyhook operator, or from NodeWright, depends on. */
import { getIfExists, type KubeObject } from '../../../kube/objects.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { agentSelector, apiGroup, skyhooksPath } from '../../../schemas/api.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import {
  type ContainerStatus,
  operatorNameKey,
  packagePodState,
  skyhookOfPackagePod,
} from '../../../stages/model/pods.ts'
import {
  readerOf,
  nodesAs,
  type CollectionReader,
  fleetCollections,
  type Collection,
} from '../../fleet/fleet-view/collections.ts'
import { slimNode } from '../../fleet/fleet-view/project.ts'
import { takeoverReport } from '../takeover/report.ts'
import type {
  OperatorDeployment,
  OperatorSkyhook,
  PackageConfigMap,
  PackagePod,
  TakeoverFacts,
  AgentsInstallation,
  DefinitionOwner,
  NodeWrightFacts,
  NodeWrightJob,
  OperatorWebhook,
} from '../takeover/facts.ts'
import type { Check } from '../finding.ts'
import { known, type Known } from '../../../stages/model/snapshot.ts'
import { mapped, readable } from '../../fleet/fleet-view/readable.ts'
import { type ConfigMapObject, settingsOf } from '../../fleet/fleet-view/settings.ts'
import { nodeWrightGroup, nodeWrightGroupPath } from '../../../schemas/nodewright.ts'

/** Throws for an API server that does not answer. */
export const checkTakeover = async (transport: KubeTransport, signal: AbortSignal): Promise<readonly Check[]> =>
  takeoverReport(await readTakeover(transport, signal))

async function readTakeover(transport: KubeTransport, signal: AbortSignal): Promise<TakeoverFacts> {
  const read = readerOf(transport, signal)
  const query = { labelSelector: operatorNameKey }
  const [skyhooks, nodes, pods, configMaps, deployments, webhooks, definitions, agents, nodeWright] = await Promise.all(
    [
      read<OperatorSkyhook>({ what: 'Skyhooks', path: skyhooksPath, keep: (object) => object }),
      read(nodesAs(nodeOfTakeover)),
      read<PackagePod>({ what: 'Pods', path: '/api/v1/pods', query, keep: packagePodOf }),
      read<PackageConfigMap>({ what: 'ConfigMaps', path: '/api/v1/configmaps', query, keep: configMapOf }),
      read<OperatorDeployment>({ what: 'Deployments', path: '/apis/apps/v1/deployments', keep: deploymentOf }),
      readWebhooks(transport, signal),
      readDefinitions(transport, signal),
      readAgents(transport, signal),
      readNodeWright(transport, signal),
    ],
  )
  return { skyhooks, nodes, pods, configMaps, deployments, webhooks, definitions, agents, nodeWright }
}

/** With the taint that shows since when it is cordoned. */
const nodeOfTakeover = (node: KubernetesNode): KubernetesNode => ({
  ...slimNode(node),
  ...(node.spec && { spec: node.spec }),
})

export type PodObject = KubeObject & {
  readonly spec?: { readonly nodeName?: string }
  readonly status?: { readonly phase?: string; readonly initContainerStatuses?: readonly ContainerStatus[] }
}

/** Undefined for a pod that is not the operator's. */
export function packagePodOf(pod: PodObject): PackagePod | undefined {
  const skyhook = skyhookOfPackagePod(pod)
  if (skyhook === undefined) return undefined
  const { metadata, spec } = pod
  return {
    namespace: metadata.namespace ?? '',
    name: metadata.name,
    node: spec?.nodeName ?? '',
    skyhook,
    state: packagePodState(pod),
  }
}

type OperatorConfigMap = KubeObject & { readonly data?: Readonly<Record<string, string>> }

export function configMapOf({ metadata, data = {} }: OperatorConfigMap): PackageConfigMap | undefined {
  const { namespace = '', name, annotations = {} } = metadata
  const skyhook = annotations[operatorNameKey]
  const [packageName, version] = [annotations[`${apiGroup}/Package.Name`], annotations[`${apiGroup}/Package.Version`]]
  if (skyhook === undefined || packageName === undefined || version === undefined) return undefined
  return { namespace, name, skyhook, package: packageName, version, data }
}

type DeploymentObject = KubeObject & {
  readonly spec?: {
    readonly replicas?: number
    readonly template?: { readonly spec?: { readonly containers?: readonly Container[] } }
  }
  readonly status?: { readonly replicas?: number }
}

type Container = { readonly image?: string; readonly env?: readonly { readonly name: string }[] }

/** The operator's, by its old and new names. A variable of its own distinguishes it from namesakes. */
function deploymentOf({ metadata, spec, status }: DeploymentObject): OperatorDeployment | undefined {
  const isNamed = metadata.name.endsWith('-controller-manager')
  const isOperator = (spec?.template?.spec?.containers ?? []).some(({ image = '', env = [] }) => {
    const variables = new Set(env.map(({ name }) => name))
    const isImage = /\/operator(?:[:@]|$)/.test(image)
    return variables.has('RUNTIME_REQUIRED_TAINT') && (isNamed || isImage || variables.has('AGENT_IMAGE'))
  })
  if (!isOperator) return undefined
  const replicas = Math.max(spec?.replicas ?? 1, status?.replicas ?? 0)
  return { namespace: metadata.namespace ?? '', name: metadata.name, replicas }
}

async function readAgents(
  transport: KubeTransport,
  signal: AbortSignal,
): Promise<Known<readonly AgentsInstallation[]>> {
  const daemonSets = {
    what: 'DaemonSets',
    path: '/apis/apps/v1/daemonsets',
    query: { labelSelector: agentSelector },
    keep: ({ metadata }: KubeObject) => metadata,
  }
  const found = await readerOf(transport, signal)(daemonSets)
  if (!found.known) return found
  return known(
    await Promise.all(
      found.value.map(async ({ namespace = '', name, annotations }) => {
        const { what, path } = fleetCollections(namespace).settings
        const settings = await readable(what, getIfExists<ConfigMapObject>(transport, `${path}/${name}`, { signal }))
        const ignoresNodeWright = mapped(
          settings,
          (one) => one !== undefined && settingsOf(one)?.ignoreNodeWright === true,
        )
        return { namespace, name, release: releaseOf(annotations), ignoresNodeWright }
      }),
    ),
  )
}

/** Helm annotates all its objects with it; `namespace/name`. */
function releaseOf(annotations: Readonly<Record<string, string>> = {}): string | undefined {
  const name = annotations['meta.helm.sh/release-name']
  return name === undefined ? undefined : `${annotations['meta.helm.sh/release-namespace'] ?? ''}/${name}`
}

async function readDefinitions(
  transport: KubeTransport,
  signal: AbortSignal,
): Promise<Known<readonly DefinitionOwner[]>> {
  const read = readerOf(transport, signal)
  const found = await read({
    what: 'CustomResourceDefinitions',
    path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
    keep({ metadata: { name, annotations } }: KubeObject) {
      const release = releaseOf(annotations)
      return name.endsWith(`.${apiGroup}`) && release !== undefined ? { name, release } : undefined
    },
  })
  if (!found.known) return found
  const gone = new Map<string, boolean>()
  for (const { release } of found.value) if (!gone.has(release)) gone.set(release, await isGone(read, release))
  return known(found.value.map((one) => ({ ...one, isGone: gone.get(one.release) === true })))
}

/** Helm keeps a release in Secrets, or in ConfigMaps if configured. Only their metadata is requested. */
async function isGone(read: CollectionReader, release: string): Promise<boolean> {
  const [namespace = '', name = ''] = release.split('/')
  const query = { labelSelector: `owner=helm,name=${name}` }
  const lists = await Promise.all(
    ['secrets', 'configmaps'].map(async (what) => {
      const path = `/api/v1/namespaces/${namespace}/${what}`
      return await read({ what, path, query, metadataOnly: true, keep: () => true })
    }),
  )
  return lists.every((list) => list.known && list.value.length === 0)
}

/** On its Jobs and their pods. */
const nodeLabel = `${nodeWrightGroup}/node`
const nameLabel = `${nodeWrightGroup}/name`

async function readNodeWright(transport: KubeTransport, signal: AbortSignal): Promise<NodeWrightFacts> {
  const openJobs: Collection<NodeWrightJob> = {
    what: 'Jobs',
    path: '/apis/batch/v1/jobs',
    query: { labelSelector: nodeLabel },
    keep: jobOf,
  }
  const [objects, jobs] = await Promise.all([readGroup(transport, signal), readerOf(transport, signal)(openJobs)])
  return { ...objects, jobs }
}

type ApiGroup = { readonly versions?: readonly { readonly groupVersion: string }[] }
type ApiResources = { readonly resources?: readonly { readonly name: string }[] }

/** The group may be served without NodeWrights: it also has a definition of DeploymentPolicies. */
async function readGroup(transport: KubeTransport, signal: AbortSignal): Promise<Omit<NodeWrightFacts, 'jobs'>> {
  const group = await readable(nodeWrightGroup, getIfExists<ApiGroup>(transport, nodeWrightGroupPath, { signal }))
  if (!group.known) return { isServed: group, objects: group }
  if (group.value === undefined) return { isServed: known(false), objects: known([]) }
  const isServed = known(true)
  for (const { groupVersion } of group.value.versions ?? []) {
    const path = `/apis/${groupVersion}`
    const served = await readable(groupVersion, transport.json<ApiResources>('GET', path, { signal }))
    if (!served.known) return { isServed, objects: served }
    if (served.value.resources?.some(({ name }) => name === 'nodewrights') !== true) continue
    const keep = ({ metadata }: KubeObject): string => metadata.name
    const nodeWrights = { what: 'NodeWrights', path: `${path}/nodewrights`, keep }
    return { isServed, objects: await readerOf(transport, signal)(nodeWrights) }
  }
  return { isServed, objects: known([]) }
}

type JobObject = KubeObject & {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

/** A suspended one has not ended: it continues when it is resumed. */
function jobOf({ metadata, status }: JobObject): NodeWrightJob | undefined {
  const { namespace = '', name, labels = {} } = metadata
  const hasEnded = status?.conditions?.some((one) => ['Complete', 'Failed'].includes(one.type) && one.status === 'True')
  return hasEnded === true
    ? undefined
    : { namespace, name, node: labels[nodeLabel] ?? '', rollout: labels[nameLabel] ?? '' }
}

const kinds = ['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration'] as const

type Service = { readonly namespace: string; readonly name: string }

/** `services`: those of a webhook. */
type Found = Omit<OperatorWebhook, 'unanswered'> & { readonly services: readonly Service[] }

async function readWebhooks(transport: KubeTransport, signal: AbortSignal): Promise<Known<readonly OperatorWebhook[]>> {
  const read = readerOf(transport, signal)
  const lists = await Promise.all(
    kinds.map(async (kind) => {
      const path = `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}s`
      return await read<Found>({ what: `${kind}s`, path, keep: (object) => webhookOf(kind, object) })
    }),
  )
  const hidden = lists.find((list) => !list.known)
  if (hidden !== undefined && !hidden.known) return hidden
  const found = lists.flatMap((list) => (list.known ? list.value : []))
  return known(
    await Promise.all(
      found.map(async ({ services, ...webhook }) => ({ ...webhook, unanswered: await unanswered(read, services) })),
    ),
  )
}

type WebhookObject = KubeObject & {
  readonly webhooks?: readonly {
    readonly clientConfig?: { readonly service?: Service }
    readonly rules?: readonly { readonly apiGroups?: readonly string[] }[]
  }[]
}

/** NodeWright finds its own by this label, the one that keeps Skyhooks as they are among them. */
const webhookLabel = `${nodeWrightGroup}/webhook-config`

function webhookOf(kind: Found['kind'], { metadata, webhooks = [] }: WebhookObject): Found | undefined {
  const groups = webhooks.flatMap(({ rules = [] }) => rules.flatMap(({ apiGroups = [] }) => apiGroups))
  const isAsked = groups.includes(apiGroup)
  if (!isAsked && metadata.labels?.[webhookLabel] === undefined) return undefined
  const services = webhooks.flatMap(({ clientConfig }) => clientConfig?.service ?? [])
  const unique = new Map(services.map((service) => [textOf(service), service]))
  return { kind, name: metadata.name, isAsked, services: [...unique.values()] }
}

const textOf = ({ namespace, name }: Service): string => `${namespace}/${name}`

type EndpointSlice = KubeObject & {
  readonly endpoints?: readonly { readonly conditions?: { readonly ready?: boolean } }[]
}

async function unanswered(read: CollectionReader, services: readonly Service[]): Promise<Known<readonly string[]>> {
  const silent: string[] = []
  for (const service of services) {
    const ready = await read<true>({
      what: `EndpointSlices of namespace ${service.namespace}`,
      path: `/apis/discovery.k8s.io/v1/namespaces/${service.namespace}/endpointslices`,
      query: { labelSelector: `kubernetes.io/service-name=${service.name}` },
      keep: hasReady,
    })
    if (!ready.known) return ready
    if (ready.value.length === 0) silent.push(textOf(service))
  }
  return known(silent)
}

/** An endpoint without a ready condition counts as ready. */
const hasReady = ({ endpoints }: EndpointSlice): true | undefined =>
  endpoints?.some(({ conditions }) => conditions?.ready !== false) === true ? true : undefined
