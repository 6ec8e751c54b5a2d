import type { PackageRecord } from '../../schemas/journal.ts'
import type { StatusReadResult } from '../../schemas/package-status.ts'
import { isSatisfiedByBoot } from './pending.ts'
import { type PlanBuilder, setEntry } from '../model/plan-builder.ts'

/** Names the attempt of an entry: what was answered for an earlier one is no answer. */
export function requestIdOf(builder: PlanBuilder, { name, version, work, attempt }: PackageRecord): string {
  const requestId = [
    builder.view.metadata.uid,
    name,
    version,
    work?.generation,
    attempt?.startedAtMs,
    attempt?.number,
  ].join('/')
  builder.needed.add(requestId)
  return requestId
}

/** What the package says about the interrupt that it may need: read once, when config has passed. */
export function requestStatus(builder: PlanBuilder, entry: PackageRecord): StatusReadResult | 'requested' {
  const { name: skyhook } = builder.view.metadata
  const requestId = requestIdOf(builder, entry)
  const requestedStatus = builder.snapshot.requestedStatuses.get(requestId)
  if (requestedStatus) return requestedStatus
  builder.actions.push({
    do: 'readStatus',
    key: `status/${skyhook}/${entry.name}`,
    skyhook,
    package: entry.name,
    requestId,
  })
  return 'requested'
}

/** A requirement that somebody else's reboot, or a power cut, has met. True when the entry changed. */
export function satisfyByBoot(builder: PlanBuilder, key: string): boolean {
  const entry = builder.record.packages[key]
  if (!entry || builder.record.interrupt?.owners.includes(key) || !isSatisfiedByBoot(entry, builder.snapshot.bootId))
    return false
  const { pendingInterrupt, retryAtMs: _, failure: __, interruptRequirement: ___, ...retained } = entry
  setEntry(builder, { ...retained, stage: 'interrupt', state: 'complete', restarts: 0 })
  const { lifecycle } = builder.record
  if (lifecycle)
    builder.record = { ...builder.record, lifecycle: { ...lifecycle, interruptedAtMs: builder.snapshot.nowMs } }
  builder.events.push({
    type: 'interrupted',
    skyhook: builder.view.metadata.name,
    interrupt: `${pendingInterrupt?.type}, replaced by a boot`,
  })
  return true
}
