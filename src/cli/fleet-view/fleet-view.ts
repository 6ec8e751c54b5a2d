/**
 * What the API shows of a fleet, at one moment and to one caller. A part that the caller may not read is unknown, with
 * the reason, and is never taken for empty.
 */
import type { Lease, Slot } from '../../lease/slot.ts'
import type { DeploymentPolicy } from '../../schemas/deployment-policy.ts'
import type { Toleration } from '../../schemas/kubernetes.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import type { Known } from '../../stages/model/snapshot.ts'
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
  /** Leases in which the census publishes what it counted. */
  readonly ledgers: Known<readonly Lease[]>
  /** Leases with the labels of one of these and another name: nobody counts them. */
  readonly strays: Known<readonly Lease[]>
  readonly agents: Known<readonly AgentPod[]>
  /** Undefined: the namespace has none. */
  readonly daemonSet: Known<AgentDaemonSet | undefined>
  /** As the agents have them; unknown: those of the chart without values. */
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
  /** Since when it has been Ready, or not, in ms since 1970: since it was created, while its kubelet has not said it. */
  readonly sinceMs: number | undefined
  readonly isDeleting: boolean
  /** Why its container does not run, in the kubelet's words, for example `CrashLoopBackOff`. */
  readonly containerError: string | undefined
  /** More of the kubelet's words about that, and how the container before it ended. */
  readonly containerMessage?: string
  /** Since when its container has been running, in ms since 1970; absent while it does not. */
  readonly runningSinceMs?: number
  /** No node takes it: which one it is for, and the scheduler's words. */
  readonly unplaced?: { readonly node: string; readonly why: string }
  /** When it has to be gone, in ms since 1970, where it is being deleted. */
  readonly deletedByMs?: number
  /** How often its container was started again in this pod. */
  readonly restarts: number
  readonly image: string
}

export type AgentDaemonSet = {
  /** That of the release: the chart names everything after it. */
  readonly name: string
  readonly namespace: string
  readonly serviceAccount: string
  /** Of the agents; undefined without the chart's label. */
  readonly version: string | undefined
  readonly image: string
  readonly nodeSelector: Readonly<Record<string, string>>
  /** Affinity is not looked at: what it excludes is not known from here. */
  readonly hasAffinity: boolean
  readonly tolerations: readonly Toleration[]
}
