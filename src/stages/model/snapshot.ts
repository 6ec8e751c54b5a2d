import type { Budget } from '../../schemas/budget.ts'
import type { ReasonName } from '../../schemas/catalogue/reasons.ts'
import type { Reason } from '../../schemas/catalogue/reason.ts'
import type { PolicyKnowledge } from '../../schemas/deployment-policy.ts'
import type { Journal } from '../../schemas/journal.ts'
import type { PackageFacts } from '../../schemas/package-record.ts'
import type { KubernetesNode, ObjectMeta } from '../../schemas/kubernetes.ts'
import type { PackageConfig } from '../../schemas/package-config.ts'
import type { StatusReadResult } from '../../schemas/package-status.ts'
import type { ConfigUpdates, RolledOutConfigs } from '../../schemas/rolled-out-configs.ts'
import type { SkyhookSpec, SlotPhase } from '../../schemas/skyhook.ts'
import type { StepEnd } from '../../schemas/step-end.ts'
import type { Pod } from './pods.ts'

/** A fact with its age, or unknown: a rule must never treat `unknown` as empty. */
export type Known<T> = { readonly known: true; readonly value: T } | { readonly known: false; readonly why: string }

export const known = <T>(value: T): Known<T> => ({ known: true, value })
export const unknown = (why: string): { readonly known: false; readonly why: string } => ({ known: false, why })

/** Everything that a decision may use, taken at one point in time. */
export type Snapshot = {
  /** Steady time, like all times in decisions and in the journal. */
  readonly nowMs: number
  /** By how much the host's wall clock is ahead of it: published times are the sum of both. */
  readonly wallOffsetMs: number
  /** How long the API server currently takes for a write; absent where it answers at once. */
  readonly answerMs?: number
  /** This node's delay before it writes that it waits, so that nodes spread; in ms after the wait started. */
  readonly spreadMs?: number
  readonly bootId: string
  readonly node: KubernetesNode
  readonly skyhooks: Known<readonly SkyhookView[]>
  /** The Node may have another cordon mark or none: a write is not answered (yet), or the watch is broken. */
  readonly isNodeInDoubt?: boolean
  /** The watch of the Skyhooks is broken: edits since then are not known. */
  readonly areSkyhooksInDoubt?: boolean
  /** Each Skyhook that the node must complete first is complete: its runtime-required taint goes, if it has one. */
  readonly hasJoined?: boolean
  readonly journal: Journal
  /** What is known of the open step attempts in the journal, by attempt id. */
  readonly attempts: ReadonlyMap<string, AttemptObservation>
  /** By preparation key (see `preparationKey`). */
  readonly preparations: ReadonlyMap<string, Preparation>
  /** Slots that this node holds, those of an earlier registration among them; unknown until they are listed. */
  readonly slots: Known<readonly OwnSlot[]>
  /** By Skyhook name: the last answer to a slot request other than "held". */
  readonly slotDenials: ReadonlyMap<string, SlotDenial>
  /**
   * Names of Skyhooks for whose slots many other nodes come first, or may come first as far as this node knows. It
   * never has Skyhooks without a budget, and is empty in a small cluster.
   */
  readonly distantSkyhooks: ReadonlySet<string>
  /** Pods of this node; watched only while they are needed, from a LIST taken after the cordon became visible. */
  readonly pods: Known<WatchedPods>
  /** Undefined until requested. */
  readonly nodeCount: NodeCount | undefined
  /** By pod uid. */
  readonly evictions: ReadonlyMap<string, Eviction>
  /** By `ownerKeyOf` (drain/pods.ts), of evicted pods that tolerate the cordon; only in the memory of this process. */
  readonly evictedOwners: ReadonlyMap<string, EvictedOwner>
  /** By id of the interrupt. */
  readonly interrupts: ReadonlyMap<string, InterruptObservation>
  /** Names of the folders below copyDirRoot when the agent started, from earlier work on this host. */
  readonly hostFolders: ReadonlySet<string>
  /** Traces, when the agent started, of an operator whose record agents do not read. */
  readonly otherOperator: OtherOperator
  /** By Skyhook, for the Skyhooks that the operator worked on before the agent started. */
  readonly rolledOutConfigs: ReadonlyMap<string, RolledOutConfigs>
  /**
   * What packages report about themselves, by `packageStatusKey` (run-requests.ts); unknown until the first read.
   * Packages without a file are absent.
   */
  readonly statuses: Known<ReadonlyMap<string, StatusReadResult>>
  /** Status files that stages requested, by request id. */
  readonly requestedStatuses: ReadonlyMap<string, StatusReadResult>
  /**
   * Outcomes of the clean-ups of uninstalls, by `requestIdOf` (interrupt/pending.ts). A failed one is retried as long
   * as it is requested.
   */
  readonly cleanUps: ReadonlyMap<string, CleanUpResult>
  /** Current failures of the agent, by `failureKey` (plan.ts) or the name of a source. */
  readonly failures: ReadonlyMap<string, Failure>
  readonly host:
    | { readonly state: 'usable' }
    | { readonly state: 'unusable'; readonly reason: UnusableReason; readonly message: string }
  /** What the agent found on the host, for the Node's annotation; absent before the first check. */
  readonly hostReport?: string | undefined
  /** Why the host must not be rebooted: such interrupts are refused before the node is disturbed. */
  readonly rebootBarrier?: string | undefined
  readonly settings: StageSettings
}

