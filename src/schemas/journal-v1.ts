import {
  journalVersion,
  type CanceledStep,
  type Journal,
  type MergedInterrupt,
  type PackageFacts,
  type PackageInputs,
  type PackageProgress,
  type PackageRecord,
  type PackageWork,
  type SkyhookRecord,
  type StageAttempt,
  type StageFailure,
} from './journal.ts'
import type { EntryState, Interrupt, StageName } from './skyhook.ts'

/** The journal of agents before 0.2, as far as it differs. Nothing else in the code knows its names. */
type JournalV1 = Omit<Journal, 'v' | 'lastSeenUnschedulable' | 'cordonRetriesAtMs' | 'skyhooks'> & {
  readonly v: 1
  readonly cordonSeen?: boolean
  readonly cordonedAgainMs?: readonly number[]
  readonly skyhooks: Readonly<Record<string, SkyhookV1>>
}

type SkyhookV1 = Omit<SkyhookRecord, 'packages' | 'priorReboots' | 'canceling' | 'drain' | 'installedVersions'> & {
  readonly packages: Readonly<Record<string, PackageV1>>
  readonly inheritedReboots?: Readonly<Record<string, number>>
  readonly stopping?: readonly CanceledStep[]
  readonly drain?: DrainV1
  readonly installed: Readonly<Record<string, string>>
}

type DrainV1 = {
  readonly yields: number
  readonly sinceMs?: number
  readonly untilMs?: number
  readonly reason?: { readonly reason: 'ProtectedPods' | 'DrainBlocked'; readonly message: string }
}

type PackageV1 = Pick<
  PackageFacts,
  'name' | 'version' | 'image' | 'containerSHA' | 'restarts' | 'installedBy' | 'uninstall' | 'passedAtMs'
> & {
  readonly stage: StageName
  readonly state: EntryState
  readonly work?: PackageWork
  readonly started?: PackageInputs
  readonly finished?: PackageInputs
  readonly changedKeys?: readonly string[]
  readonly configInterrupts?: Readonly<Record<string, Interrupt>>
  readonly kept?: boolean
  readonly owes?: MergedInterrupt
  readonly interrupted?: MergedInterrupt
  readonly interruptRequired?: { readonly required: boolean; readonly bootId: string }
  readonly attempt?: StageAttempt
  readonly wantedAtMs?: number
  readonly retryAtMs?: number
  readonly failure?: { readonly reason: string; readonly message: string }
}

/** Reads the document of an older version, as it was parsed, into the current one. */
export function upgradeJournal(older: { readonly v: number }): Journal {
  const { cordonSeen, cordonedAgainMs, skyhooks, ...same } = older as JournalV1
  return {
    ...same,
    v: journalVersion,
    ...(cordonSeen !== undefined && { lastSeenUnschedulable: cordonSeen }),
    ...(cordonedAgainMs && { cordonRetriesAtMs: cordonedAgainMs }),
    skyhooks: mapValues(skyhooks, upgradeSkyhook),
  }
}

function upgradeSkyhook(older: SkyhookV1): SkyhookRecord {
  const { packages, inheritedReboots, stopping, drain, installed, ...same } = older
  return {
    ...same,
    packages: mapValues(packages, upgradePackage),
    priorReboots: inheritedReboots,
    canceling: stopping,
    drain: drain && upgradeDrain(drain),
    installedVersions: installed,
  }
}

function upgradeDrain({ yields: yieldCount, sinceMs, untilMs, reason }: DrainV1): SkyhookRecord['drain'] {
  if (sinceMs !== undefined) return { state: 'waiting', yieldCount, sinceMs }
  return untilMs === undefined || !reason ? undefined : { state: 'paused', yieldCount, untilMs, reason }
}

function upgradePackage(older: PackageV1): PackageRecord {
  const { name, version, image, containerSHA, restarts, installedBy, uninstall, passedAtMs, work } = older
  const started = older.started ?? older.finished
  const { finished, changedKeys = [], configInterrupts: interrupts, owes, interruptRequired } = older
  const facts: PackageFacts = {
    name,
    version,
    image,
    containerSHA,
    restarts,
    installedBy,
    uninstall,
    passedAtMs,
    config: started && { started, finished, changedKeys, interrupts },
    pendingInterrupt: owes && {
      interrupt: owes,
      requiredInBoot: interruptRequired?.required ? interruptRequired.bootId : undefined,
    },
    lastInterrupt: older.interrupted,
    lastRequestedRunAtMs: older.wantedAtMs,
  }
  return work
    ? { ...facts, work, progress: progressWithAttempt(older) ?? progressOf(older) }
    : { ...facts, progress: progressOf(older) }
}

function progressWithAttempt({ stage, state, attempt, kept, ...older }: PackageV1): PackageProgress | undefined {
  if (!attempt || kept || stage === 'interrupt') return undefined
  if (state === 'in_progress') return { state: 'running', stage, attempt }
  return state === 'erroring' ? { state: 'retrying', stage, attempt, ...retryOf(older) } : undefined
}

function progressOf({ stage, state, kept, ...older }: PackageV1): Exclude<PackageProgress, { attempt: StageAttempt }> {
  if (kept) return { state: 'retained', stage, shownAs: state }
  if (state === 'complete') return { state, stage }
  if (state === 'skipped') return { state, stage: 'uninstall' }
  if (state === 'erroring' && stage === 'interrupt') return { state: 'retrying', stage, ...retryOf(older) }
  return { state: 'due', stage }
}

const retryOf = ({ retryAtMs = 0, failure }: Pick<PackageV1, 'retryAtMs' | 'failure'>) => ({
  retryAtMs,
  failure: { reason: reasonOf(failure?.reason), message: failure?.message ?? 'failed' },
})

const reasonOf = (reason: string | undefined): StageFailure['reason'] =>
  reason === 'CheckFailed' || reason === 'RebootRefused' ? reason : 'StepFailed'

const mapValues = <From, To>(record: Readonly<Record<string, From>>, map: (value: From) => To): Record<string, To> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]))
