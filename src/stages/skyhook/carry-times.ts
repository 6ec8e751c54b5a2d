import {
  attemptOf,
  isRunning,
  type Journal,
  type Lifecycle,
  type PackageRecord,
  type SkyhookRecord,
  type Soak,
} from '../../schemas/journal.ts'
import { maxDrainPauseMs } from '../drain/drain-timeout.ts'
import { maxStageRetryDelayMs } from '../model/backoff.ts'

export type TimeBase = {
  readonly nowMs: number
  /** The journal was written by the same steady clock; else a wall clock that may have been wrong lies in between. */
  readonly isContinued: boolean
}

/**
 * The journal of an earlier process for this one. No wait ends later than it could if it began now. What limits work
 * starts over unless the clock is the same: how long an earlier boot waited is not known, and a clock that was set
 * forward must not end it.
 */
export function carryTimes(journal: Journal, base: TimeBase): Journal {
  const { cordonRetriesAtMs, taintUnliftedSinceMs } = journal
  const skyhooks = Object.entries(journal.skyhooks).map(([name, record]) => [name, carryRecord(record, base)] as const)
  return {
    ...journal,
    ...(cordonRetriesAtMs && { cordonRetriesAtMs: cordonRetriesAtMs.map((atMs) => Math.min(atMs, base.nowMs)) }),
    ...(taintUnliftedSinceMs !== undefined && { taintUnliftedSinceMs: carrySince(taintUnliftedSinceMs, base) }),
    skyhooks: Object.fromEntries(skyhooks),
  }
}

/** A moment from which something is counted. */
const carrySince = (atMs: number, { nowMs, isContinued }: TimeBase): number =>
  isContinued ? Math.min(atMs, nowMs) : nowMs

function carryRecord(record: SkyhookRecord, base: TimeBase): SkyhookRecord {
  const { drain, soak, published, lifecycle, packages } = record
  const { nowMs } = base
  const entries = Object.entries(packages).map(([key, entry]) => [key, carryPackage(entry, base)] as const)
  return {
    ...record,
    packages: Object.fromEntries(entries),
    ...(drain?.state === 'waiting' && { drain: { ...drain, sinceMs: carrySince(drain.sinceMs, base) } }),
    ...(drain?.state === 'paused' && {
      drain: { ...drain, untilMs: Math.min(drain.untilMs, nowMs + maxDrainPauseMs) },
    }),
    ...(soak && { soak: carrySoak(soak, base) }),
    ...(published && { published: { ...published, atMs: Math.min(published.atMs, nowMs) } }),
    ...(lifecycle && { lifecycle: carryLifecycle(lifecycle, base) }),
  }
}

function carryLifecycle(lifecycle: Lifecycle, base: TimeBase): Lifecycle {
  const { startedAtMs, interruptedAtMs } = lifecycle
  return {
    ...lifecycle,
    startedAtMs: Math.min(startedAtMs, base.nowMs),
    ...(interruptedAtMs !== undefined && { interruptedAtMs: carrySince(interruptedAtMs, base) }),
  }
}

/** After a boot the node has to be Ready for the whole time again. */
function carrySoak({ sinceMs, readySinceMs, daemonSets }: Soak, base: TimeBase): Soak {
  return {
    daemonSets,
    ...(sinceMs !== undefined && { sinceMs: carrySince(sinceMs, base) }),
    ...(readySinceMs !== undefined && base.isContinued && { readySinceMs: carrySince(readySinceMs, base) }),
  }
}

function carryPackage(entry: PackageRecord, base: TimeBase): PackageRecord {
  const { nowMs, isContinued } = base
  const { lastRequestedRunAtMs } = entry
  const carried: PackageRecord =
    lastRequestedRunAtMs === undefined
      ? entry
      : { ...entry, lastRequestedRunAtMs: Math.min(lastRequestedRunAtMs, nowMs) }
  const { progress } = carried
  if (progress.state === 'retrying') {
    const retryAtMs = Math.min(progress.retryAtMs, nowMs + maxStageRetryDelayMs)
    return { ...carried, progress: { ...progress, retryAtMs } } as PackageRecord
  }
  const attempt = attemptOf(progress)
  // by the same clock it stays: the names of its steps are made from it
  if (!isRunning(carried) || attempt === undefined || isContinued) return carried
  return { ...carried, progress: { ...carried.progress, attempt: { ...attempt, startedAtMs: nowMs } } }
}
