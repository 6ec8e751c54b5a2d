import type { Budget } from '../../schemas/budget.ts'
import type { ConfigUpdates } from '../../schemas/config-updates.ts'
import type { PolicyKnowledge } from '../../schemas/deployment-policy.ts'
import type { KubernetesNode, ObjectMeta } from '../../schemas/kubernetes.ts'
import type { Journal } from '../../schemas/journal.ts'
import type { PackageConfig } from '../../schemas/package-config.ts'
import type { StatusReadResult } from '../../schemas/package-status.ts'
import type { Reason, ReasonName } from '../../schemas/catalogue/reasons.ts'
import type { RolledOutConfigs } from '../../schemas/rolled-out-configs.ts'
import type { SkyhookSpec, SlotPhase } from '../../schemas/skyhook.ts'
import type { StepEnd } from '../../schemas/step-end.ts'
import type { Pod } from './pods.ts'

/** A fact with its age, or nothing known: no rule may treat `unknown` as empty. */
export type Known<T> = { readonly known: true; readonly value: T } | { readonly known: false; readonly why: string }

export const known = <T>(value: T): Known<T> => ({ known: true, value })
export const unknown = (why: string): { readonly known: false; readonly why: string } => ({ known: false, why })

/** Everything that a decision may look at, taken at one moment. */
export type Snapshot = {
  /** Steady time, as all moments that decisions and the journal have. */
  readonly nowMs: number
  /** By how much the host's wall clock is ahead of it: what is published is `nowMs` and this. */
  readonly wallOffsetMs: number
  /** How long the API server takes for a write at the moment; absent where it answers at once. */
  readonly answerMs?: number
  /** When this node's turn is where all nodes want to write that they wait, in ms after the wait began. */
  readonly spreadMs?: number
  readonly bootId: string
  readonly node: KubernetesNode
  readonly skyhooks: Known<readonly SkyhookView[]>
  /** The Node may have another cordon mark, or none any more: a write is not answered (yet), or its watch is broken. */
  readonly isNodeInDoubt?: boolean
  /** The watch of the Skyhooks is broken: edits since then are not known. */
  readonly areSkyhooksInDoubt?: boolean
  /** Each Skyhook that the node has to complete first is complete: its runtime-required taint goes, if it has one. */
  readonly hasJoined?: boolean
  readonly journal: Journal
  /** What is known of the step attempts that the journal has open, by attempt id. */
  readonly attempts: ReadonlyMap<string, AttemptObservation>
  /** By preparation key (see `preparationKey`). */
  readonly preparations: ReadonlyMap<string, Preparation>
  /** Slots that this node holds, those of an earlier registration among them; unknown until they are listed. */
  readonly slots: Known<readonly OwnSlot[]>
  /** By Skyhook name: the last answer to a slot request other than "held". */
  readonly slotDenials: ReadonlyMap<string, SlotDenial>
  /**
   * Names of Skyhooks for whose slots many other nodes come first, or may do so as far as this node knows. Skyhooks
   * without a budget are not among them, nor is any in a small cluster.
   */
  readonly distantSkyhooks: ReadonlySet<string>
  /** Pods of this node; followed only while they matter, from a LIST taken after the cordon became visible. */
  readonly pods: Known<WatchedPods>
  /** Undefined while nobody asked. */
  readonly nodeCount: NodeCount | undefined
  /** By pod uid. */
  readonly evictions: ReadonlyMap<string, Eviction>
  /** By `ownerKeyOf` (drain/pods.ts), of evicted pods that tolerate the cordon; this process alone remembers them. */
  readonly evictedOwners: ReadonlyMap<string, EvictedOwner>
  /** By id of the interrupt. */
  readonly interrupts: ReadonlyMap<string, InterruptObservation>
  /** Names of the folders below copyDirRoot when the agent started: what somebody left on this host. */
  readonly hostFolders: ReadonlySet<string>
  /** What an operator left whose record agents do not read, when the agent started. */
  readonly otherOperator: OtherOperator
  /** By Skyhook, of those that the operator worked on before the agent started. */
  readonly rolledOutConfigs: ReadonlyMap<string, RolledOutConfigs>
  /**
   * What packages say about themselves, by `packageStatusKey` (run-requests.ts); unknown until the first look. Without
   * a file they are not in it.
   */
  readonly statuses: Known<ReadonlyMap<string, StatusReadResult>>
  /** Status files that stages asked for, by request id. */
  readonly requestedStatuses: ReadonlyMap<string, StatusReadResult>
  /**
   * What became of the traces of uninstalls, by `requestIdOf` (required.ts). A failure is tried again as long as it
   * is requested for.
   */
  readonly cleanUps: ReadonlyMap<string, CleanUpResult>
  /** What the agent has to do and fails to do, by `failureKey` (plan.ts) or the name of a source. */
  readonly failures: ReadonlyMap<string, Failure>
  readonly host:
    | { readonly state: 'usable' }
    | { readonly state: 'unusable'; readonly reason: UnusableReason; readonly message: string }
  /** What the agent found on the host, for the Node's annotation; none before it looked. */
  readonly hostReport?: string | undefined
  /** Why the host must not be rebooted: interrupts that would are refused before the node is disturbed. */
  readonly rebootBarrier?: string | undefined
  readonly settings: StageSettings
}

