import type { Journal, SkyhookRecord } from '../../schemas/journal.ts'
import type { PackageRecord } from '../../schemas/package-record.ts'
import type { StatusReadResult } from '../../schemas/package-status.ts'
import type { PackageSpec } from '../../schemas/skyhook.ts'
import { durationMs } from '../../schemas/time.ts'
import { isConditional } from '../interrupt/merge.ts'
import { type PlanBuilder, requeueAt, setEntry } from '../model/plan-builder.ts'
import type { Snapshot } from '../model/snapshot.ts'
import { reapply, withFacts } from '../model/transitions.ts'

/**
 * What packages report from their hosts between their stages: a request to run config, which is treated like a change
 * of the spec, and a line for people, which the Node shows as a condition.
 */
export const packageStatusKey = (skyhook: string, name: string): string => `${skyhook}/${name}`

export const statusOf = ({ statuses }: Snapshot, skyhook: string, name: string): StatusReadResult | undefined =>
  statuses.known ? statuses.value.get(packageStatusKey(skyhook, name)) : undefined

/** True when config of a complete package is due because its host requests it. */
export function isRunRequested(builder: PlanBuilder, spec: PackageSpec, entry: PackageRecord): boolean {
  const { snapshot, view } = builder
  const limitMs = spec.rerunOnRequest && durationMs(spec.rerunOnRequest.minInterval)
  if (limitMs === undefined || !entry.config?.finished || entry.progress.stage === 'uninstall') return false
  const found = statusOf(snapshot, view.metadata.name, entry.name)
  if (found?.state !== 'read' || found.status.bootId !== snapshot.bootId) return false
  const { passedAtWallMs = 0, lastRequestedRunAtMs = -Infinity } = entry
  // from before the last run, which has handled it
  const wallMs = snapshot.nowMs + snapshot.wallOffsetMs
  if (found.writtenAtMs <= passedAtWallMs && passedAtWallMs <= wallMs) return false
  const { run, interrupt } = found.status.requests
  const mayInterrupt = spec.interrupt !== undefined && isConditional(spec.interrupt) // else a run would change nothing
  if (!run && !(interrupt && mayInterrupt)) return false
  const sinceMs = snapshot.nowMs - lastRequestedRunAtMs
  if (sinceMs >= limitMs) return true
  requeueAt(builder, snapshot.nowMs + limitMs - sinceMs)
  return false
}

/** From here on, requested runs of the host count against their minimum interval. */
export function recordRunRequest(builder: PlanBuilder, key: string): void {
  const entry = builder.record.packages[key]
  if (entry) setEntry(builder, withFacts(entry, { lastRequestedRunAtMs: builder.snapshot.nowMs }))
}

/** How many packages of this host request a run, and how many an interrupt. */
export function countRequests(
  statuses: Snapshot['statuses'],
  bootId: string,
): ReadonlyMap<'run' | 'interrupt', number> {
  const current = statuses.known
    ? [...statuses.value.values()].flatMap((found) =>
        found.state === 'read' && found.status.bootId === bootId ? [found.status.requests] : [],
      )
    : []
  return new Map([
    ['run', current.filter(({ run }) => run).length],
    ['interrupt', current.filter(({ interrupt }) => interrupt).length],
  ])
}

/**
 * A boot that no agent requested: with reapplyOnReboot of the chart, hosts that lose their changes get every package
 * applied again. Our own reboots are part of a package's work and never cause it.
 */
export function recordBoot(journal: Journal, { bootId, settings }: Snapshot): Journal {
  const isNewBoot = journal.bootId !== undefined && journal.bootId !== bootId
  const isOwnReboot = Object.values(journal.skyhooks).some(
    ({ interrupt }) => interrupt?.interrupt.type === 'reboot' && interrupt.bootId === journal.bootId,
  )
  if (!isNewBoot || isOwnReboot || !settings.reapplyOnReboot)
    return journal.bootId === bootId ? journal : { ...journal, bootId }
  const skyhooks = Object.fromEntries(
    Object.entries(journal.skyhooks).map(([name, record]) => [
      name,
      record.orphaned ? record : resetForReapply(record),
    ]),
  )
  return { ...journal, bootId, skyhooks }
}

/** Every package at the start of apply; versions, publications and counts stay. */
function resetForReapply(record: SkyhookRecord): SkyhookRecord {
  const packages = Object.fromEntries(
    Object.entries(record.packages).map(([key, entry]) => [
      key,
      entry.progress.stage === 'uninstall' ? entry : reapply(entry),
    ]),
  )
  return { ...record, lifecycle: undefined, interrupt: undefined, packages, flags: {} }
}
