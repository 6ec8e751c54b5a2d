import type { EnvVar } from './kubernetes.ts'
import type { EntryState, Interrupt, NodeStatus, StageName } from './skyhook.ts'

/**
 * What the agent remembers on the host, written with fsync before and after every effect that cannot be undone.
 * It is the truth about the host; the Node's annotations are its published copy.
 */
export type Journal = {
  readonly v: 1
  /** `spec.unschedulable` of the Node as we saw or wrote it last while it carried a mark of ours. */
  readonly lastSeenUnschedulable?: boolean
  /** That value is our own and was not seen on the Node yet: until it is, the other one is no news. */
  readonly cordonPending?: true
  /** When we cordoned again after somebody uncordoned during our hold, in ms; the last few. */
  readonly cordonRetriesAtMs?: readonly number[]
  /** UID of the Node object that this host last published to; another UID means that the node registered anew. */
  readonly nodeUid: string
  /** Boot of the host in which the journal was written last. */
  readonly bootId?: string
  readonly skyhooks: Readonly<Record<string, SkyhookRecord>>
}

export const emptyJournal = (nodeUid: string): Journal => ({ v: 1, nodeUid, skyhooks: {} })

/** Attempts of steps whose end is not on record yet. */
export const openSteps = (journal: Journal): StepAttempt[] => Object.values(journal.skyhooks).flatMap(openStepsOf)

export const openStepsOf = ({ packages, canceling = [] }: SkyhookRecord): StepAttempt[] => [
  ...canceling,
  ...Object.values(packages).flatMap(
    ({ attempt }) => attempt?.steps.filter(({ result }) => result === undefined) ?? [],
  ),
]

export type SkyhookRecord = {
  /** UID of the Skyhook object that the work was done for; another object of that name starts unfinished work over. */
  readonly uid: string
  /** Raised by one whenever what is published changes. */
  readonly rev: number
  /** Keyed `<package name>|<version>`, as published. */
  readonly packages: Readonly<Record<string, PackageRecord>>
  /** Hash of the spec that was last completed here (see stages/model/applied-hash.ts). */
  readonly applied?: string
  /** Set from the first started step until completion: from here on the work goes to its end. */
  readonly lifecycle?: Lifecycle
  /** The Skyhook is gone from the cluster; its files stay, nothing runs. */
  readonly orphaned?: boolean
  /** Reboots done per merged interrupt, keyed `<applied>/<owners>`. */
  readonly reboots: Readonly<Record<string, number>>
  /** Of an earlier life of this host, whose disk is gone: not repeated. */
  readonly priorReboots?: Readonly<Record<string, number>>
  /** Steps that the agent itself guards against repetition, keyed by stages/flags; value = time in ms. */
  readonly flags: Readonly<Record<string, number>>
  /**
   * Steps under way whose work is not wanted any more: they are stopped, and nothing of their package starts before
   * they have ended.
   */
  readonly canceling?: readonly CanceledStep[]
  /** The interrupt under way or just done, see stages/interrupt/merge.ts. */
  readonly interrupt?: InterruptRun
  /** Waiting for the node to be drained, or giving that up for a while (stages/drain/drain-timeout.ts). */
  readonly drain?: {
    readonly yieldCount: number
    readonly sinceMs?: number
    readonly untilMs?: number
    readonly reason?: { readonly reason: 'ProtectedPods' | 'DrainBlocked'; readonly message: string }
  }
  /**
   * A person's edit of nodeState that was dealt with: `<rev of the companion>/<hash of the text>`, or `…/removed` for a
   * reset.
   */
  readonly edit?: string
  /** What is, or is about to be, on the Node: the base that a person's edit is compared with. */
  readonly published?: Published
  /** Version that each package's own history records last, by package name; `uninstalled` after an uninstall. */
  readonly installedVersions: Readonly<Record<string, string>>
}

export type Published = {
  readonly rev: number
  /** Text of the nodeState annotation. */
  readonly state: string
  readonly status: NodeStatus
  readonly atMs: number
}

export type Lifecycle = {
  readonly startedAtMs: number
  /** Generation of the Skyhook when the work began. */
  readonly generation: number
  /**
   * Set once an interrupt other than noop ran: the node must show Ready of this boot before it goes back to service.
   */
  readonly interruptedAtMs?: number
  /** The interrupt restarted the kubelet or the container runtime: Ready must hold for a while to be believed. */
  readonly restartedRuntime?: boolean
}

