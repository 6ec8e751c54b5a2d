/**
 * Reboots that packages need. One counts once the boot id has changed. Before the host is asked for it, the Node shows
 * in which boot: a host that loses its journal in between then knows whether the reboot was made.
 */
import type { RebootCount } from '../../schemas/annotations.ts'
import type { Reason } from '../../schemas/catalogue/reasons.ts'
import type { InterruptRun, PackageRecord, SkyhookRecord } from '../../schemas/journal.ts'
import { publishedOf } from '../../schemas/published.ts'
import { appliedHash } from '../model/applied-hash.ts'
import { type PlanBuilder, requeueAt } from '../model/plan-builder.ts'
import type { InterruptObservation } from '../model/snapshot.ts'

/** Of the same merged interrupt: a package that needs more reboots than this to be content will not be content. */
export const maxReboots = 3
/** How often the host is asked whether it is shutting down. */
const lookIntervalMs = 10_000
/** A host that is up and not shutting down for this long after the request will not shut down because of it. */
const noShutdownMs = 60_000

type RebootCounts = Readonly<Record<string, RebootCount>>

/** Tells one merged reboot from another: `<hash of the spec>/<packages>`. */
export const rebootKeyOf = ({ view }: PlanBuilder, owners: readonly PackageRecord[]): string =>
  `${appliedHash(view.spec)}/${owners.map(({ name }) => name).join(',')}`

/** The reboots as the Node shows them, with the one that is about to be requested. */
export function publishedReboots({ reboots, interrupt }: SkyhookRecord): RebootCounts {
  const counts = Object.fromEntries(Object.entries(reboots).map(([key, done]) => [key, { done }]))
  if (interrupt?.rebootKey === undefined || interrupt.abandoned) return counts
  return {
    ...counts,
    [interrupt.rebootKey]: { done: reboots[interrupt.rebootKey] ?? 0, askedInBoot: interrupt.bootId },
  }
}

/** The reboots of a host that lost its journal: requested in an earlier boot is made, requested in this one is not. */
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

/** The API server has what a lost journal would be missed for. */
export const isAnnounced = ({ snapshot, view }: PlanBuilder, { rebootKey, bootId }: InterruptRun): boolean =>
  rebootKey === undefined ||
  publishedOf(snapshot.node, view.metadata.name).companion?.reboots?.[rebootKey]?.askedInBoot === bootId

export const aboutToReboot = 'the host is about to reboot'

export const rebootPending = (message = aboutToReboot): Reason => ({ reason: 'RebootPending', message })

export type ShutdownWait =
  /** `looks`: it is time to ask the host again. */
  | { readonly wait: 'continues'; readonly looks: boolean; readonly reason: Reason }
  | { readonly wait: 'over'; readonly message: string }

/** How long a requested reboot is waited for is for the host to say: a shutdown may take very long. */
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
