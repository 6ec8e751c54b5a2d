/** Reads what a takeover from the Skyhook operator, or from NodeWright, depends on. */
import type { KubeObject } from '../../../kube/objects.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { apiGroup, skyhooksPath } from '../../../schemas/api.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import {
  type ContainerStatus,
  operatorNameKey,
  packagePodState,
  skyhookOfPackagePod,
} from '../../../stages/model/pods.ts'
import { readerOf, nodesAs } from '../../fleet-view/collections.ts'
import { slimNode } from '../../fleet-view/project.ts'
import { takeoverReport } from '../takeover/report.ts'
import type {
  OperatorDeployment,
  OperatorSkyhook,
  PackageConfigMap,
  PackagePod,
  TakeoverFacts,
} from '../takeover/facts.ts'
import type { Check } from '../finding.ts'
import { readAgents, readDefinitions } from './read-installations.ts'
import { readNodeWright } from './read-nodewright.ts'
import { readWebhooks } from './read-webhooks.ts'

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
