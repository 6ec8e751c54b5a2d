import type { PackageRecord, RunningPackage } from '../../schemas/journal.ts'
import type { StatusReadResult } from '../../schemas/package-status.ts'
import { isBeingInterrupted, isSatisfiedByBoot } from './pending.ts'
import { type PlanBuilder, setEntry } from '../model/plan-builder.ts'
import { completeInterrupt } from '../model/transitions.ts'

/** Identifies the attempt of an entry: an answer for an earlier attempt does not count. */
export function requestIdOf(builder: PlanBuilder, { name, version, work, progress }: RunningPackage): string {
  const { startedAtMs, number } = progress.attempt
  const requestId = [builder.view.metadata.uid, name, version, work.generation, startedAtMs, number].join('/')
  builder.needed.add(requestId)
  return requestId
}

/** What the package reports about a conditional interrupt: read once, when config has passed. */
export function requestStatus(builder: PlanBuilder, entry: RunningPackage): StatusReadResult | 'requested' {
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

/** A requirement that another reboot or a power cut has met. True when the entry changed. */
export function satisfyByBoot(builder: PlanBuilder, entry: PackageRecord): boolean {
  const { record, snapshot, view } = builder
  if (isBeingInterrupted(record, entry) || !isSatisfiedByBoot(entry, snapshot.bootId)) return false
  setEntry(builder, completeInterrupt(entry, undefined))
  const { lifecycle } = record
  if (lifecycle) builder.record = { ...builder.record, lifecycle: { ...lifecycle, interruptedAtMs: snapshot.nowMs } }
  const interrupt = `${entry.pendingInterrupt?.interrupt.type}, replaced by a boot`
  builder.events.push({ type: 'interrupted', skyhook: view.metadata.name, interrupt })
  return true
}
