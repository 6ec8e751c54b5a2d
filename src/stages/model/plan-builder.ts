import { reasons } from '../../schemas/catalogue/reasons.ts'
import type { Reason } from '../../schemas/catalogue/reason.ts'
import type { SkyhookRecord } from '../../schemas/journal.ts'
import type { PackageRecord } from '../../schemas/package-record.ts'
import { clip, plainExcerpt } from '../../schemas/plain-text.ts'
import type { NodeStatus } from '../../schemas/skyhook.ts'
import { type Action, failureKey, type PackageImage, preparationKey, type StageEvent, writePaceMs } from './plan.ts'
import type { PodWatch } from './pods.ts'
import {
  type Failure,
  keyOf,
  type Preparation,
  type PreparationDepth,
  type SkyhookView,
  type Snapshot,
} from './snapshot.ts'

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

/**
 * The depth to prepare now; undefined: it is reached, or the preparation failed and waits. Layers that could not be
 * fetched are retried as layers: a node that gave its slot back for them takes no slot before it has them.
 */
export function nextPreparation(
  found: Preparation | undefined,
  requiredDepth: PreparationDepth,
  nowMs: number,
): PreparationDepth | undefined {
  switch (found?.state) {
    case undefined:
      return requiredDepth
    case 'checked':
      return requiredDepth === 'layers' ? 'layers' : undefined
    case 'pending':
    case 'ready':
      return undefined
    case 'failed':
      if (found.retryAtMs > nowMs) return undefined
      return found.depth === 'layers' ? 'layers' : requiredDepth
  }
}

/** The limit of an Event. */
const maxLength = 1_024
/** In the annotation of a Node, quotes included: a reason and those of packages have 6 KiB together. */
const maxJsonBytes = 1_536

/** Untrusted text as a part of a reason: bounded, and safe to print. */
export function reasonMessage(text: string): string {
  let message = plainExcerpt(text, maxLength)
  for (let length = message.length; Buffer.byteLength(JSON.stringify(message)) > maxJsonBytes; )
    message = clip(message, (length = Math.floor(length * 0.8)))
  return message
}

/** Actions and sources that fail, as the decisions see them. */

/** A failure that the next attempts fix does not become a reason. */
const usualSettleMs = 3_000

export type Failing = {
  /** The worst lasting failure. */
  readonly failure: Failure | undefined
  /** When the next failure becomes a lasting one. */
  readonly recheckAtMs: number
}

export function worstOf(
  { failures, nowMs, answerMs = 0 }: Pick<Snapshot, 'failures' | 'nowMs' | 'answerMs'>,
  isConcerned: (key: string, failure: Failure) => boolean,
): Failing {
  const settleMs = writePaceMs(usualSettleMs, { answerMs })
  const concerned = [...failures].filter(([key, failure]) => isConcerned(key, failure)).map(([, failure]) => failure)
  const settledAtMs = concerned.map(({ sinceMs }) => sinceMs + settleMs)
  const lasting = concerned.filter(({ sinceMs }) => sinceMs + settleMs <= nowMs)
  return {
    failure: lasting.toSorted((a, b) => weight(a) - weight(b) || a.sinceMs - b.sinceMs)[0],
    recheckAtMs: Math.min(Infinity, ...settledAtMs.filter((atMs) => atMs > nowMs)),
  }
}

export const failureOf = (snapshot: Snapshot, action: Pick<Action, 'do' | 'key'>): Failure | undefined =>
  worstOf(snapshot, (key) => key === failureKey(action)).failure

/** It ends by itself. */
export const isWait = ({ reason }: Reason): boolean => reasons[reason].section === 'waiting'

const weight = (reason: Reason): number => (isWait(reason) ? 1 : 0)

/** What one selected Skyhook currently does on this node. */
export type SkyhookPlan = {
  readonly builder: PlanBuilder
  readonly status: NodeStatus
  readonly reason?: Reason
  /** Of each failing package, the worst first. */
  readonly packageReasons?: ReadonlyMap<string, Reason>
  /** The work for this spec is complete; later Skyhooks may start. */
  readonly complete: boolean
  /** The cordon that this Skyhook requests: its mark on the Node, off it, or unchanged, even if the Node lost it. */
  readonly cordon: 'on' | 'off' | 'as-is'
  readonly watchPods: PodWatch
  /** Only the reason of the Skyhook on this node is read or written. */
  readonly isUntouched?: boolean
}

export const preparingImages: Reason = { reason: 'Preparing', message: 'fetching the package images' }
