/**
 * Which node held each slot, and when: one lane per slot. Slots show only who holds them now, so lanes start with the
 * dashboard. The lane of a slot that is held at that time starts with its Lease. Pure.
 */
import { labelKeys } from '../../lease/names.ts'
import type { Slot } from '../../lease/slot.ts'
import type { Known } from '../../stages/model/snapshot.ts'

export type Lane = {
  /** Such as `slot 0`, with the compartment before it where there is one. */
  readonly label: string
  /** Oldest first. */
  readonly spans: readonly Span[]
}

/** One node's time with a slot. */
export type Span = {
  readonly id: string
  readonly node: string
  readonly fromMs: number
  /** Undefined: it still holds it. */
  readonly toMs: number | undefined
  readonly phases: readonly { readonly phase: string; readonly fromMs: number }[]
}

/** By Skyhook, then by lane. */
export type LaneHistory = ReadonlyMap<string, ReadonlyMap<string, Lane>>

/** Older spans say little about a rollout that a person looks at. */
const keptMs = 3_600_000
/** Of one Skyhook: a budget without a limit has as many lanes as nodes. */
const maxLanes = 64
const maxSpansPerLane = 200

/** The history with what the slots show now. Slots that are unknown change nothing. */
export function withSlots(history: LaneHistory, slots: Known<readonly Slot[]>, nowMs: number): LaneHistory {
  if (!slots.known) return history
  const bySkyhook = Map.groupBy(slots.value, ({ lease }) => lease.metadata.labels?.[labelKeys.name] ?? '')
  const names = new Set([...history.keys(), ...bySkyhook.keys()])
  return new Map(
    [...names].map((name) => [name, lanesWith(history.get(name) ?? new Map(), bySkyhook.get(name) ?? [], nowMs)]),
  )
}

/** Lanes of a Skyhook, in the order of their slots. Slots of a budget that nobody has held yet are empty lanes. */
export function lanesOf(history: LaneHistory, skyhook: string, limit: number | undefined): readonly Lane[] {
  const found = new Map(history.get(skyhook))
  for (let index = 0; index < Math.min(limit ?? 0, maxLanes); index++) {
    const key = keyOf('', 'slot', index)
    if (!found.has(key)) found.set(key, { label: labelOf('', 'slot', index), spans: [] })
  }
  return [...found].toSorted(([a], [b]) => a.localeCompare(b, 'en', { numeric: true })).map(([, lane]) => lane)
}

function lanesWith(before: ReadonlyMap<string, Lane>, slots: readonly Slot[], nowMs: number): Map<string, Lane> {
  const held = new Map(slots.map((slot) => [idOf(slot), slot]))
  const lanes = new Map<string, Lane>()
  for (const [key, { label, spans }] of before) {
    const kept = spans
      .map((span) => (span.toMs === undefined ? continued(span, held.get(span.id), nowMs) : span))
      .filter(({ toMs }) => toMs === undefined || nowMs - toMs < keptMs)
    lanes.set(key, { label, spans: kept.slice(-maxSpansPerLane) })
    for (const { id, toMs } of kept) if (toMs === undefined) held.delete(id)
  }
  for (const [id, slot] of held) {
    const key = laneFor(slot, lanes)
    if (!lanes.has(key) && lanes.size >= maxLanes) continue
    const { label, spans } = lanes.get(key) ?? { label: labelIn(slot, key), spans: [] }
    lanes.set(key, { label, spans: [...spans, startOf(slot, id, nowMs)] })
  }
  return lanes
}

/** A Lease that is taken again by another node is another span. */
const idOf = ({ uid, holder, lease }: Slot): string => [uid, holder, lease.spec?.acquireTime ?? ''].join(' ')

function startOf(slot: Slot, id: string, nowMs: number): Span {
  const acquired = Date.parse(slot.lease.spec?.acquireTime ?? '')
  const fromMs = Number.isNaN(acquired) ? nowMs : Math.min(acquired, nowMs)
  return { id, node: slot.holder, fromMs, toMs: undefined, phases: [{ phase: slot.phase, fromMs }] }
}

function continued(span: Span, slot: Slot | undefined, nowMs: number): Span {
  if (slot === undefined) return { ...span, toMs: nowMs }
  if (span.phases.at(-1)?.phase === slot.phase) return span
  return { ...span, phases: [...span.phases, { phase: slot.phase, fromMs: nowMs }] }
}

const besidePrefix = '~beside'
const keyOf = (compartment: string, kind: string, index: number): string => `${compartment}/${kind}/${index}`

const labelOf = (compartment: string, kind: string, index: number): string =>
  [compartment, kind, index].filter((part) => part !== '').join(' ')

/** Slots without a number share lanes: the first that is free. */
function laneFor({ compartmentName, kind, index }: Slot, lanes: ReadonlyMap<string, Lane>): string {
  if (Number.isFinite(index)) return keyOf(compartmentName, kind, index)
  for (let number = 0; ; number++) {
    const key = `${besidePrefix}/${kind}/${number}`
    const isTaken = lanes.get(key)?.spans.some(({ toMs }) => toMs === undefined) ?? false
    if (!isTaken) return key
  }
}

function labelIn({ compartmentName, kind, index }: Slot, key: string): string {
  if (Number.isFinite(index)) return labelOf(compartmentName, kind, index)
  return key.slice(besidePrefix.length + 1).replace('/', ' ')
}
