/** Reads what a takeover from the Skyhook operator depends on. */
import { listAll, type ListOptions } from '../../../kube/list.ts'
import type { KubeObject } from '../../../kube/objects.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { apiGroup, skyhooksPath } from '../../../schemas/api.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import {
  type ContainerStatus,
  operatorNameKey,
  packagePodState,
  skyhookOfPackagePod,
} from '../../../stages/model/package-pods.ts'
import { known, type Known } from '../../../stages/model/snapshot.ts'
import { slimNode } from '../../fleet-view/project.ts'
import { readable } from '../../fleet-view/readable.ts'
import { takeoverReport } from '../takeover/report.ts'
import type {
  DefinitionOwner,
  OperatorDeployment,
  OperatorSkyhook,
  OperatorWebhook,
  PackageConfigMap,
  PackagePod,
  TakeoverFacts,
} from '../takeover/facts.ts'
import type { Check } from '../finding.ts'

/** Throws for an API server that does not answer. */
export const checkTakeover = async (transport: KubeTransport, signal: AbortSignal): Promise<readonly Check[]> =>
  takeoverReport(await readTakeover(transport, signal))

async function readTakeover(transport: KubeTransport, signal: AbortSignal): Promise<TakeoverFacts> {
  const list = async <T extends KubeObject, U>(
    what: string,
    path: string,
    options: ListOptions<T, U>,
  ): Promise<Known<readonly U[]>> =>
    await readable(
      what,
      listAll<T, U>(transport, path, { ...options, signal }).then(({ items }) => items),
    )
  const some = async <U>(
    what: string,
    path: string,
    transform: (object: never) => U | undefined,
    query: Readonly<Record<string, string>> = {},
  ): Promise<Known<readonly U[]>> => {
    const found = await list<never, { readonly kept: U | undefined }>(what, path, {
      query,
      transform: (object) => ({ kept: transform(object) }),
    })
    return found.known ? known(found.value.flatMap(({ kept }) => (kept === undefined ? [] : [kept]))) : found
  }
  const admission = '/apis/admissionregistration.k8s.io/v1'
  const labelled = { labelSelector: operatorNameKey }
  const [skyhooks, nodes, pods, configMaps, deployments, validating, mutating, definitions] = await Promise.all([
    list<OperatorSkyhook & KubeObject, OperatorSkyhook>('Skyhooks', skyhooksPath, { transform: (object) => object }),
    list<KubernetesNode & KubeObject, KubernetesNode>('Nodes', '/api/v1/nodes', {
      transform: nodeOfTakeover,
      pageSize: 100,
    }),
    some<PackagePod>('Pods', '/api/v1/pods', packagePodOf, labelled),
    some<PackageConfigMap>('ConfigMaps', '/api/v1/configmaps', configMapOf, labelled),
    some<OperatorDeployment>('Deployments', '/apis/apps/v1/deployments', deploymentOf),
    some<string>('ValidatingWebhookConfigurations', `${admission}/validatingwebhookconfigurations`, nameOf),
    some<string>('MutatingWebhookConfigurations', `${admission}/mutatingwebhookconfigurations`, nameOf),
    some<DefinitionOwner>(
      'CustomResourceDefinitions',
      '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      definitionOf,
    ),
  ])
  return {
    skyhooks,
    nodes,
    pods,
    configMaps,
    deployments,
    webhooks: webhooksOf(validating, mutating),
    definitions,
  }
}

/** With the taint that tells since when it is cordoned. */
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

export type ConfigMapObject = KubeObject & { readonly data?: Readonly<Record<string, string>> }

export function configMapOf({ metadata, data = {} }: ConfigMapObject): PackageConfigMap | undefined {
  const { namespace = '', name, annotations = {} } = metadata
  const skyhook = annotations[operatorNameKey]
  const [packageName, version] = [annotations[`${apiGroup}/Package.Name`], annotations[`${apiGroup}/Package.Version`]]
  if (skyhook === undefined || packageName === undefined || version === undefined) return undefined
  return { namespace, name, skyhook, package: packageName, version, data }
}

type DeploymentObject = KubeObject & {
  readonly spec?: {
    readonly replicas?: number
    readonly template?: {
      readonly spec?: { readonly containers?: readonly { readonly env?: readonly { readonly name: string }[] }[] }
    }
  }
  readonly status?: { readonly replicas?: number }
}

/** What the operator's container is told, and no other one is. */
const operatorVariables = ['AGENT_IMAGE', 'RUNTIME_REQUIRED_TAINT']

function deploymentOf({ metadata, spec, status }: DeploymentObject): OperatorDeployment | undefined {
  const isOperator = (spec?.template?.spec?.containers ?? []).some(({ env = [] }) =>
    operatorVariables.every((variable) => env.some(({ name }) => name === variable)),
  )
  if (!isOperator) return undefined
  const replicas = Math.max(spec?.replicas ?? 1, status?.replicas ?? 0)
  return { namespace: metadata.namespace ?? '', name: metadata.name, replicas }
}

type WebhookObject = KubeObject & {
  readonly webhooks?: readonly { readonly rules?: readonly { readonly apiGroups?: readonly string[] }[] }[]
}

const nameOf = ({ metadata, webhooks = [] }: WebhookObject): string | undefined =>
  webhooks.some(({ rules = [] }) => rules.some(({ apiGroups = [] }) => apiGroups.includes(apiGroup)))
    ? metadata.name
    : undefined

function webhooksOf(
  validating: Known<readonly string[]>,
  mutating: Known<readonly string[]>,
): Known<readonly OperatorWebhook[]> {
  if (!validating.known) return validating
  if (!mutating.known) return mutating
  return known([
    ...validating.value.map((name) => ({ kind: 'ValidatingWebhookConfiguration', name }) as const),
    ...mutating.value.map((name) => ({ kind: 'MutatingWebhookConfiguration', name }) as const),
  ])
}

function definitionOf({ metadata: { name, labels = {}, annotations = {} } }: KubeObject): DefinitionOwner | undefined {
  const release = annotations['meta.helm.sh/release-name']
  if (!name.endsWith(`.${apiGroup}`) || release === undefined) return undefined
  const namespace = annotations['meta.helm.sh/release-namespace'] ?? ''
  return { name, release: `${namespace}/${release}`, isOurs: labels['app.kubernetes.io/name'] === 'skyhookd' }
}