export type OtherOperator = {
  /** The API server serves the group of NodeWright. */
  readonly isNodeWrightServed: boolean
  /** By Skyhook without a record in the journal: path of the file on this host that an operator wrote last. */
  readonly files: ReadonlyMap<string, string>
}

/** No traces. */
export const noOtherOperator: OtherOperator = { isNodeWrightServed: false, files: new Map() }

export type UnusableReason = 'HostUnusable' | 'HostUnreachable' | 'CrashLoop'

/** An action of a plan, see plan.ts. */
export type ActionName =
  | 'prepare'
  | 'acquireSlot'
  | 'acquireControlPlaneSlot'
  | 'createRecoverySlot'
  | 'confirmSlot'
  | 'renewSlot'
  | 'releaseSlot'
  | 'startStep'
  | 'stopStep'
  | 'forgetStep'
  | 'recordStep'
  | 'recordChecks'
  | 'recordHistory'
  | 'cleanUp'
  | 'readStatus'
  | 'evict'
  | 'countNodes'
  | 'interrupt'
  | 'recordInterrupt'
  | 'publish'

/** The agent retries it by itself. Its message stays while the error is the same. */
export type Failure = Reason & {
  /** Of the first failure in a row. */
  readonly sinceMs: number
  /** Undefined: all of this node. */
  readonly skyhook?: string | undefined
  /** Undefined for failures outside of plans, such as a watch. */
  readonly action?: ActionName | undefined
  /** The API server refuses the size or the content of the request: repeating it cannot succeed. */
  readonly isContentRefused?: true
}

export type CleanUpResult = { readonly state: 'done' } | { readonly state: 'failed'; readonly message: string }

export type StageSettings = {
  /** `key=value:effect` of the taint that new nodes carry until their required Skyhooks are complete. */
  readonly runtimeRequiredTaint: { readonly key: string; readonly value?: string; readonly effect: string }
  /** Namespaces whose pods are never evicted. */
  readonly skipNamespaces: readonly string[]
  /** After a boot that no agent requested, apply every package again. */
  readonly reapplyOnReboot: boolean
  /** Ignores the record of NodeWright, and of an operator whose keys are gone. */
  readonly ignoreNodeWright: boolean
}

/** Whether this is the only node of the cluster, and when that was counted. */
export type NodeCount = { readonly isSingle: boolean; readonly atMs: number }

