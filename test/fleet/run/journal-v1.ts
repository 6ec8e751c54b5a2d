/** The journal as agents before 0.2 wrote it: what src/schemas/journal-v1.ts reads, made of a current one. */
import { type Journal, journalVersion, type PackageRecord, type SkyhookRecord } from '../../../src/schemas/journal.ts'

/** Loses what those agents did not know: soaks, and facts that only newer versions keep. */
export function downgradeJournal(journal: Journal) {
  const { v: _, lastSeenUnschedulable, cordonRetriesAtMs, skyhooks, ...same } = journal
  return {
    v: journalVersion - 1,
    ...same,
    ...(lastSeenUnschedulable !== undefined && { cordonSeen: lastSeenUnschedulable }),
    ...(cordonRetriesAtMs && { cordonedAgainMs: cordonRetriesAtMs }),
    skyhooks: mapValues(skyhooks, downgradeSkyhook),
  }
}

function downgradeSkyhook({ packages, priorReboots, canceling, drain, installedVersions, ...rest }: SkyhookRecord) {
  const { soak: _, ...same } = rest
  return {
    ...same,
    packages: mapValues(packages, downgradePackage),
    inheritedReboots: priorReboots,
    stopping: canceling,
    drain: drain && downgradeDrain(drain),
    installed: installedVersions,
  }
}

function downgradeDrain(drain: NonNullable<SkyhookRecord['drain']>): object {
  const { state: _, yieldCount, ...same } = drain
  return { yields: yieldCount, ...same }
}

function downgradePackage(entry: PackageRecord): object {
  const { name, version, image, containerSHA, restarts, installedBy, uninstall, passedAtMs, work } = entry
  const { config, pendingInterrupt, lastInterrupt, lastRequestedRunAtMs } = entry
  return {
    name,
    version,
    image,
    containerSHA,
    restarts,
    installedBy,
    uninstall,
    passedAtMs,
    work,
    ...downgradeProgress(entry.progress),
    started: config?.started,
    finished: config?.finished,
    changedKeys: config?.changedKeys,
    configInterrupts: config?.interrupts,
    owes: pendingInterrupt?.interrupt,
    interruptRequired:
      pendingInterrupt?.requiredInBoot === undefined
        ? undefined
        : { required: true, bootId: pendingInterrupt.requiredInBoot },
    interrupted: lastInterrupt,
    wantedAtMs: lastRequestedRunAtMs,
  }
}

function downgradeProgress(progress: PackageRecord['progress']): object {
  switch (progress.state) {
    case 'due':
    case 'running':
      return { ...progress, state: 'in_progress' }
    case 'retrying':
      return { ...progress, state: 'erroring' }
    case 'retained':
      return { stage: progress.stage, state: progress.shownAs, kept: true }
    case 'complete':
    case 'skipped':
      return progress
  }
}

const mapValues = <From, To>(record: Readonly<Record<string, From>>, map: (value: From) => To): Record<string, To> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, map(value)]))
