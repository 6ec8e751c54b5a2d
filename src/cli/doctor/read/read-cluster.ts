/** Reads the facts for the checks of a cluster. */
import { getIfExists } from '../../../kube/get.ts'
import type { KubeObject } from '../../../kube/objects.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { censusLeaseName } from '../../../lease/names.ts'
import { leasesPathOf } from '../../../lease/slot-reads.ts'
import type { Lease } from '../../../lease/slot.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { version as toolVersion } from '../../../schemas/version.ts'
import { known, type Known, unknown } from '../../../stages/model/snapshot.ts'
import { type Collection, readerOf, agentSelector, fleetCollections, readFleet } from '../../fleet-view/collections.ts'
import type { FleetView } from '../../fleet-view/fleet-view.ts'
import { slimNode } from '../../fleet-view/project.ts'
import { mapped, readable } from '../../fleet-view/readable.ts'
import { readVitals } from '../../fleet-view/vitals.ts'
import type { ClusterFacts, Installation } from '../cluster-facts.ts'
import { readAccess } from './read-access.ts'
import type { ClusterRequest } from './cluster-request.ts'
import { tryPolicies } from './try-policies.ts'
import { bindingOf, type DefinitionObject, definitionOf, flowSchemaOf, policyOf } from './project.ts'

/** The fleet for doctor's checks. Throws if the API server does not answer. */
export const readDoctorFleet = async (
  transport: KubeTransport,
  request: ClusterRequest,
): Promise<FleetView<KubernetesNode>> => await readFleet(transport, { ...request, nodeOf: slimNode })

/** The chart's objects without a namespace. */
function ofChart<T>(what: string, group: string, keep: Collection<T>['keep']): Collection<T> {
  const path = `/apis/${group}.k8s.io/v1/${what.toLowerCase()}`
  return { what, path, query: { labelSelector: agentSelector }, keep }
}

const admission = 'admissionregistration'
const flowControl = 'flowcontrol.apiserver'
const policiesOfChart = ofChart('ValidatingAdmissionPolicies', admission, policyOf)
const bindingsOfChart = ofChart('ValidatingAdmissionPolicyBindings', admission, bindingOf)
const flowSchemasOfChart = ofChart('FlowSchemas', flowControl, flowSchemaOf)
const levelsOfChart = ofChart('PriorityLevelConfigurations', flowControl, ({ metadata }: KubeObject) => metadata.name)

/** `definitionNames`: the checked ones. Throws if the API server does not answer. */
export async function readCluster(
  transport: KubeTransport,
  request: ClusterRequest,
  definitionNames: readonly string[],
): Promise<ClusterFacts> {
  const { namespace, signal } = request
  const read = readerOf(transport, signal)
  const lease = `${leasesPathOf({ namespace })}/${censusLeaseName}`
  const [fleet, vitals, server, definitions, policies, bindings, flowSchemas, priorityLevels, election] =
    await Promise.all([
      readDoctorFleet(transport, request),
      readVitals(transport, request),
      readable('the version', transport.json<{ readonly gitVersion?: string }>('GET', '/version', { signal })),
      readDefinitions(transport, definitionNames, signal),
      read(policiesOfChart),
      read(bindingsOfChart),
      read(flowSchemasOfChart),
      read(levelsOfChart),
      readable(fleetCollections(namespace).leases.what, getIfExists<Lease>(transport, lease, { signal })),
    ])
  return {
    toolVersion,
    fleet,
    vitals,
    serverVersion: server.known ? versionIn(server.value) : server,
    definitions,
    policies,
    bindings,
    flowSchemas,
    priorityLevels,
    election,
    access: await accessOf(transport, fleet.daemonSet, signal),
    trials: await trialsOf(transport, request, { fleet, policies }),
  }
}

const versionIn = ({ gitVersion }: { readonly gitVersion?: string }): Known<string> =>
  gitVersion === undefined ? unknown('the API server does not report it') : known(gitVersion)

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
  { fleet, policies }: Pick<ClusterFacts, 'fleet' | 'policies'>,
): Promise<ClusterFacts['trials']> {
  const installation = fleet.daemonSet
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
  return mapped(found, (definitions) => new Map(definitions))
}
