/**
 * How long nodes held a slot in the last rollouts of a Skyhook, published in its ledger for people who plan the next.
 * No decision depends on it. Durations are counted by classes, so that the ledger stays small for any number of nodes,
 * and so that a census can continue the count of another one. Pure.
 */
import { isObject } from '../schemas/json.ts'

/** One rollout. */
export type RolloutTimes = {
  /** Hash of the work. */
  readonly applied: string
  /** Nodes by class of length. */
  readonly lengths: Readonly<Record<string, number>>
}

export type SlotTimeEstimate = {
  readonly rollouts: number
  readonly nodes: number
  readonly p50Ms: number
  readonly p95Ms: number
}

/** The ledger is read with each request for a slot: ten rollouts have 6 KiB at most, and mostly less than one. */
const maxRollouts = 10
/** Each class is a quarter longer than the previous one: an estimate is at most that much too long. */
const classRatio = 1.25
/** Longer durations count as two weeks. */
const maxClass = 64

const classOf = (ms: number): number =>
  Math.min(maxClass, Math.max(0, Math.ceil(Math.log(Math.max(1, ms / 1_000)) / Math.log(classRatio))))

/** The longest of a class, in ms. */
const msOf = (lengthClass: number): number => Math.round(classRatio ** lengthClass) * 1_000

/** The rollouts with one more hold, of the work with that hash; an eleventh rollout replaces the oldest one. */
export function withSlotTime(slotTimes: readonly RolloutTimes[], applied: string, ms: number): readonly RolloutTimes[] {
  const before = slotTimes.find((one) => one.applied === applied) ?? { applied, lengths: {} }
  const key = String(classOf(ms))
  const lengths = { ...before.lengths, [key]: (before.lengths[key] ?? 0) + 1 }
  // repeated work, such as after a rollback, is the latest rollout
  return [...slotTimes.filter((one) => one.applied !== applied), { applied, lengths }].slice(-maxRollouts)
}

/** The times in a ledger. Leaves out invalid entries: the ledger may have been edited by hand. */
export function readSlotTimes(value: unknown): readonly RolloutTimes[] {
  if (!Array.isArray(value)) return []
  return value.filter(isRolloutTimes).slice(-maxRollouts)
}

function isRolloutTimes(value: unknown): value is RolloutTimes {
  if (!isObject(value) || typeof value['applied'] !== 'string' || value['applied'].length > maxHashLength) return false
  const { lengths } = value
  return (
    isObject(lengths) &&
    Object.entries(lengths).every(
      ([key, nodes]) =>
        classKey.test(key) && Number(key) <= maxClass && Number.isSafeInteger(nodes) && (nodes as number) > 0,
    )
  )
}

const classKey = /^(?:0|[1-9]\d?)$/
const maxHashLength = 64

/** Of all these rollouts together; undefined if no node has held a slot. */
export function slotTimeEstimate(slotTimes: readonly RolloutTimes[]): SlotTimeEstimate | undefined {
  const nodesByClass = new Map<number, number>()
  for (const { lengths } of slotTimes)
    for (const [key, nodes] of Object.entries(lengths))
      nodesByClass.set(Number(key), (nodesByClass.get(Number(key)) ?? 0) + nodes)
  const classes = [...nodesByClass].toSorted(([a], [b]) => a - b)
  const nodes = classes.reduce((sum, [, count]) => sum + count, 0)
  if (nodes === 0) return undefined
  const percentileMs = (percent: number): number => {
    let below = 0
    for (const [lengthClass, count] of classes) {
      below += count
      if (below * 100 >= percent * nodes) return msOf(lengthClass)
    }
    return msOf(maxClass)
  }
  return { rollouts: slotTimes.length, nodes, p50Ms: percentileMs(50), p95Ms: percentileMs(95) }
}

/** Of the rollout with that hash: how many nodes have finished, and the longest; undefined before the first one. */
export function slowestOf(
  slotTimes: readonly RolloutTimes[],
  applied: string,
): { readonly nodes: number; readonly slowestMs: number } | undefined {
  const lengths = Object.entries(slotTimes.find((one) => one.applied === applied)?.lengths ?? {})
  if (lengths.length === 0) return undefined
  const slowest = Math.max(...lengths.map(([key]) => Number(key)))
  return { nodes: lengths.reduce((sum, [, count]) => sum + count, 0), slowestMs: msOf(slowest) }
}
