/**
 * Reboots that packages need. A reboot counts once the boot id has changed. Before the agent requests it, the Node
 * records the current boot: if the host loses its journal in between, the Node shows whether the reboot was made.
 */
import type { RebootCount } from '../../schemas/annotations.ts'
import type { Reason } from '../../schemas/catalogue/reason.ts'
import type { SkyhookRecord } from '../../schemas/journal.ts'
import type { InterruptRun, PackageRecord } from '../../schemas/package-record.ts'
import { publishedOf } from '../../schemas/published.ts'
import { appliedHash } from '../model/package-inputs.ts'
import { type PlanBuilder, requeueAt } from '../model/plan-builder.ts'
import type { InterruptObservation } from '../model/snapshot.ts'

/** For the same merged interrupt: more reboots would not help the package either. */
export const maxReboots = 3
/** How often the agent asks the host whether it is shutting down. */
const lookIntervalMs = 10_000
/** If the host is still up and not shutting down this long after the request, the request had no effect. */
const noShutdownMs = 60_000

type RebootCounts = Readonly<Record<string, RebootCount>>

/** Identifies a merged reboot: `<hash of the spec>/<packages>`. */
export const rebootKeyOf = ({ view }: PlanBuilder, owners: readonly PackageRecord[]): string =>
  `${appliedHash(view.spec)}/${owners.map(({ name }) => name).join(',')}`

/** The reboots as the Node shows them, including the one that is about to be requested. */
export function publishedReboots({ reboots, interrupt }: SkyhookRecord): RebootCounts {
  const counts = Object.fromEntries(Object.entries(reboots).map(([key, done]) => [key, { done }]))
  if (interrupt?.rebootKey === undefined || interrupt.abandoned) return counts
  return {
    ...counts,
    [interrupt.rebootKey]: { done: reboots[interrupt.rebootKey] ?? 0, askedInBoot: interrupt.bootId },
  }
}

/**
 * The reboots of a host that lost its journal: a reboot requested in an earlier boot was made, one requested in this
 * boot was not.
 */
export function rebootsOfLostJournal(
  counts: RebootCounts,
  bootId: string,
): Pick<SkyhookRecord, 'reboots' | 'priorReboots'> {
  const made = Object.entries(counts).map(([key, { done, askedInBoot }]) => ({
    key,
    count: askedInBoot === undefined || askedInBoot === bootId ? done : done + 1,
    isPending: askedInBoot === bootId,
  }))
  const countsOf = (rows: typeof made): Record<string, number> =>
    Object.fromEntries(rows.filter(({ count }) => count > 0).map(({ key, count }) => [key, count]))
  return { reboots: countsOf(made), priorReboots: countsOf(made.filter(({ isPending }) => !isPending)) }
}

/** The host booted since the run was decided. */
export function countReboot(record: SkyhookRecord, { rebootKey, abandoned }: InterruptRun): SkyhookRecord {
  if (rebootKey === undefined || abandoned) return record
  return { ...record, reboots: { ...record.reboots, [rebootKey]: (record.reboots[rebootKey] ?? 0) + 1 } }
}

/** The API server has everything that is needed if the journal is lost. */
export const isAnnounced = ({ snapshot, view }: PlanBuilder, { rebootKey, bootId }: InterruptRun): boolean =>
  rebootKey === undefined ||
  publishedOf(snapshot.node, view.metadata.name).companion?.reboots?.[rebootKey]?.askedInBoot === bootId

export const aboutToReboot = 'the host is about to reboot'

export const rebootPending = (message = aboutToReboot): Reason => ({ reason: 'RebootPending', message })

export type ShutdownWait =
  /** `looks`: the agent must ask the host again. */
  | { readonly wait: 'continues'; readonly looks: boolean; readonly reason: Reason }
  | { readonly wait: 'over'; readonly message: string }

/** The agent waits for a requested reboot as long as the host is shutting down, which may take very long. */
export function awaitShutdown(
  builder: PlanBuilder,
  { message, shutdown }: Extract<InterruptObservation, { state: 'unknown' }>,
): ShutdownWait {
  const { nowMs } = builder.snapshot
  if (!shutdown) return { wait: 'continues', looks: true, reason: rebootPending() }
  const { progress, sinceMs, atMs } = shutdown
  if (progress === 'none') {
    if (nowMs - sinceMs >= noShutdownMs) return { wait: 'over', message: `the host is not shutting down: ${message}` }
    requeueAt(builder, sinceMs + noShutdownMs)
  }
  const looks = nowMs - atMs >= lookIntervalMs
  if (!looks) requeueAt(builder, atMs + lookIntervalMs)
  return { wait: 'continues', looks, reason: rebootPending(pendingMessages[progress]) }
}

const pendingMessages = {
  'under-way': 'the host is shutting down',
  none: undefined,
  'no-answer': "the reboot was requested, and the host's system bus does not answer: the host may be shutting down",
} as const
