import type { PackageRecord, SkyhookRecord } from '../../schemas/journal.ts'
import { inputsOf } from '../model/package-inputs.ts'
import { newSkyhookRecord } from '../model/plan-builder.ts'
import type { StageEvent } from '../model/plan.ts'
import { adoptPackage, startOver } from '../model/transitions.ts'
import { companionOf, nodeStateOf, parseState } from '../model/read-annotations.ts'
import { rebootsOfLostJournal } from '../interrupt/reboots.ts'
import { cancelAll } from '../package/cancel.ts'
import { isMidChange } from '../package/next-stage.ts'
import type { SkyhookView, Snapshot } from '../model/snapshot.ts'
import { packageKey } from '../model/package-key.ts'

export type BootstrapResult = { readonly record: SkyhookRecord; readonly event?: StageEvent }

/**
 * Where a host without a journal for this Skyhook starts, by what the Node still shows. The operator's work is adopted
 * where its files are. A host that was reinstalled starts over, but does not repeat its reboots.
 */
export function bootstrapRecord(snapshot: Snapshot, view: SkyhookView): BootstrapResult {
  const { name, uid } = view.metadata
  const text = nodeStateOf(snapshot.node, name)
  const companion = companionOf(snapshot.node, name)
  const record = { ...newSkyhookRecord(uid), ...(companion && { rev: companion.rev }) }
  if (text === undefined) return { record } // reset by a person, or never worked on
  if (companion)
    return {
      record: { ...record, ...rebootsOfLostJournal(companion.reboots ?? {}, snapshot.bootId) },
      event: { type: 'startedOver', skyhook: name },
    }
  if (!snapshot.hostFolders.has(name)) return { record, event: { type: 'startedOver', skyhook: name } }
  return { record: { ...record, packages: adoptEntries(view, text) }, event: { type: 'adopted', skyhook: name } }
}

/**
 * Entries that the operator completed at the spec's version count as complete with the current spec; the others start
 * over. Before v0.5 it wrote `name` as the key instead of `name|version`, and left that beside the new one.
 */
function adoptEntries(view: SkyhookView, text: string): Record<string, PackageRecord> {
  const entries: Record<string, PackageRecord> = {}
  const annotationEntries = parseState(text) ?? {}
  for (const [annotationKey, entry] of Object.entries(annotationEntries)) {
    const [name = '', version = entry.version] = annotationKey.split('|')
    if (typeof version !== 'string' || version === '') continue
    const key = packageKey(name, version)
    if (key !== annotationKey && key in annotationEntries) continue // there twice, once in the form of before v0.5
    const spec = view.spec.packages?.[name]
    const isFinal = entry.state === 'complete' && (entry.stage === 'config' || entry.stage === 'post-interrupt')
    if (!isFinal) continue
    const inputs = spec ? inputsOf(spec) : { config: {}, env: [] }
    const image = typeof entry.image === 'string' ? entry.image : (spec?.image ?? '')
    const config = { started: inputs, finished: inputs, changedKeys: [] }
    entries[key] = adoptPackage(
      { name, version, image, config },
      entry.stage === 'config' ? 'config' : 'post-interrupt',
    )
  }
  return entries
}

/**
 * A Skyhook re-created under its name: what is complete stays complete, unfinished work starts over, or is uninstalled.
 */
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
