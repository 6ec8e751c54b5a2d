import { sha256Hex } from '../../schemas/canonical-json.ts'
import {
  type ConfigRecord,
  type MergedInterrupt,
  openStepOf,
  type PackageFacts,
  type PackageInputs,
  type PackageProgress,
  type PackageRecord,
  type PackageWork,
  type PendingInterrupt,
  type RetryingPackage,
  type RunningPackage,
  type StageAttempt,
  type StageFailure,
} from '../../schemas/package-record.ts'
import type { Stage } from '../../schemas/package-config.ts'
import type { PackageSpec, StageName } from '../../schemas/skyhook.ts'
import { isLeftBehind, isOnHost, publishedState } from './package-state.ts'

/**
 * The state machine of one package record: every transition between progresses is a function of this file, and each
 * keeps the facts that outlive it. `absent`: there is no record yet. docs/design/package-states.md shows this table,
 * and a test compares the two.
 */
export const transitions = {
  newPackage: { from: ['absent'], to: ['due'] },
  adoptPackage: { from: ['absent'], to: ['due', 'complete'] },
  beginStage: { from: ['due', 'running', 'retrying', 'complete', 'skipped', 'retained'], to: ['running'] },
  recordSteps: { from: ['running'], to: ['running'] },
  completeStage: { from: ['running'], to: ['complete'] },
  failStage: { from: ['running'], to: ['retrying'] },
  leaveBehind: { from: ['retrying'], to: ['retained'] },
  retryStage: { from: ['retrying'], to: ['running'] },
  dropAttempt: { from: ['running', 'retrying'], to: ['due'] },
  startInterrupt: { from: ['due', 'retrying', 'complete'], to: ['due'] },
  completeInterrupt: { from: ['due', 'retrying', 'complete'], to: ['complete'] },
  failInterrupt: { from: ['due', 'complete'], to: ['retrying'] },
  returnToConfig: { from: ['due', 'retrying', 'complete'], to: ['complete'] },
  finishPackage: { from: ['complete'], to: ['complete'] },
  retainPackage: { from: ['due', 'running', 'retrying', 'complete', 'skipped', 'retained'], to: ['retained'] },
  startOver: { from: ['due', 'retrying', 'complete'], to: ['skipped'] },
  reapply: { from: ['due', 'running', 'retrying', 'complete', 'skipped', 'retained'], to: ['due'] },
  editStage: {
    from: ['due', 'running', 'retrying', 'complete', 'skipped', 'retained'],
    to: ['due', 'complete', 'retained'],
  },
} as const satisfies Readonly<Record<string, Transition>>

export type Transition = {
  readonly from: readonly (PackageProgress['state'] | 'absent')[]
  readonly to: readonly PackageProgress['state'][]
}

/** Throws if the record is not in a state where the transition starts: continuing would lose the state of the host. */
function assertFrom(transition: keyof typeof transitions, { name, version, progress }: PackageRecord): void {
  const { from }: Transition = transitions[transition]
  if (!from.includes(progress.state))
    throw new Error(`${transition} of package ${name} ${version}: not from ${progress.state} ${progress.stage}`)
}

/** Throws while a step of the record is, or may be, on the host: it must be canceled first. */
function assertNoOpenStep({ name, version, progress }: PackageRecord): void {
  if (openStepOf(progress)) throw new Error(`package ${name} ${version}: a step of ${progress.stage} is still open`)
}

/** A version that the host does not have yet; it is stored when its first stage starts. */
export const newPackage = (name: string, spec: PackageSpec, stage: 'apply' | 'upgrade'): PackageRecord => ({
  name,
  version: spec.version,
  image: spec.image,
  restarts: 0,
  untouched: true,
  progress: { state: 'due', stage },
})

/** What is known of a version that another agent worked on. */
export type AdoptedFacts = Pick<PackageFacts, 'config' | 'pendingInterrupt' | 'metInterrupt'> & {
  readonly progress: Extract<PackageProgress, { state: 'due' | 'complete' }>
}

/** A version that the operator has put on this host, at least in part. */
export const adoptPackage = (
  { name, version, image }: Pick<PackageFacts, 'name' | 'version' | 'image'>,
  { progress, ...facts }: AdoptedFacts,
): PackageRecord => ({ name, version, image, restarts: 0, adopted: true, ...facts, progress })