export type OtherOperator = {
  /** The API server serves the group of NodeWright. */
  readonly isNodeWrightServed: boolean
  /** By Skyhook without a record in the journal: path of a file on this host that an operator wrote last. */
  readonly files: ReadonlyMap<string, string>
}

/** Nothing of one. */
export const noOtherOperator: OtherOperator = { isNodeWrightServed: false, files: new Map() }

export type UnusableReason = 'HostUnusable' | 'HostUnreachable' | 'CrashLoop'

/** What a plan asks for, see plan.ts. */
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

/** The agent tries it again by itself. Its message stays while the error is the same. */
export type Failure = Reason & {
  /** Of the first failure in a row. */
  readonly sinceMs: number
  /** Undefined: all of this node. */
  readonly skyhook?: string | undefined
  /** Undefined for what no plan asks for, such as a watch. */
  readonly action?: ActionName | undefined
  /** The API server does not take what was sent, for its size or its content: the same again changes nothing. */
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
  /** The record of NodeWright, and of an operator whose keys are gone, does not count. */
  readonly ignoreNodeWright: boolean
}

/** Whether the cluster has this node alone, and when that was counted. */
export type NodeCount = { readonly isSingle: boolean; readonly atMs: number }

/** When a pod of the owner was evicted, and which pods were on the node then: others came after it. */
export type EvictedOwner = { readonly atMs: number; readonly uids: ReadonlySet<string> }

export type WatchedPods = { readonly pods: readonly Pod[]; readonly since: 'any' | 'cordoned' }

export type Eviction =
  /** Accepted or under way; the pod ends in its own time. */
  | { readonly state: 'requested' }
  | { readonly state: 'blocked'; readonly message: string; readonly sinceMs: number; readonly retryAtMs: number }

export type InterruptObservation =
  /** `reloadSinceMs`: since when systemd has been asked to read its unit files, and has not answered. */
  | { readonly state: 'running'; readonly reloadSinceMs?: number }
  /** A condition that must hold right before did not: nothing was done. */
  | { readonly state: 'aborted'; readonly why: string }
  | { readonly state: 'done'; readonly restartedRuntime?: boolean }
  /** `services` = those that failed; only their packages did. `reason`: the host or the API server did not let it. */
  | {
      readonly state: 'failed'
      readonly message: string
      readonly services: readonly string[]
      readonly reason?: ReasonName
    }
  | { readonly state: 'refused'; readonly message: string }
  /** Requested: only another boot id proves the reboot. `shutdown`: absent until the host was asked about it. */
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
  /** So many Nodes there are, where somebody has just asked: more were never matched. */
  readonly nodes?: number
  /** What counts without a policy: that of the spec, or the default of the chart (`budgetOf`). */
  readonly budget: Budget
  /** The metadata seen is newer than the spec: the object is being fetched, nothing new may start on the old one. */
  readonly stale: boolean
  /** The DeploymentPolicy that the spec names; absent where it names none. */
  readonly policy?: PolicyKnowledge | undefined
  /** From the status, as it was when the spec was read: only for hosts that the operator has worked on. */
  readonly configUpdates?: ConfigUpdates | undefined
}

