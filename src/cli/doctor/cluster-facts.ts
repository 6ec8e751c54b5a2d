/** The facts for the checks of a cluster. What the caller may not read is unknown. */
import type { Lease } from '../../lease/slot.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Known } from '../../stages/model/snapshot.ts'
import type { AgentDaemonSet, FleetView } from '../fleet/fleet-view/fleet-view.ts'
import type { Vitals } from '../fleet/fleet-view/vitals.ts'
import type { Clock } from '../../schemas/clock.ts'

export type ClusterFacts = {
  /** Of this tool; `source` when it runs without a bundle. */
  readonly toolVersion: string
  readonly fleet: FleetView<KubernetesNode>
  readonly vitals: Vitals
  /** Such as `v1.33.1`. */
  readonly serverVersion: Known<string>
  /** By name; undefined for a missing one. */
  readonly definitions: Known<ReadonlyMap<string, DefinitionFacts | undefined>>
  readonly policies: Known<readonly PolicyFacts[]>
  readonly bindings: Known<readonly BindingFacts[]>
  /** Of the policies that could be tried. */
  readonly trials: Known<readonly PolicyTrial[]>
  readonly flowSchemas: Known<readonly FlowSchemaFacts[]>
  /** Names of the priority levels. */
  readonly priorityLevels: Known<readonly string[]>
  /** What the agents may do. */
  readonly access: Known<readonly Access[]>
  /** Of the census. Undefined: there is none. */
  readonly election: Known<Lease | undefined>
}

/** `release`: in the namespace of the agents. */
export type Scope = 'cluster' | 'release' | 'default'

export type Permission = {
  readonly scope: Scope
  readonly group: string
  /** With its subresource, as in roles: `pods/eviction`. */
  readonly resource: string
  readonly verb: string
  /** Granted by a value of the chart only. */
  readonly isOptional?: true
}

export type Access = { readonly permission: Permission; readonly isAllowed: boolean }

/** The chart's release, from the DaemonSet. */
export type Installation = Pick<AgentDaemonSet, 'name' | 'namespace' | 'serviceAccount' | 'version'>

/** The agents, as the API server names them. */
export const agentUser = ({ namespace, serviceAccount }: Installation): string =>
  `system:serviceaccount:${namespace}:${serviceAccount}`

export type DefinitionFacts = {
  /** Schema of the version that agents read; undefined where it is not served. */
  readonly schema: object | undefined
  readonly isEstablished: boolean
}

export type PolicyFacts = {
  readonly name: string
  readonly failurePolicy: string
  /** Expressions of its conditions and validations. */
  readonly expressions: readonly string[]
}

export type BindingFacts = {
  readonly name: string
  readonly policy: string
  readonly actions: readonly string[]
}

/** The answer to a request that the policy must refuse. `suffix`: of the policy's name, after that of the release. */
export type PolicyTrial = { readonly suffix: string; readonly outcome: 'refused' | 'admitted' }

export type FlowSchemaFacts = {
  readonly name: string
  readonly priorityLevel: string
  /** ServiceAccounts as `namespace/name`. */
  readonly serviceAccounts: readonly string[]
}

/** `namespace`: of the agents. */
export type ClusterRequest = { readonly namespace: string; readonly clock: Clock; readonly signal: AbortSignal }