export type StageStart = {
  readonly stage: Stage
  readonly work: PackageWork
  readonly attempt: StageAttempt
  readonly config: ConfigRecord | undefined
  readonly pendingInterrupt: PendingInterrupt | undefined
  readonly uninstallInputs: PackageInputs | undefined
  /** The package in the Skyhook; undefined when it is no longer there. */
  readonly spec: PackageSpec | undefined
}

const noFailure = { restarts: 0, failingSinceMs: undefined } as const

/** The next attempts of a stage belong to one failure, which started with the first. */
const withFailure = ({ restarts, failingSinceMs }: PackageRecord, nowMs: number) => ({
  restarts: restarts + 1,
  failingSinceMs: failingSinceMs ?? nowMs,
})

type Failed = { readonly failure: StageFailure; readonly nowMs: number; readonly retryAtMs: number }

/** The first attempt of a stage. */
export function beginStage(entry: PackageRecord, start: StageStart): RunningPackage {
  assertFrom('beginStage', entry)
  assertNoOpenStep(entry)
  const { stage, work, attempt, config, pendingInterrupt, uninstallInputs, spec } = start
  return {
    ...entry,
    ...(spec && stage !== 'uninstall' && { image: spec.image, containerSHA: spec.containerSHA ?? entry.containerSHA }),
    uninstall: spec ? spec.uninstall : entry.uninstall,
    untouched: isOnHost(entry) ? undefined : true,
    adopted: undefined, // from here on its own work shows it
    ...noFailure,
    work,
    config,
    pendingInterrupt,
    uninstallInputs,
    progress: { state: 'running', stage, attempt },
  }
}

/** The results of the attempt's steps, and which of them was started. */
export function recordSteps(entry: RunningPackage, attempt: StageAttempt): RunningPackage {
  assertFrom('recordSteps', entry)
  return { ...entry, progress: { ...entry.progress, attempt } }
}

/** All steps and checks of the stage passed. */
export function completeStage(entry: RunningPackage, passedAtWallMs: number): PackageRecord {
  assertFrom('completeStage', entry)
  const { stage } = entry.progress
  const complete = { ...entry, ...noFailure, untouched: undefined, progress: { state: 'complete', stage } } as const
  const config = entry.config ?? { started: { config: {}, env: [] }, changedKeys: [] }
  switch (stage) {
    case 'uninstall': {
      const { name, version, image, containerSHA, uninstall, lastInterrupt } = entry
      return { name, version, image, containerSHA, uninstall, lastInterrupt, restarts: 0, progress: complete.progress }
    }
    case 'apply':
    case 'upgrade':
      return { ...complete, installedBy: stage }
    case 'config':
      return { ...complete, config, passedAtWallMs }
    case 'post-interrupt': // complete for its configuration, even if the spec changed
      return { ...complete, config: finished(config), passedAtWallMs }
  }
}

export function failStage(entry: RunningPackage, { failure, nowMs, retryAtMs }: Failed): PackageRecord {
  assertFrom('failStage', entry)
  return {
    ...entry,
    ...withFailure(entry, nowMs),
    progress: { ...entry.progress, state: 'retrying', failure, retryAtMs },
  }
}

/** The uninstall is not retried; what is left on the host is unknown. */
export function leaveBehind(entry: RetryingPackage): PackageRecord {
  assertFrom('leaveBehind', entry)
  return { ...entry, ...noFailure, progress: { state: 'retained', stage: entry.progress.stage, shownAs: 'unknown' } }
}

/** The next attempt of a stage that failed. */
export function retryStage(
  entry: RetryingPackage,
  { attempt, ...facts }: Omit<StageStart, 'stage' | 'work' | 'spec'> & Partial<Pick<PackageFacts, 'restarts'>>,
): RunningPackage {
  assertFrom('retryStage', entry)
  const { stage } = entry.progress
  return { ...entry, ...facts, progress: { state: 'running', stage, attempt } }
}

/** The attempt is canceled; the stage must start again. Its step, if one is open, is stopped elsewhere. */
export function dropAttempt(entry: PackageRecord): PackageRecord {
  assertFrom('dropAttempt', entry)
  return { ...entry, progress: { state: 'due', stage: entry.progress.stage } }
}

/** The pending interrupt runs, with those of other packages. */
export function startInterrupt(entry: PackageRecord): PackageRecord {
  assertFrom('startInterrupt', entry)
  return { ...entry, progress: { state: 'due', stage: 'interrupt' } }
}

