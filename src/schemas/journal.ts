import type { SpecVersion } from './annotations.ts'
import type { ReasonCode } from './catalogue/reason-codes.ts'
import type { ReasonName } from './catalogue/reasons.ts'
import type { Mode, Stage } from './package-config.ts'
import type { EnvVar, EntryState, Interrupt, NodeStatus, PackageSpec, StageName } from './skyhook.ts'

/** Raised for a document that older agents would misread. No agent was released with a lower version. */
export const journalVersion = 2

/**
 * What the agent remembers on the host, written with fsync before and after every effect that cannot be undone.
 * It is the truth about the host; the Node's annotations are its published copy.
 *
 * An undefined field means the same as an absent one. The name of a time ends in `AtMs`, `SinceMs` or `UntilMs` for
 * steady time of the boot `bootId` (stages/skyhook/carry-times.ts), or in `WallMs`.
 */
export type Journal = {
  readonly v: typeof journalVersion
  /** `spec.unschedulable` of the Node as we saw or wrote it last while it carried a mark of ours. */
  readonly lastSeenUnschedulable?: boolean
  /** We wrote that value and have not seen it on the Node yet: until then a different value is not someone's change. */
  readonly cordonPending?: true
  /** When we cordoned again after someone uncordoned while we held the node, in ms; the last few. */
  readonly cordonRetriesAtMs?: readonly number[]
  /** The cordons of the work on this host, as last seen on the Node. */
  readonly cordon?: HeldCordon
  /** A Skyhook with `runtimeRequired` selects this node, or did and the taint is still to be removed. */
  readonly runtimeRequired?: true
  /** Since when the Node has had the runtime-required taint without a Skyhook that would lift it, in ms. */
  readonly taintUnliftedSinceMs?: number
  /** Of a control-plane node: static pods that are Ready, or were and are not known to be Ready again. */
  readonly staticPods?:
    | {
        readonly pods: readonly StaticPod[]
        /** Since when one of them is missing while no interrupt runs, in ms. */
        readonly sinceMs?: number
      }
    | undefined
  /** Reboots made for packages since this journal was created. Never decreases. */
  readonly reboots?: number
  /** UID of the Node object that this host last published to; another UID means that the node registered again. */
  readonly nodeUid: string
  /** Boot of the host in which the journal was written last. */
  readonly bootId?: string
  readonly skyhooks: Readonly<Record<string, SkyhookRecord>>
}

/** `wallOffsetMs`: by how much the wall clock was ahead of steady time when it was written. */
export type StoredJournal = Journal & { readonly wallOffsetMs?: number }

/**
 * The state of our cordon, which the Node has as well. The Node loses it when it is deleted and registered again,
 * restored from an older etcd, or edited.
 */
export type HeldCordon = {
  /** The Skyhooks whose marks the Node had, sorted: their work has not given its cordon back. */
  readonly skyhooks: readonly string[]
  /** Whether this Node would be cordoned without us (`cordoned-before`). */
  readonly before?: boolean
}

export type StaticPod = {
  readonly namespace: string
  /** The name in its manifest, without the name of the Node. */
  readonly name: string
  /** The pod that was Ready, with these containers. */
  readonly bootId: string
  readonly containerIds: readonly string[]
}

export const emptyJournal = (nodeUid: string): Journal => ({ v: journalVersion, nodeUid, skyhooks: {} })

/** Whether a document of this version has the fields of every journal; their contents are trusted. */
export const isWholeJournal = ({ nodeUid, skyhooks }: Partial<Journal>): boolean =>
  typeof nodeUid === 'string' && typeof skyhooks === 'object' && skyhooks !== null

/** Attempts of steps whose end is not recorded yet. */
export const openSteps = (journal: Journal): StepAttempt[] => Object.values(journal.skyhooks).flatMap(openStepsOf)

export function openStepsOf({ packages, canceling = [] }: SkyhookRecord): StepAttempt[] {
  const ofAttempts = Object.values(packages).flatMap(({ progress }) => openStepOf(progress) ?? [])
  // a step that may be about to start is stopped before its attempt is removed
  return [...canceling.filter(({ id }) => ofAttempts.every((step) => step.id !== id)), ...ofAttempts]
}

/** The step that is, or may soon be, on the host: the last one of the attempt, without a result. */
export function openStepOf(progress: PackageProgress): StepAttempt | undefined {
  const last = attemptOf(progress)?.steps.at(-1)
  return last?.result === undefined ? last : undefined
}

