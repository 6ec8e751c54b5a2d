/** One package on a host, as the journal has it: its progress through the stages, and what it was given. */
import type { ReasonCode } from './catalogue/reason-codes.ts'
import type { ReasonName } from './catalogue/reasons.ts'
import type { Mode, Stage } from './package-config.ts'
import type { EnvVar, EntryState, Interrupt, PackageSpec, StageName } from './skyhook.ts'

/** The step that is, or may soon be, on the host: the last one of the attempt, without a result. */
export function openStepOf(progress: PackageProgress): StepAttempt | undefined {
  const last = attemptOf(progress)?.steps.at(-1)
  return last?.result === undefined ? last : undefined
}

/** The running attempt, or the last failed one. */
export const attemptOf = (progress: PackageProgress): StageAttempt | undefined =>
  'attempt' in progress ? progress.attempt : undefined

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
