/**
 * What the API shows of a fleet, at one moment and to one caller. A part that the caller may not read is unknown, with
 * the reason, and is never taken for empty.
 */
import type { Lease, Slot } from '../../../lease/slot.ts'
import type { DeploymentPolicy } from '../../../schemas/deployment-policy.ts'
import type { Toleration } from '../../../schemas/kubernetes.ts'
import type { Skyhook } from '../../../schemas/skyhook.ts'
import type { Known } from '../../../stages/model/snapshot.ts'
import type { FleetSettings } from './settings.ts'

/** `Node`: what the caller keeps of each Node. */
export type FleetView<Node> = {
  /** Wall clock of the caller, in ms since 1970. */
  readonly takenAtMs: number
  /** Of the agents and their Leases. */
  readonly namespace: string
  readonly skyhooks: Known<readonly Skyhook[]>
  readonly policies: Known<readonly DeploymentPolicy[]>
  readonly nodes: Known<readonly Node[]>
  /** Slots of all Skyhooks, and the control plane's. */
  readonly slots: Known<readonly Slot[]>
  /** Leases in which the census publishes its counts. */
  readonly ledgers: Known<readonly Lease[]>
  /** Leases with the labels of one of these and another name. They do not count. */
  readonly strays: Known<readonly Lease[]>
  readonly agents: Known<readonly AgentPod[]>
  /** Undefined: the namespace has none. */
  readonly daemonSet: Known<AgentDaemonSet | undefined>
  /** Those of the agents; unknown: the defaults of the chart. */
  readonly settings: Known<FleetSettings>
}

/** The pod of an agent. */
export type AgentPod = {
  readonly name: string
  readonly uid: string
  /** In ISO 8601. */
  readonly createdAt: string
  /** Empty while it is not placed. */
  readonly node: string
  readonly isReady: boolean
  /** Since when it has been Ready, or not, in ms since 1970; its creation until the kubelet reports it. */
  readonly sinceMs: number | undefined
  readonly isDeleting: boolean
  /** The kubelet's reason why its container does not run, such as `CrashLoopBackOff`. */
  readonly containerError: string | undefined
  /** The kubelet's message about that, and how the previous container ended. */
  readonly containerMessage?: string
  /** Since when its container has been running, in ms since 1970; absent while it does not. */
  readonly runningSinceMs?: number
  /** No node takes it: the node that it is for, and the scheduler's message. */
  readonly unplaced?: { readonly node: string; readonly why: string }
  /** When it must be gone, in ms since 1970, if it is being deleted. */
  readonly deletedByMs?: number
  /** The restarts of its container in this pod. */
  readonly restarts: number
  readonly image: string
}

export type AgentDaemonSet = {
  /** That of the release, from which the chart derives all names. */
  readonly name: string
  readonly namespace: string
  readonly serviceAccount: string
  /** Of the agents; undefined without the chart's label. */
  readonly version: string | undefined
  readonly image: string
  readonly nodeSelector: Readonly<Record<string, string>>
  readonly tolerations: readonly Toleration[]
}
