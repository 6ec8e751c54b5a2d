/** All checks of a cluster or of a node, and what they read of the API. */
import { getIfExists, type KubeObject } from '../../../kube/objects.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { sleep } from '../../../schemas/clock.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import { readVitals } from '../../fleet/fleet-view/vitals.ts'
import { CommandError, notFoundError, exitCodes } from '../../base/framework/command-error.ts'
import { clusterReport, nodeReport, type ExpectedDefinition } from '../cluster-report.ts'
import type { Check } from '../finding.ts'
import { confirmed, type Suspicion, suspicionsOf } from '../left-overs.ts'
import type {
  ClusterRequest,
  ClusterFacts,
  Installation,
  BindingFacts,
  DefinitionFacts,
  FlowSchemaFacts,
  PolicyFacts,
} from '../cluster-facts.ts'
import { agentSelector, apiGroup, skyhookTypeMeta } from '../../../schemas/api.ts'
import generated from '../../validate/generated/definitions.json' with { type: 'json' }
import { censusLeaseName } from '../../../lease/names.ts'
import { leasesPathOf } from '../../../lease/slot-reads.ts'
import type { Lease } from '../../../lease/slot.ts'
import { version as toolVersion } from '../../../schemas/version.ts'
import { known, type Known, unknown } from '../../../stages/model/snapshot.ts'
import { type Collection, readerOf, fleetCollections, readFleet } from '../../fleet/fleet-view/collections.ts'
import { slimNode } from '../../fleet/fleet-view/project.ts'
import { mapped, readable } from '../../fleet/fleet-view/readable.ts'
import { readAccess, tryPolicies } from './read-access.ts'

/** Agents need less time between two steps of their work, such as slot and cordon. */
const secondLookMs = 5_000

/** Throws for an API server that does not answer. */
export async function checkCluster(transport: KubeTransport, request: ClusterRequest): Promise<readonly Check[]> {
  const expected = expectedDefinitions()
  const names = expected.map(({ name }) => name)
  const facts = await readCluster(transport, request, names)
  return clusterReport(facts, expected, await leftOvers(transport, request, facts.fleet))
}

/** Throws "not found" for a missing node. */
export async function checkNode(
  transport: KubeTransport,
  request: ClusterRequest,
  name: string,
): Promise<readonly Check[]> {
  const fleet = await readDoctorFleet(transport, request)
  if (!fleet.nodes.known) throw new CommandError(exitCodes.refused, `cannot look at node ${name}: ${fleet.nodes.why}`)
  const node = fleet.nodes.value.find(({ metadata }) => metadata.name === name)
  if (node === undefined) throw notFoundError(`there is no Node ${name}`, 'kubectl get nodes')
  const vitals = await readVitals(transport, request)
  return nodeReport({ fleet, vitals }, node, await leftOvers(transport, request, fleet))
}

/** Looks again if something seems to be left over. */
async function leftOvers(
  transport: KubeTransport,
  request: ClusterRequest,
  fleet: FleetView<KubernetesNode>,
): Promise<readonly Suspicion[]> {
  const first = suspicionsOf(fleet)
  if (first.length === 0) return first
  await sleep(request.clock, secondLookMs, request.signal)
  return confirmed(first, suspicionsOf(await readDoctorFleet(transport, request)))
}

const plurals: Readonly<Record<string, string>> = { Skyhook: 'skyhooks', DeploymentPolicy: 'deploymentpolicies' }

/** The resource definitions of this version. */
export const expectedDefinitions = (): readonly ExpectedDefinition[] =>
  generated.map(({ kind, schema }) => ({ name: `${plurals[kind] ?? ''}.${apiGroup}`, schema }))

type DefinitionObject = KubeObject & {
  readonly spec?: {
    readonly versions?: readonly {
      readonly name: string
      readonly served?: boolean
      readonly schema?: { readonly openAPIV3Schema?: object }
    }[]
  }
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

const [, version] = skyhookTypeMeta.apiVersion.split('/')

function definitionOf({ spec, status }: DefinitionObject): DefinitionFacts {
  const found = spec?.versions?.find(({ name, served }) => name === version && served === true)
  return {
    schema: found?.schema?.openAPIV3Schema,
    isEstablished: status?.conditions?.some((one) => one.type === 'Established' && one.status === 'True') === true,
  }
}

type Expression = { readonly expression?: string }

type PolicyObject = KubeObject & {
  readonly spec?: {
    readonly failurePolicy?: string
    readonly matchConditions?: readonly Expression[]
    readonly validations?: readonly Expression[]
  }
}

const policyOf = ({ metadata, spec }: PolicyObject): PolicyFacts => ({
  name: metadata.name,
  failurePolicy: spec?.failurePolicy ?? 'Fail',
  expressions: [...(spec?.matchConditions ?? []), ...(spec?.validations ?? [])].map(
    ({ expression = '' }) => expression,
  ),
})

type BindingObject = KubeObject & {
  readonly spec?: { readonly policyName?: string; readonly validationActions?: readonly string[] }
}

const bindingOf = ({ metadata, spec }: BindingObject): BindingFacts => ({
  name: metadata.name,
  policy: spec?.policyName ?? '',
  actions: spec?.validationActions ?? [],
})

type FlowSchemaObject = KubeObject & {
  readonly spec?: {
    readonly priorityLevelConfiguration?: { readonly name?: string }
    readonly rules?: readonly {
      readonly subjects?: readonly {
        readonly serviceAccount?: { readonly name?: string; readonly namespace?: string }
      }[]
    }[]
  }
}

const flowSchemaOf = ({ metadata, spec }: FlowSchemaObject): FlowSchemaFacts => ({
  name: metadata.name,
  priorityLevel: spec?.priorityLevelConfiguration?.name ?? '',
  serviceAccounts: (spec?.rules ?? []).flatMap(({ subjects = [] }) =>
    subjects.flatMap(({ serviceAccount }) =>
      serviceAccount ? [`${serviceAccount.namespace ?? ''}/${serviceAccount.name ?? ''}`] : [],
    ),
  ),
})

/** The fleet for doctor's checks. Throws if the API server does not answer. */
const readDoctorFleet = async (transport: KubeTransport, request: ClusterRequest): Promise<FleetView<KubernetesNode>> =>
  await readFleet(transport, { ...request, nodeOf: slimNode })

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
