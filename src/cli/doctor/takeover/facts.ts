/**
 * Facts for a takeover from the Skyhook operator, or from its successor NodeWright. What the caller may not read is
 * unknown.
 */
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { Skyhook } from '../../../schemas/skyhook.ts'
import type { PackagePodState } from '../../../stages/model/pods.ts'
import type { Known } from '../../../stages/model/snapshot.ts'

export type TakeoverFacts = {
  readonly skyhooks: Known<readonly OperatorSkyhook[]>
  readonly nodes: Known<readonly KubernetesNode[]>
  /** Of all namespaces. */
  readonly pods: Known<readonly PackagePod[]>
  readonly configMaps: Known<readonly PackageConfigMap[]>
  /** The operator's. */
  readonly deployments: Known<readonly OperatorDeployment[]>
  /** Those for Skyhooks or DeploymentPolicies, and all that NodeWright labels as its own. */
  readonly webhooks: Known<readonly OperatorWebhook[]>
  /** That Helm releases have made. */
  readonly definitions: Known<readonly DefinitionOwner[]>
  /** Installations of the agents. */
  readonly agents: Known<readonly AgentsInstallation[]>
  readonly nodeWright: NodeWrightFacts
}

export type AgentsInstallation = {
  readonly namespace: string
  readonly name: string
  /** The Helm release that has made it, as `namespace/name`. */
  readonly release: string | undefined
  /** Its setting `ignoreNodeWright`. */
  readonly ignoresNodeWright: Known<boolean>
}

/** Of the operator's successor, in its own API group. */
export type NodeWrightFacts = {
  /** The API server serves its group. */
  readonly isServed: Known<boolean>
  /** The names of its objects. */
  readonly objects: Known<readonly string[]>
  /** That have not ended, of all namespaces. */
  readonly jobs: Known<readonly NodeWrightJob[]>
}

export type NodeWrightJob = {
  readonly namespace: string
  readonly name: string
  readonly node: string
  readonly rollout: string
}

/** With the fields that the operator keeps only in the status. */
export type OperatorSkyhook = Skyhook & {
  readonly status?: {
    /** When it picked each node that it works on. */
    readonly nodePriority?: Readonly<Record<string, string>>
    /** Keys of configMaps in the last roll, by package. */
    readonly configUpdates?: Readonly<Record<string, readonly string[]>>
  }
}

export type PackagePod = {
  readonly namespace: string
  readonly name: string
  readonly node: string
  readonly skyhook: string
  readonly state: PackagePodState
}

/** The ConfigMap in which the operator keeps a package's configuration as it rolled it out. */
export type PackageConfigMap = {
  readonly namespace: string
  readonly name: string
  readonly skyhook: string
  readonly package: string
  readonly version: string
  readonly data: Readonly<Record<string, string>>
}

export type OperatorDeployment = {
  readonly namespace: string
  readonly name: string
  /** The requested or still existing ones. */
  readonly replicas: number
}

export type OperatorWebhook = {
  readonly kind: 'ValidatingWebhookConfiguration' | 'MutatingWebhookConfiguration'
  readonly name: string
  /** About Skyhooks or DeploymentPolicies. */
  readonly isAsked: boolean
  /** Its Services without a ready endpoint, as `namespace/name`. */
  readonly unanswered: Known<readonly string[]>
}

/** A resource definition that a Helm release has made. */
export type DefinitionOwner = {
  readonly name: string
  /** As `namespace/name`. */
  readonly release: string
  /** Helm no longer knows the release, if that can be read: it was uninstalled and left the definition. */
  readonly isGone: boolean
}