/** When a pod of the owner was evicted, and which pods were on the node then: other pods came later. */
export type EvictedOwner = { readonly atMs: number; readonly uids: ReadonlySet<string> }

export type WatchedPods = { readonly pods: readonly Pod[]; readonly since: 'any' | 'cordoned' }

export type Eviction =
  /** Accepted or in progress; the pod ends in its own time. */
  | { readonly state: 'requested' }
  | { readonly state: 'blocked'; readonly message: string; readonly sinceMs: number; readonly retryAtMs: number }

export type InterruptObservation =
  /** `reloadSinceMs`: since when systemd has been asked to read its unit files, and has not answered. */
  | { readonly state: 'running'; readonly reloadSinceMs?: number }
  /** A condition that must hold right before the interrupt did not hold: nothing was done. */
  | { readonly state: 'aborted'; readonly why: string }
  | { readonly state: 'done'; readonly restartedRuntime?: boolean }
  /** `services` = those that failed; only their packages failed. `reason`: the host or the API server prevented it. */
  | {
      readonly state: 'failed'
      readonly message: string
      readonly services: readonly string[]
      readonly reason?: ReasonName
    }
  | { readonly state: 'refused'; readonly message: string }
  /** Requested: only another boot id proves the reboot. `shutdown`: absent until the agent asked the host about it. */
  | { readonly state: 'unknown'; readonly message: string; readonly shutdown?: ShutdownObservation }

/** Whether the host is shutting down: since when it has been giving the same answer, and when it gave it last. */
export type ShutdownObservation = {
  readonly progress: 'under-way' | 'none' | 'no-answer'
  readonly sinceMs: number
  readonly atMs: number
}

export type SkyhookView = {
  readonly metadata: ObjectMeta
  readonly spec: SkyhookSpec
  /** The number of Nodes, where it was just counted: an upper bound of the matched nodes. */
  readonly nodes?: number
  /** The budget without a policy: that of the spec, or the default of the chart (`budgetOf`). */
  readonly budget: Budget
  /**
   * The seen metadata is newer than the spec: the object is being fetched, and no new work may start on the old one.
   */
  readonly stale: boolean
  /** The DeploymentPolicy that the spec names; absent where it names none. */
  readonly policy?: PolicyKnowledge | undefined
  /** From the status at the time of the read of the spec: only for hosts that the operator has worked on. */
  readonly configUpdates?: ConfigUpdates | undefined
}

export type AttemptObservation =
  /** No unit and no result: never started, or lost with its host. */
  | { readonly state: 'absent' }
  | { readonly state: 'running' }
  | { readonly state: 'ended'; readonly end: StepEnd; readonly logTail?: string }

export type Preparation =
  | { readonly state: 'pending' }
  /** The registry has the image, and its manifest and the references are valid; its layers are not on the host. */
  | { readonly state: 'checked' }
  | {
      readonly state: 'ready'
      readonly digest: string
      readonly config: PackageConfig
      readonly contentHashes: ReadonlyMap<string, string>
      /** Files of configuration that the image ships itself; none if absent. */
      readonly ownConfigFiles?: readonly string[]
    }
  | FailedPreparation

/** `depth`: the requested depth. */
export type FailedPreparation = Reason & {
  readonly state: 'failed'
  readonly depth: PreparationDepth
  readonly retryAtMs: number
}

/**
 * How far an image is prepared. `manifest`: the reference is resolved in the registry, and everything that does not
 * need the layers is checked. `layers`: they are on the host, and the package in them was read.
 */
export type PreparationDepth = 'manifest' | 'layers'

