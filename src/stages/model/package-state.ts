import type { Reason } from '../../schemas/catalogue/reason.ts'
import type { InterruptRun, PackageProgress, PackageRecord, StepAttempt } from '../../schemas/package-record.ts'
import type { EntryState, StageName } from '../../schemas/skyhook.ts'
import { keyOf, type Preparation, type Snapshot } from './snapshot.ts'

/** The state of one package after everything that can be decided now was decided. */
export type PackageState =
  | { readonly state: 'complete' }
  | { readonly state: 'running' }
  /** Prepared and due; only the slot, the drain or a pause delays it. */
  | { readonly state: 'ready'; readonly stage: StageName; readonly pendingInterrupt: boolean }
  | { readonly state: 'preparing' }
  /** Due, and its image exists: the layers are fetched when the node's turn for a slot is near. */
  | { readonly state: 'checked'; readonly pendingInterrupt: boolean }
  /** Waits for other packages of the Skyhook. */
  | { readonly state: 'dependency' }
  /** Prepared and due, but it has a pending interrupt: the node must be drained before its first stage. */
  | { readonly state: 'drain' }
  | { readonly state: 'interrupt'; readonly key: string }
  | BlockedPackage

type BlockedPackage = Reason & {
  readonly state: 'blocked'
  readonly atPreparation: boolean
  /** Its key. */
  readonly package: string
}

/** The reason on the Node. */
export const reasonOfBlocked = ({
  reason,
  message,
  code,
  package: key,
  failingSinceMs,
  attempts,
}: BlockedPackage): Reason => ({
  reason,
  message,
  ...(code && { code }),
  package: key,
  ...(failingSinceMs !== undefined && { failingSinceMs }),
  ...(attempts && { attempts }),
})

/** What failed, and when it is retried. */
export function retryState(
  entry: PackageRecord,
  { failure, retryAtMs }: Extract<PackageProgress, { state: 'retrying' }>,
  nowMs: number,
): BlockedPackage {
  const { name, version, restarts, failingSinceMs = nowMs } = entry
  return {
    state: 'blocked',
    atPreparation: false,
    reason: failure.reason,
    message: `package ${name} ${version}: ${failure.message}`,
    ...(failure.code && { code: failure.code }),
    package: keyOf(entry),
    failingSinceMs,
    attempts: { count: restarts, retryAtMs },
  }
}

export type Permission = { readonly mayStart: boolean; readonly isDrained: boolean }

/** What a stage needs of its image. */
export type ReadyPreparation = Extract<Preparation, { state: 'ready' }>

/** `again`: something changed, and more may follow from it. */
export type AdvanceOutcome = PackageState | 'again'

/** Parts of it are on the host, from this agent or from the operator. */
export const isOnHost = ({ work, config, untouched, adopted }: PackageRecord): boolean =>
  untouched !== true && (work !== undefined || config?.finished !== undefined || adopted === true)

/** It was installed, and has not been uninstalled. */
export const leavesFilesOnHost = (entry: PackageRecord): boolean =>
  isOnHost(entry) && !(entry.progress.stage === 'uninstall' && entry.progress.state === 'complete')

/** The agent gave up its uninstall. */
export const isLeftBehind = ({ progress }: PackageRecord): boolean =>
  progress.state === 'retained' && progress.shownAs === 'unknown'

/** The operator's name of the progress, as published on the Node. */
export function publishedState(progress: PackageProgress): EntryState {
  switch (progress.state) {
    case 'due':
    case 'running':
      return 'in_progress'
    case 'retrying':
      return 'erroring'
    case 'complete':
    case 'skipped':
      return progress.state
    case 'retained':
      return progress.shownAs
  }
}

/**
 * Its end is not known, and the host has not booted since. A step that the host does not show yet may be about to
 * start.
 */
export function mayBeRunning({ attempts, bootId }: Snapshot, step: StepAttempt): boolean {
  const observed = attempts.get(step.id)?.state ?? 'absent'
  return observed === 'running' || (observed === 'absent' && step.bootId === bootId)
}

/** It ran on the host, or may have run before the host went down. */
export function hasStarted({ attempts, bootId }: Snapshot, step: StepAttempt): boolean {
  const observed = attempts.get(step.id) ?? { state: 'absent' }
  if (observed.state === 'ended') return observed.end.outcome !== 'failed-to-start'
  return observed.state === 'running' || step.bootId !== bootId
}

/** True while an interrupt may be running on the host. Restarts of services continue after a boot, a reboot is over. */
export function isInterrupting({ interrupts, bootId }: Snapshot, run: InterruptRun | undefined): boolean {
  if (run === undefined || (run.interrupt.type === 'reboot' && run.bootId !== bootId)) return false
  const observed = interrupts.get(run.id)?.state
  return observed === undefined || observed === 'running' || observed === 'unknown'
}