export type PackageRecord = {
  readonly name: string
  readonly version: string
  readonly image: string
  readonly containerSHA?: string
  readonly stage: StageName
  readonly state: EntryState
  /** Failed attempts of the present stage. */
  readonly restarts: number
  /** The stage that brought this version onto the host; absent until it passed, and where another agent had done it. */
  readonly installedBy?: 'apply' | 'upgrade'
  /** What the package's work runs from; absent until something started on the host. */
  readonly work?: PackageWork
  /** Configuration and environment that the running or last `config` stage used. */
  readonly startedInputs?: PackageInputs
  /** The same of the last time that the package became complete. */
  readonly finishedInputs?: PackageInputs
  /** Keys of the configuration that changed since `finished`, over everything started since. */
  readonly changedKeys?: readonly string[]
  /** Interrupts by key, as the spec had them when `config` started last: a removed key may take its pattern with it. */
  readonly configInterrupts?: Readonly<Record<string, Interrupt>>
  /** Another version took its place without uninstalling it (uninstall policy): shown, and never worked on. */
  readonly retained?: boolean
  /**
   * The interrupt that this package owes before it is complete. With `when: required` because the package said so
   * alone: a boot since then is as good as the interrupt.
   * /
   */
  readonly pendingInterrupt?: Interrupt & { readonly alsoRestartAllServices?: boolean }
  /** The interrupt that was made for it last. */
  readonly lastInterrupt?: Interrupt & { readonly alsoRestartAllServices?: boolean }
  /**
   * What the package said when config had passed, and in which boot; gone with the interrupt. It is not asked again.
   */
  readonly interruptRequirement?: { readonly required: boolean; readonly bootId: string }
  /** The package's uninstall policy as last seen in the spec: it must be known when the package is no longer there. */
  readonly uninstall?: { readonly enabled?: boolean; readonly apply?: boolean }
  /** The attempt under way or, with state erroring, the one that failed. */
  readonly attempt?: StageAttempt
  /** When config or post-interrupt passed last: what the status file said before that is no wish for a run. */
  readonly passedAtMs?: number
  /** When a run that the host had asked for began last. */
  readonly lastRequestedRunAtMs?: number
  readonly retryAtMs?: number
  /** Why the last attempt failed, for people. */
  readonly failure?: { readonly reason: string; readonly message: string }
}

export type PackageInputs = { readonly config: Readonly<Record<string, string>>; readonly env: readonly EnvVar[] }

export type PackageWork = {
  /** Digest of the image's manifest, `sha256:…`. */
  readonly digest: string
  /** Generation of the Skyhook at which this package's work began; part of the copy dir's name and the resource id. */
  readonly generation: number
  /** Hash of what cannot change under a begun package: image, version, digest, env, resources (stages/model/package-inputs.ts). */
  readonly inputs: string
  /** Name and version that the package's config.json gives itself: flags, logs and history go by them. */
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
}

export type StepAttempt = {
  readonly id: string
  readonly unit: string
  /** Mode in the package's config.json, for example `apply-check`. */
  readonly mode: string
  readonly index: number
  readonly path: string
  readonly bootId: string
  readonly startedAtMs: number
  readonly result?: StepResult
}

export type CanceledStep = StepAttempt & { readonly package: string }

export type StepResult =
  | { readonly result: 'ok'; readonly endedAtMs: number }
  | { readonly result: 'skipped'; readonly endedAtMs: number }
  | { readonly result: 'failed'; readonly endedAtMs: number; readonly message: string }

/** One merged interrupt, from the decision to run it until its outcome is folded into the packages that owe it. */
export type InterruptRun = {
  readonly id: string
  readonly interrupt: Interrupt & { readonly alsoRestartAllServices?: boolean }
  /** Keys of the packages whose interrupt this is. */
  readonly owners: readonly string[]
  /** Nobody wants its outcome any more: it is not begun, but what has begun is waited for. */
  readonly abandoned?: boolean
  /** Boot in which it was decided; a reboot is done when the host's boot is another one. */
  readonly bootId: string
  readonly startedAtMs: number
}