/** `lastInterrupt`: what ran; undefined if an earlier or independent boot replaced it. */
export function completeInterrupt(entry: PackageRecord, lastInterrupt: MergedInterrupt | undefined): PackageRecord {
  assertFrom('completeInterrupt', entry)
  return {
    ...entry,
    ...noFailure,
    pendingInterrupt: undefined,
    metInterrupt: entry.pendingInterrupt,
    lastInterrupt: lastInterrupt ?? entry.lastInterrupt,
    progress: { state: 'complete', stage: 'interrupt' },
  }
}

export function failInterrupt(entry: PackageRecord, { failure, nowMs, retryAtMs }: Failed): PackageRecord {
  assertFrom('failInterrupt', entry)
  return {
    ...entry,
    ...withFailure(entry, nowMs),
    progress: { state: 'retrying', stage: 'interrupt', failure, retryAtMs },
  }
}

/**
 * Back to the pending interrupt: it was aborted before it did anything, or it or the stage after it failed and the spec
 * now has another interrupt or configuration.
 */
export function returnToConfig(
  entry: PackageRecord,
  { restarts, pendingInterrupt }: Pick<PackageFacts, 'restarts' | 'pendingInterrupt'>,
): PackageRecord {
  assertFrom('returnToConfig', entry)
  const failures = restarts === 0 ? noFailure : { restarts }
  return { ...entry, ...failures, pendingInterrupt, progress: { state: 'complete', stage: 'config' } }
}

/** No stage is left: the started inputs are now the finished ones. */
export function finishPackage(entry: PackageRecord): PackageRecord {
  assertFrom('finishPackage', entry)
  return entry.config ? { ...entry, config: finished(entry.config) } : entry
}

/** Another version replaced it, or it left the Skyhook, without an uninstall: it is shown and never worked on. */
export function retainPackage(entry: PackageRecord): PackageRecord {
  assertFrom('retainPackage', entry)
  assertNoOpenStep(entry)
  const { stage } = entry.progress
  return { ...entry, progress: { state: 'retained', stage, shownAs: publishedState(entry.progress) } }
}

/** Unfinished work of another Skyhook: shown with the operator's state for uninstalled, although it is not. */
export function startOver(entry: PackageRecord): PackageRecord {
  assertFrom('startOver', entry)
  return {
    ...entry,
    ...noFailure,
    config: entry.config && { ...entry.config, changedKeys: [] },
    pendingInterrupt: undefined,
    progress: { state: 'skipped', stage: 'uninstall' },
  }
}

/** The host lost the changes made on it. */
export function reapply(entry: PackageRecord): PackageRecord {
  assertFrom('reapply', entry)
  const { name, version, image, containerSHA, uninstall } = entry
  return { name, version, image, containerSHA, uninstall, restarts: 0, progress: { state: 'due', stage: 'apply' } }
}

/** A person set the stage on the Node. The package starts again there or after it, even after a failed uninstall. */
export function editStage(entry: PackageRecord, stage: StageName, isComplete: boolean): PackageRecord {
  assertFrom('editStage', entry)
  const isRetained = entry.progress.state === 'retained' && !isLeftBehind(entry)
  const progress: Extract<PackageProgress, { state: 'due' | 'complete' | 'retained' }> = isRetained
    ? { state: 'retained', stage, shownAs: isComplete ? 'complete' : 'in_progress' }
    : { state: isComplete ? 'complete' : 'due', stage }
  const config = entry.config && { ...entry.config, finished: undefined }
  return { ...entry, ...noFailure, untouched: undefined, config, progress }
}

/** Facts that do not depend on the progress. */
export const withFacts = <Entry extends PackageRecord>(
  entry: Entry,
  facts: Partial<Pick<PackageFacts, 'pendingInterrupt' | 'uninstall' | 'lastRequestedRunAtMs' | 'untouched'>>,
): Entry => ({ ...entry, ...facts })

const finished = (config: ConfigRecord): ConfigRecord => ({ ...config, finished: config.started, changedKeys: [] })

const initialWaitMs = 5_000
export const maxStageRetryDelayMs = 300_000 // the kubelet's own ceiling for restarts, which users know

/**
 * Wait after the n-th failure in a row (n >= 1): 5 s doubling up to 5 min, shortened by up to a fifth, derived from
 * `seed` so that nodes spread.
 */
export function stageRetryDelayMs(failures: number, seed: string): number {
  const full = Math.min(maxStageRetryDelayMs, initialWaitMs * 2 ** Math.min(failures - 1, 16))
  const jitterShare = Number.parseInt(sha256Hex(seed).slice(0, 8), 16) / 0xffff_ffff
  return Math.round(full * (1 - jitterShare / 5))
}