/** The running attempt, or the last failed one. */
export const attemptOf = (progress: PackageProgress): StageAttempt | undefined =>
  'attempt' in progress ? progress.attempt : undefined

export type SkyhookRecord = {
  /** UID of the Skyhook object that the work was done for; another object of that name starts unfinished work over. */
  readonly uid: string
  /** Raised by one with each change of the published state. */
  readonly rev: number
  /** Keyed `<package name>|<version>`, as published. */
  readonly packages: Readonly<Record<string, PackageRecord>>
  /** Hash of the spec that was last completed here (`completionHash` in stages/model/package-inputs.ts). */
  readonly applied?: string | undefined
  /**
   * The spec by which it became complete, of all that had that hash. It stays when another spec requests nothing more,
   * so that no node writes for it.
   */
  readonly completedBy?: SpecVersion | undefined
  /** From the first started step until completion, or until the node gives its slot back (skyhook/departure.ts). */
  readonly lifecycle?: Lifecycle | undefined
  /**
   * The work here was done for an earlier Skyhook of this name. `complete`: it is also all that this one requests;
   * absent once this one has work.
   */
  readonly takenOver?: 'unfinished' | 'complete' | undefined
  /**
   * The work of the Skyhook operator was found unfinished, and the agent has not started: package pods may still be at
   * work (stages/skyhook/other-operator.ts).
   */
  readonly adopted?: true | undefined
  /** The Skyhook is gone from the cluster; its files stay, nothing runs. */
  readonly orphaned?: boolean | undefined
  /** Reboots made per merged interrupt, with the keys of stages/interrupt/reboots.ts. */
  readonly reboots: Readonly<Record<string, number>>
  /** From before this host lost its disk: not repeated. */
  readonly priorReboots?: Readonly<Record<string, number>> | undefined
  /** Steps that the agent itself guards against repetition, keyed by stages/package/attempt.ts; value = time in ms. */
  readonly flags: Readonly<Record<string, number>>
  /**
   * Running steps whose work is no longer requested: they are stopped, and nothing of their package starts before they
   * have ended.
   */
  readonly canceling?: readonly CanceledStep[] | undefined
  /** The running or just finished interrupt, see stages/interrupt/merge.ts. */
  readonly interrupt?: InterruptRun | undefined
  readonly drain?: DrainRecord | undefined
  /** The work is complete, and its slot is kept (stages/skyhook/soak.ts). */
  readonly soak?: Soak | undefined
  /**
   * The last handled edit of nodeState by a person: `<rev of the companion>/<hash of the text>`, or `…/removed` for a
   * reset.
   */
  readonly edit?: string | undefined
  /** The text that is, or is about to be, on the Node: the base that a person's edit is compared with. */
  readonly published?: Published | undefined
  /** Version that each package's own history records last, by package name; `uninstalled` after an uninstall. */
  readonly installedVersions: Readonly<Record<string, string>>
}

/** Of a node that waits for its drain (stages/drain/drain-status.ts). `yieldCount`: how often it gave up so far. */
export type DrainRecord =
  | { readonly state: 'waiting'; readonly yieldCount: number; readonly sinceMs: number }
  | {
      readonly state: 'paused'
      readonly yieldCount: number
      readonly untilMs: number
      readonly reason: { readonly reason: 'ProtectedPods' | 'DrainBlocked'; readonly message: string }
    }

export type Soak = {
  /** When the Node was complete and back in service; absent before. */
  readonly sinceMs?: number
  /** Since when node and pods have been Ready without a break; absent while they are not. */
  readonly readySinceMs?: number
  /** Those that had a Ready pod on the node before the work. */
  readonly daemonSets: readonly DaemonSetReference[]
}

export type DaemonSetReference = { readonly uid: string; readonly namespace: string; readonly name: string }

export type Published = {
  readonly rev: number
  /** Text of the nodeState annotation. */
  readonly state: string
  /** Its text on the Node then, which a person may still edit: this one may meet a conflict. */
  readonly before?: string | undefined
  readonly status: NodeStatus
  readonly atMs: number
}

