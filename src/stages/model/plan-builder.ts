import type { PackageRecord, SkyhookRecord } from '../../schemas/journal.ts'
import { type Action, type PackageImage, type StageEvent, preparationKey } from './plan.ts'
import type { Preparation, PreparationDepth, SkyhookView, Snapshot } from './snapshot.ts'
import { nextPreparation } from './next-preparation.ts'
import { keyOf } from './package-key.ts'

/** The plan of one Skyhook while it is being made. It lives inside one call of `decide` and is not visible outside. */
export type PlanBuilder = {
  readonly snapshot: Snapshot
  readonly view: SkyhookView
  record: SkyhookRecord
  readonly actions: Action[]
  readonly events: StageEvent[]
  readonly needed: Set<string>
  /** The plan requests the control plane's slot, or works under it. */
  usesControlPlane: boolean
  /** A slot is requested, now or when the last answer allows it. */
  asksForSlot: boolean
  /** The depth to which images of unstarted work are prepared. */
  depth: PreparationDepth
  requeueAtMs: number
}

export const newSkyhookRecord = (uid: string): SkyhookRecord => ({
  uid,
  rev: 0,
  packages: {},
  reboots: {},
  flags: {},
  installedVersions: {},
})

export function newPlanBuilder(snapshot: Snapshot, view: SkyhookView, record: SkyhookRecord | undefined): PlanBuilder {
  return {
    snapshot,
    view,
    record: record ?? newSkyhookRecord(view.metadata.uid),
    actions: [],
    events: [],
    needed: new Set(),
    usesControlPlane: false,
    asksForSlot: false,
    depth: 'layers',
    requeueAtMs: Infinity,
  }
}

export const requeueAt = (builder: PlanBuilder, atMs: number): void => {
  builder.requeueAtMs = Math.min(builder.requeueAtMs, atMs)
}

export function setEntry(builder: PlanBuilder, entry: PackageRecord): void {
  builder.record = {
    ...builder.record,
    packages: { ...builder.record.packages, [keyOf(entry)]: entry },
  }
}

export function removeEntry(builder: PlanBuilder, key: string): void {
  const packages = Object.entries(builder.record.packages).filter(([other]) => other !== key)
  builder.record = { ...builder.record, packages: Object.fromEntries(packages) }
}

export const entriesOf = (record: SkyhookRecord, name: string): PackageRecord[] =>
  Object.values(record.packages).filter((entry) => entry.name === name)

/** The state of a preparation. Requests it for the first time, to a greater depth, or when its retry is due. */
export function requestPreparation(
  builder: PlanBuilder,
  image: PackageImage,
  requiredDepth: PreparationDepth,
): Preparation {
  const key = preparationKey(image)
  builder.needed.add(key)
  const found = builder.snapshot.preparations.get(key)
  if (found?.state === 'ready')
    // started work uses the digest
    builder.needed.add(preparationKey({ image: image.image, version: image.version, digest: found.digest }))
  if (found?.state === 'failed' && found.retryAtMs > builder.snapshot.nowMs) requeueAt(builder, found.retryAtMs)
  const depth = nextPreparation(found, requiredDepth, builder.snapshot.nowMs)
  const isRequested = builder.actions.some((action) => action.key === `prepare/${key}`)
  if (depth !== undefined && !isRequested) builder.actions.push({ do: 'prepare', key: `prepare/${key}`, image, depth })
  return found ?? { state: 'pending' }
}

/** Flags without those of one package: its guarded steps run again. */
export const withoutFlags = (flags: SkyhookRecord['flags'], packageName: string): SkyhookRecord['flags'] =>
  Object.fromEntries(Object.entries(flags).filter(([key]) => !key.startsWith(`${packageName}/`)))
