/** Reads what the checks of a cluster look at. */
import { getIfExists } from '../../../kube/get.ts'
import { listAll } from '../../../kube/list.ts'
import type { KubeObject } from '../../../kube/objects.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { censusLeaseName } from '../../../lease/names.ts'
import { leasesPathOf } from '../../../lease/slot-reads.ts'
import type { Lease } from '../../../lease/slot.ts'
import type { Clock } from '../../../schemas/clock.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { version as toolVersion } from '../../../schemas/version.ts'
import { known, type Known, unknown } from '../../../stages/model/snapshot.ts'
import type { FleetView } from '../../fleet-view/fleet-view.ts'
import { slimNode } from '../../fleet-view/project.ts'
import { agentSelector, readFleet } from '../../fleet-view/read-fleet.ts'
import { readable } from '../../fleet-view/readable.ts'
import type { ClusterFacts, Installation } from '../cluster-facts.ts'
import { readAccess } from './read-access.ts'
import { tryPolicies } from './try-policies.ts'
import { bindingOf, type DefinitionObject, definitionOf, flowSchemaOf, installationOf, policyOf } from './project.ts'

export type ClusterRequest = { readonly namespace: string; readonly clock: Clock; readonly signal: AbortSignal }

/** A fleet as doctor looks at it. Throws for an API server that does not answer. */
export const readDoctorFleet = async (
  transport: KubeTransport,
  request: ClusterRequest,
): Promise<FleetView<KubernetesNode>> => await readFleet(transport, { ...request, nodeOf: slimNode })

/** `definitionNames`: those that are looked at. Throws for an API server that does not answer. */
export async function readCluster(
  transport: KubeTransport,
  request: ClusterRequest,
  definitionNames: readonly string[],
): Promise<ClusterFacts> {
  const { namespace, signal } = request
  const list = async <U>(what: string, path: string, transform: (object: never) => U): Promise<Known<readonly U[]>> => {
    const query = { labelSelector: agentSelector }
    return await readable(
      what,
      listAll<never, U>(transport, path, { transform, signal, query }).then(({ items }) => items),
    )
  }
  const admission = '/apis/admissionregistration.k8s.io/v1'
  const flowControl = '/apis/flowcontrol.apiserver.k8s.io/v1'
  const daemonSets = `/apis/apps/v1/namespaces/${namespace}/daemonsets`
  const lease = `${leasesPathOf({ namespace })}/${censusLeaseName}`
  const [fleet, installations, server, definitions, policies, bindings, flowSchemas, levels, election] =
    await Promise.all([
      readDoctorFleet(transport, request),
      list(`DaemonSets in namespace ${namespace}`, daemonSets, installationOf),
      readable('the version', transport.json<{ readonly gitVersion?: string }>('GET', '/version', { signal })),
      readDefinitions(transport, definitionNames, signal),
      list('ValidatingAdmissionPolicies', `${admission}/validatingadmissionpolicies`, policyOf),
      list('ValidatingAdmissionPolicyBindings', `${admission}/validatingadmissionpolicybindings`, bindingOf),
      list('FlowSchemas', `${flowControl}/flowschemas`, flowSchemaOf),
      list(
        'PriorityLevelConfigurations',
        `${flowControl}/prioritylevelconfigurations`,
        ({ metadata }: KubeObject) => metadata.name,
      ),
      readable(`Leases in namespace ${namespace}`, getIfExists<Lease>(transport, lease, { signal })),
    ])
  const installation = installations.known ? known(installations.value[0]) : installations
  return {
    toolVersion,
    fleet,
    installation,
    serverVersion: server.known ? versionIn(server.value) : server,
    definitions,
    policies,
    bindings,
    flowSchemas,
    priorityLevels: levels,
    election,
    access: await accessOf(transport, installation, signal),
    trials: await trialsOf(transport, request, { fleet, installation, policies }),
  }
}

const versionIn = ({ gitVersion }: { readonly gitVersion?: string }): Known<string> =>
  gitVersion === undefined ? unknown('the API server does not say it') : known(gitVersion)

async function accessOf(
  transport: KubeTransport,
  installation: Known<Installation | undefined>,
  signal: AbortSignal,
): Promise<ClusterFacts['access']> {
  if (!installation.known) return unknown(`the ServiceAccount of the agents: ${installation.why}`)
  if (installation.value === undefined) return unknown('there are no agents')
  return await readAccess(transport, installation.value, signal)
}

async function trialsOf(
  transport: KubeTransport,
  request: ClusterRequest,
  { fleet, installation, policies }: Pick<ClusterFacts, 'fleet' | 'installation' | 'policies'>,
): Promise<ClusterFacts['trials']> {
  if (!installation.known) return unknown(`trials of the policies: ${installation.why}`)
  if (!policies.known) return unknown(`trials of the policies: ${policies.why}`)
  if (installation.value === undefined) return unknown('there are no agents')
  return await tryPolicies(transport, request, {
    fleet,
    installation: installation.value,
    policies: policies.value,
  })
}

async function readDefinitions(
  transport: KubeTransport,
  names: readonly string[],
  signal: AbortSignal,
): Promise<ClusterFacts['definitions']> {
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  const found = await readable(
    'CustomResourceDefinitions',
    Promise.all(
      names.map(async (name) => {
        const object = await getIfExists<DefinitionObject>(transport, `${path}/${name}`, { signal })
        return [name, object && definitionOf(object)] as const
      }),
    ),
  )
  return found.known ? known(new Map(found.value)) : found
}