export type Lifecycle = {
  readonly startedAtMs: number
  /** Generation of the Skyhook when the work started. */
  readonly generation: number
  /**
   * Set once an interrupt other than noop ran: the node must show Ready of this boot before it goes back to service.
   */
  readonly interruptedAtMs?: number
  /** The interrupt restarted the kubelet or the container runtime: Ready only counts after it has held for a while. */
  readonly restartedRuntime?: boolean
  /** DaemonSets that had a Ready pod here when the work started; absent where `spec.pace` did not request them. */
  readonly readyDaemonSets?: readonly DaemonSetReference[]
}

/**
 * One version of one package on this host. src/stages/model/transitions.ts has the transitions between progresses,
 * docs/design/package-states.md their diagram.
 */
export type PackageRecord = UnstartedPackage | StartedPackage

/** Nothing of it ever started on the host, or an uninstall removed it; another tool may have installed it. */
export type UnstartedPackage = PackageFacts & {
  readonly work?: undefined
  readonly progress: Exclude<PackageProgress, { readonly attempt: StageAttempt }>
}

export type StartedPackage = PackageFacts & {
  /** The image and configuration of the package's work. */
  readonly work: PackageWork
  readonly progress: PackageProgress
}

export type RunningPackage = StartedPackage & { readonly progress: Extract<PackageProgress, { state: 'running' }> }
export type RetryingPackage = StartedPackage & {
  readonly progress: Extract<PackageProgress, { state: 'retrying'; attempt: StageAttempt }>
}

export const isRunning = (entry: PackageRecord): entry is RunningPackage => entry.progress.state === 'running'
/** True while a stage waits for its next attempt; a failed interrupt does not belong to a package. */
export const isRetrying = (entry: PackageRecord): entry is RetryingPackage =>
  entry.progress.state === 'retrying' && entry.progress.stage !== 'interrupt'

export type PackageFacts = {
  readonly name: string
  readonly version: string
  readonly image: string
  readonly containerSHA?: string | undefined
  /** Failed attempts of the current stage with its current configuration. */
  readonly restarts: number
  /** When the first of them failed; absent without any, and where an older agent counted them. */
  readonly failingSinceMs?: number | undefined
  /** None of its steps has started on the host so far; absent once one may have. */
  readonly untouched?: true | undefined
  /** The operator has put it on the host, at least in part, and no agent has started a stage of it since. */
  readonly adopted?: true | undefined
  /** The stage that installed this version; absent until it passed, and if another agent ran it. */
  readonly installedBy?: 'apply' | 'upgrade' | undefined
  /** Absent until `config` starts. */
  readonly config?: ConfigRecord | undefined
  /** The interrupt that must run before the package is complete. */
  readonly pendingInterrupt?: PendingInterrupt | undefined
  /** What was pending until its last interrupt, for a post-interrupt that fails. */
  readonly metInterrupt?: PendingInterrupt | undefined
  /** The interrupt that ran for it last. */
  readonly lastInterrupt?: MergedInterrupt | undefined
  /** The configuration of its uninstall instead of `config`: that of apply, or an edit during the uninstall. */
  readonly uninstallInputs?: PackageInputs | undefined
  /** The package's uninstall policy as last seen in the spec: it must be known when the package is no longer there. */
  readonly uninstall?: PackageSpec['uninstall'] | undefined
  /**
   * When config or post-interrupt passed last, by the wall clock, like the times of files: a status file older than
   * this does not request a run.
   */
  readonly passedAtWallMs?: number | undefined
  /** When a run that the host had requested started last. */
  readonly lastRequestedRunAtMs?: number | undefined
}

export type PackageProgress =
  /**
   * The stage must start; nothing of it runs. The interrupt stage stays due during its run, which several packages
   * share (`SkyhookRecord.interrupt`).
   */
  | { readonly state: 'due'; readonly stage: StageName }
  | { readonly state: 'running'; readonly stage: Stage; readonly attempt: StageAttempt }
  /** The stage failed and is tried again at `retryAtMs`, or at once when its inputs change. */
  | ({ readonly state: 'retrying'; readonly stage: Stage; readonly attempt: StageAttempt } & Retry)
  | ({ readonly state: 'retrying'; readonly stage: 'interrupt' } & Retry)
  /** The stage passed. The package itself is complete when no stage follows it. */
  | { readonly state: 'complete'; readonly stage: StageName }
  /** Left unfinished by an earlier Skyhook of this name: starts over as if uninstalled. */
  | { readonly state: 'skipped'; readonly stage: 'uninstall' }
  /**
   * The agent no longer works on it: its files stay on the host as they were in the state `shownAs` (uninstall policy),
   * or, if that is `unknown`, as a failed uninstall left them.
   */
  | { readonly state: 'retained'; readonly stage: StageName; readonly shownAs: EntryState }

