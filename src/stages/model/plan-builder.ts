import type { PackageRecord, SkyhookRecord } from '../../schemas/journal.ts'
import type { Action, PackageImage, StageEvent } from './plan.ts'
import { preparationKey } from './plan.ts'
import { packageKey } from '../package/next-stage.ts'
import type { Preparation, SkyhookView, World } from './snapshot.ts'

/** The plan of one Skyhook while it is being made. It lives inside one call of `decide` and is seen by nobody else. */
export type Draft = {
  readonly world: World
  readonly view: SkyhookView
  record: SkyhookRecord
  readonly actions: Action[]
  readonly events: StageEvent[]
  readonly needed: Set<string>
  wakeAtMs: number
}

export const newRecord = (uid: string): SkyhookRecord => ({ uid, rev: 0, packages: {}, reboots: {}, flags: {}, installed: {} })

export function newDraft(world: World, view: SkyhookView, record: SkyhookRecord | undefined): Draft {
  return {
    world,
    view,
    record: record ?? newRecord(view.metadata.uid),
    actions: [],
    events: [],
    needed: new Set(),
    wakeAtMs: Number.POSITIVE_INFINITY,
  }
}

export const wakeAt = (draft: Draft, atMs: number): void => {
  draft.wakeAtMs = Math.min(draft.wakeAtMs, atMs)
}

export function setEntry(draft: Draft, entry: PackageRecord): void {
  draft.record = { ...draft.record, packages: { ...draft.record.packages, [packageKey(entry.name, entry.version)]: entry } }
}

export function removeEntry(draft: Draft, key: string): void {
  const { [key]: _, ...packages } = draft.record.packages
  draft.record = { ...draft.record, packages }
}

export const entriesOf = (record: SkyhookRecord, name: string): PackageRecord[] =>
  Object.values(record.packages).filter((entry) => entry.name === name)

/** The state of a preparation; asks for it when nobody has yet, or when its retry is due. */
export function preparation(draft: Draft, image: PackageImage): Preparation {
  const key = preparationKey(image)
  draft.needed.add(key)
  const found = draft.world.prepared.get(key)
  const { references: _, ...content } = image
  if (found?.state === 'ready') draft.needed.add(preparationKey({ ...content, digest: found.digest })) // begun work asks by it
  const retry = found?.state === 'failed' && found.retryAtMs <= draft.world.nowMs
  if (found?.state === 'failed' && !retry) wakeAt(draft, found.retryAtMs)
  const isAsked = draft.actions.some((action) => action.key === `prepare/${key}`)
  if ((found === undefined || retry) && !isAsked) draft.actions.push({ do: 'prepare', key: `prepare/${key}`, image })
  return found ?? { state: 'pending' }
}

/** Forgets the flags of one package, so that its guarded steps run again. */
export function clearFlags(draft: Draft, packageName: string): void {
  const flags = Object.fromEntries(Object.entries(draft.record.flags).filter(([key]) => !key.startsWith(`${packageName}/`)))
  draft.record = { ...draft.record, flags }
}