export type AttemptObservation =
  /** No unit and no result: never started, or lost with its host. */
  | { readonly state: 'absent' }
  | { readonly state: 'running' }
  | { readonly state: 'ended'; readonly end: StepEnd; readonly logTail?: string }

export type Preparation =
  | { readonly state: 'pending' }
  /** The registry has the image, and its manifest and the references are right; its layers are not on the host. */
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

/** `depth`: how far it was to go. */
export type FailedPreparation = Reason & {
  readonly state: 'failed'
  readonly depth: PreparationDepth
  readonly retryAtMs: number
}

/**
 * How far an image is prepared. `manifest`: the registry is asked what the reference points at, and everything is
 * checked that shows without the layers. `layers`: they are on the host, and the package in them was read.
 */
export type PreparationDepth = 'manifest' | 'layers'

/** A slot that this node holds, or may hold. */
export type OwnSlot = {
  readonly scope: 'skyhook' | 'control-plane'
  /** Empty for the control plane's slot. */
  readonly skyhook: string
  /** Undefined for a slot of a Skyhook that nobody knows, and for the control plane's. */
  readonly skyhookUid: string | undefined
  /** Name and uid of the Lease. */
  readonly lease: string
  readonly uid: string
  readonly phase: SlotPhase
  readonly ownership: SlotOwnership
  /** What granted it, or confirmed it last; absent where this agent did neither. */
  readonly admittedUnder?: SpecVersions | undefined
  /** Of the budget for nodes that join, see stages/skyhook/joining.ts. */
  readonly isBootstrap?: true
  /** Of a batch: whether the ledger says that it is over. The slot of finished work is kept until then. */
  readonly batch?: 'open' | 'over'
  /** Of an earlier registration of this node. */
  readonly isFormer: boolean
  readonly renewedAtMs: number
}

/** The versions of what says how many nodes may be out: work of another spec, or under another policy, asks again. */
export type SpecVersions = {
  readonly generation: number
  /** Absent without a policy. */
  readonly policy?: { readonly uid: string; readonly generation: number }
}

/**
 * What may be done under a slot. Whether work may *start* is a question about the budget of this moment; whether
 * started work may *continue* is a question of ownership alone.
 */
export type SlotOwnership =
  /** Its deletion is under way: nothing goes on under it, and nothing is asked of it until that was answered. */
  | 'releasing'
  /** A watch showed it, or it is in doubt whether it is still there: only an answer to a write can tell. */
  | 'seen'
  /** An answer to this agent said that it is ours: what was started continues under it. */
  | 'owned'
  /** Owned, and the Skyhook was read after the grant and still admits it: work of that spec may start under it. */
  | 'confirmed'

export type SlotDenial = {
  readonly message: string
  readonly nextRequestAtMs: number
  readonly sinceMs: number
  /**
   * Other than a free slot of the Skyhook: one that becomes free then changes nothing. `recovery`: the node is at work
   * and needs none to be free; its own was deleted or refused, and the next one follows after a pause. `batch`: of the
   * next batch.
   */
  readonly waitsFor?: 'control-plane' | 'spec' | 'recovery' | 'batch'
}

/** What an agent, or a tool that stands in for one, knows at this moment. */
export type Observations = Omit<Snapshot, 'nowMs' | 'node' | 'settings'> & {
  /** Undefined while the own Node has not been read. */
  readonly node: KubernetesNode | undefined
  /** Why the journal cannot be written; nothing starts meanwhile. */
  readonly journalError: string | undefined
  /** Steps run on the host that the journal does not know; nothing starts beside them. */
  readonly strayStepsReason?: string | undefined
  /** The agent stands down after it ended repeatedly; nothing starts meanwhile. */
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
