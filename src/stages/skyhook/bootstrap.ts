import type { Companion } from '../../schemas/annotations.ts'
import { journalKey, nodeStateKey } from '../../schemas/annotations.ts'
import type { PackageRecord, SkyhookRecord } from '../../schemas/journal.ts'
import { inputsOf } from '../model/package-inputs.ts'
import { newRecord } from '../model/plan-builder.ts'
import type { StageEvent } from '../model/plan.ts'
import { parseCompanion, parseState } from '../publish/reconcile-annotations.ts'
import { packageKey } from '../package/next-stage.ts'
import type { SkyhookView, World } from '../model/snapshot.ts'

export type Inherited = { readonly record: SkyhookRecord; readonly event?: StageEvent }

/**
 * What a host without a journal for this Skyhook goes on from, by what the Node still shows: the incumbent's work is
 * adopted where its files are; a host that was imaged anew starts over, but what was rebooted for stays rebooted for.
 */
export function inherit(world: World, view: SkyhookView): Inherited {
  const { name, uid } = view.metadata
  const text = world.node.metadata.annotations?.[nodeStateKey(name)]
  const companion = parseCompanion(world.node.metadata.annotations?.[journalKey(name)])
  const record = { ...newRecord(uid), ...(companion && { rev: companion.rev }) }
  if (text === undefined) return { record } // reset by a person, or never worked on
  if (companion) return { record: { ...record, ...rebootsOf(companion) }, event: { type: 'startedOver', skyhook: name } }
  if (!world.hostFolders.has(name)) return { record, event: { type: 'startedOver', skyhook: name } }
  return { record: { ...record, packages: adopted(view, text) }, event: { type: 'adopted', skyhook: name } }
}

const rebootsOf = ({ reboots }: Companion): Pick<SkyhookRecord, 'reboots' | 'inheritedReboots'> | Record<string, never> =>
  reboots === undefined ? {} : { reboots, inheritedReboots: reboots }

/**
 * Entries that the incumbent completed at the spec's version count as complete with the spec of now; the others start over. Before v0.5
 * it wrote `name` as the key instead of `name|version`, and left that beside the new one.
 */
function adopted(view: SkyhookView, text: string): Record<string, PackageRecord> {
  const entries: Record<string, PackageRecord> = {}
  const written = parseState(text) ?? {}
  for (const [writtenKey, entry] of Object.entries(written)) {
    const [name = '', version = entry.version] = writtenKey.split('|')
    if (typeof version !== 'string' || version === '') continue
    const key = packageKey(name, version)
    if (key !== writtenKey && key in written) continue // said a second time, in the form of before v0.5
    const spec = view.spec.packages?.[name]
    const isFinal = entry.state === 'complete' && (entry.stage === 'config' || entry.stage === 'post-interrupt')
    if (!isFinal) continue
    const inputs = spec ? inputsOf(spec) : { config: {}, env: [] }
    entries[key] = {
      name,
      version,
      image: typeof entry.image === 'string' ? entry.image : (spec?.image ?? ''),
      stage: entry.stage === 'config' ? 'config' : 'post-interrupt',
      state: 'complete',
      restarts: 0,
      started: inputs,
      finished: inputs,
    }
  }
  return entries
}
