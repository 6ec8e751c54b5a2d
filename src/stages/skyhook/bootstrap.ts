import type { SkyhookRecord } from '../../schemas/journal.ts'
import { publishedOf } from '../../schemas/published.ts'
import { newSkyhookRecord } from '../model/plan-builder.ts'
import type { StageEvent } from '../model/plan.ts'
import { startOver } from '../model/transitions.ts'
import { rebootsOfLostJournal } from '../interrupt/reboots.ts'
import { cancelAll } from '../package/cancel.ts'
import { isMidChange } from '../package/next-stage.ts'
import type { SkyhookView, Snapshot } from '../model/snapshot.ts'
import { adoptEntries, type OperatorWork } from './adoption.ts'

export type BootstrapResult = { readonly record: SkyhookRecord; readonly event?: StageEvent }

/**
 * The initial record of a host without a journal for this Skyhook, from the Node. The operator's work is adopted if its
 * files exist. A reinstalled host starts over, but does not repeat its reboots.
 */
export function bootstrapRecord(snapshot: Snapshot, view: SkyhookView): BootstrapResult {
  const { name, uid } = view.metadata
  const { state, companion } = publishedOf(snapshot.node, name)
  const record = { ...newSkyhookRecord(uid), ...(companion && { rev: companion.rev }) }
  if (state === undefined) return { record } // reset by a person, or never worked on
  if (companion)
    return {
      record: { ...record, ...rebootsOfLostJournal(companion.reboots ?? {}, snapshot.bootId) },
      event: { type: 'startedOver', skyhook: name },
    }
  const work = operatorWorkOn(snapshot, name)
  if (work === undefined) return { record, event: { type: 'startedOver', skyhook: name } }
  return {
    record: { ...record, adopted: true, packages: adoptEntries(view, work) },
    event: { type: 'adopted', skyhook: name },
  }
}

/** Work of the operator that no agent has taken over; undefined if its files are not on the host. */
export function operatorWorkOn(
  { node, journal, hostFolders, rolledOutConfigs }: Snapshot,
  skyhook: string,
): OperatorWork | undefined {
  const { state, status, companion } = publishedOf(node, skyhook)
  if (state === undefined || Object.hasOwn(journal.skyhooks, skyhook) || companion) return undefined
  if (!hostFolders.has(skyhook)) return undefined
  return { state, status, rolledOut: rolledOutConfigs.get(skyhook) }
}

/** A Skyhook re-created under its name: complete work stays complete, unfinished work starts over or is uninstalled. */
export function recordOfSkyhook(record: SkyhookRecord | undefined, view: SkyhookView): SkyhookRecord | undefined {
  if (!record) return undefined
  const { uid } = view.metadata
  if (record.uid === uid && !record.orphaned) return record
  const canceled = cancelAll(record)
  const packages = Object.entries(canceled.packages).flatMap(([key, entry]) => {
    if (entry.work === undefined) return []
    return [[key, isMidChange(entry) ? startOver(entry) : entry]]
  })
  return {
    ...canceled,
    uid,
    lifecycle: undefined,
    orphaned: undefined,
    takenOver: packages.length > 0 ? 'unfinished' : undefined,
    packages: Object.fromEntries(packages),
  }
}