/** A slot that this node holds, or may hold. */
export type OwnSlot = {
  readonly scope: 'skyhook' | 'control-plane'
  /** Empty for the control plane's slot. */
  readonly skyhook: string
  /** Undefined for a slot of an unknown Skyhook, and for the control plane's. */
  readonly skyhookUid: string | undefined
  /** Name and uid of the Lease. */
  readonly lease: string
  readonly uid: string
  readonly phase: SlotPhase
  readonly ownership: SlotOwnership
  /** What the slot was granted or last confirmed under; absent where this agent did neither. */
  readonly admittedUnder?: SpecVersions | undefined
  /** Of the budget for nodes that join, see stages/skyhook/slot.ts. */
  readonly isBootstrap?: true
  /** Of a batch: whether it is over by the ledger. The slot of finished work is kept until then. */
  readonly batch?: 'open' | 'over'
  /** Of an earlier registration of this node. */
  readonly isFormer: boolean
  readonly renewedAtMs: number
}

/**
 * The versions of the objects that decide how many nodes may be out: work of another spec, or under another policy,
 * asks again.
 */
export type SpecVersions = {
  readonly generation: number
  /** Absent without a policy. */
  readonly policy?: { readonly uid: string; readonly generation: number }
}

/**
 * What may be done under a slot. Whether work may *start* depends on the current budget; whether started work may
 * *continue* depends only on ownership.
 */
export type SlotOwnership =
  /**
   * It is being deleted: no work continues under it, and there are no requests about it until the deletion is answered.
   */
  | 'releasing'
  /** A watch showed it, or it may be gone: only the answer to a write proves it. */
  | 'seen'
  /** An answer to this agent proved that it is ours: started work continues under it. */
  | 'owned'
  /** Owned, and the Skyhook was read after the grant and still admits it: work of that spec may start under it. */
  | 'confirmed'

export type SlotDenial = {
  readonly message: string
  readonly nextRequestAtMs: number
  readonly sinceMs: number
  /**
   * What the node waits for instead of a free slot of the Skyhook: a slot that becomes free then changes nothing.
   * `recovery`: the node is at work and needs no free slot; its own was deleted or refused, and the next one follows
   * after a pause. `batch`: a slot of the next batch.
   */
  readonly waitsFor?: 'control-plane' | 'spec' | 'recovery' | 'batch'
}

/** What an agent, or a tool that acts for one, currently knows. */
export type Observations = Omit<Snapshot, 'nowMs' | 'node' | 'settings'> & {
  /** Undefined while the own Node has not been read. */
  readonly node: KubernetesNode | undefined
  /** Why the journal cannot be written; nothing starts meanwhile. */
  readonly journalError: string | undefined
  /** Steps run on the host that the journal does not know; nothing starts meanwhile. */
  readonly strayStepsReason?: string | undefined
  /** The agent starts nothing for a while after it crashed repeatedly. */
  readonly crashLoopReason?: string | undefined
}

/** A snapshot for one decision; undefined while the own Node is not known. */
export function takeSnapshot(
  { node, host, journalError, strayStepsReason, crashLoopReason, ...observed }: Observations,
  nowMs: number,
  settings: StageSettings,
): Snapshot | undefined {
  if (!node) return undefined
  const why = journalError && `not starting work: the journal cannot be written: ${journalError}`
  return {
    ...observed,
    nowMs,
    node,
    settings,
    host:
      host.state === 'unusable'
        ? host
        : (unusable('HostUnusable', why ?? strayStepsReason) ?? unusable('CrashLoop', crashLoopReason) ?? host),
  }
}

const unusable = (reason: UnusableReason, message: string | undefined): Snapshot['host'] | undefined =>
  message === undefined ? undefined : { state: 'unusable', reason, message }

/** Key of an entry in the journal and in nodeState. */
export const packageKey = (name: string, version: string): string => `${name}|${version}`
export const keyOf = ({ name, version }: Pick<PackageFacts, 'name' | 'version'>): string => packageKey(name, version)

/** Nodes that only run etcd belong to the control plane, too: they share its quorum. */
const controlPlaneLabels = ['control-plane', 'master', 'etcd'].map((role) => `node-role.kubernetes.io/${role}`)

export const isControlPlaneNode = ({ metadata }: KubernetesNode): boolean =>
  controlPlaneLabels.some((label) => Object.hasOwn(metadata.labels ?? {}, label))