type Retry = {
  readonly retryAtMs: number
  /** Why the last attempt failed, for people. */
  readonly failure: StageFailure
}

export type StageFailure = {
  readonly reason: ReasonName
  readonly message: string
  readonly code?: ReasonCode
  /** Of a refused reboot: any later boot of the host counts as done. */
  readonly refusedInBoot?: string
}

/** Configuration and environment that the package was given. */
export type ConfigRecord = {
  /** Of the running or last `config` stage. */
  readonly started: PackageInputs
  /** Of the last time that the package became complete; absent until it was. */
  readonly finished?: PackageInputs | undefined
  /** Keys that changed since `finished`, or since the first start, over all starts since. */
  readonly changedKeys: readonly string[]
  /** `configInterrupts` of the spec when `config` started last: a removed key may take its pattern with it. */
  readonly interrupts?: Readonly<Record<string, Interrupt>> | undefined
}

export type PendingInterrupt = {
  /** `when: required` if it is pending only because the package reported it: any boot since then counts. */
  readonly interrupt: MergedInterrupt
  /** Boot in which the package reported, after its config had passed, that it needs an interrupt. */
  readonly requiredInBoot?: string | undefined
}

/** One interrupt merged from several. `alsoRestartAllServices`: of type service, together with restartAllServices. */
export type MergedInterrupt = Interrupt & { readonly alsoRestartAllServices?: boolean }

export type PackageInputs = { readonly config: Readonly<Record<string, string>>; readonly env: readonly EnvVar[] }

export type PackageWork = {
  /** Digest of the image's manifest, `sha256:…`. */
  readonly digest: string
  /**
   * Generation of the Skyhook at which this package's work started; part of the copy dir's name and the resource id.
   */
  readonly generation: number
  /**
   * Hash of what cannot change while a package is at work: image, version, digest, env, resources
   * (stages/model/package-inputs.ts).
   */
  readonly inputs: string
  /** Name and version in the package's config.json: flags, logs and history use them. */
  readonly packageName: string
  readonly packageVersion: string
}

export type StageAttempt = {
  readonly number: number
  readonly startedAtMs: number
  readonly steps: readonly StepAttempt[]
  /** Hash of configuration and environment that this attempt uses (stages/model/package-inputs.ts). */
  readonly inputs: string
  /** How often a step of this attempt was repeated because its outcome was unknown; keeps their ids apart. */
  readonly repeats?: number
  /** A check failed; the remaining checks still run. */
  readonly failed?: boolean
  /**
   * When an uninstall passed, by the wall clock: its entry in the package's history has this time, so that a repeated
   * clean-up by a later agent finds it.
   */
  readonly passedAtWallMs?: number
}

export type StepAttempt = {
  readonly id: string
  readonly unit: string
  /** Mode in the package's config.json, for example `apply-check`. */
  readonly mode: Mode
  readonly index: number
  readonly path: string
  /** Exit codes that mean success; only 0 where absent. */
  readonly returncodes?: readonly number[]
  readonly bootId: string
  readonly startedAtMs: number
  readonly result?: StepResult
}

export type CanceledStep = StepAttempt & { readonly package: string }

export type StepResult =
  | { readonly result: 'ok'; readonly endedAtMs: number }
  | { readonly result: 'skipped'; readonly endedAtMs: number }
  /** `unstarted`: nothing of it ran. */
  | {
      readonly result: 'failed'
      readonly endedAtMs: number
      readonly message: string
      readonly code?: ReasonCode
      readonly unstarted?: true
    }

/** One merged interrupt, from the decision to run it until its outcome is recorded in its packages. */
export type InterruptRun = {
  readonly id: string
  readonly interrupt: MergedInterrupt
  /** Keys of the packages whose interrupt this is. */
  readonly owners: readonly string[]
  /** Hash of their part of the spec then; absent where it is read from a Node. */
  readonly inputs?: string
  /** Its outcome no longer matters: it does not start, but the agent waits for started parts. */
  readonly abandoned?: boolean
  /** Boot in which it was decided; a reboot is done when the host is in another boot. */
  readonly bootId: string
  /** Of a reboot: the key of its counter. */
  readonly rebootKey?: string
  readonly startedAtMs: number
}
