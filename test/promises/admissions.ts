/**
 * The arithmetic of promise 1, apart from where its facts come from: which hosts went out on which confirming reads,
 * and whether one of them was admitted beside too many.
 */
import type { Allowed } from './allowed.ts'
import type { Exemption } from './admission-facts.ts'

/** Positions in the order of events. */
type Order = number

/** A confirming read: the spec as it was read, and the moment for which others are counted. */
export type Reading = {
  readonly order: Order
  /** The LIST of slots that the admission goes by: who had no slot then through the hand of a person is not in it. */
  readonly listOrder: Order
  readonly atMs: number
  /** What happened until then may have been before it. */
  readonly untilMs: number
  readonly allowed: Allowed
  /** The host was joining the cluster then: `allowed` is the budget of joining nodes, and only they count. */
  readonly isJoining?: boolean
  /** Compartments of its policy other than that of the slot: each has a budget of its own. */
  readonly siblings?: readonly string[]
}

/** One time of a host out of service. */
export type Outing = {
  readonly host: string
  /** Of the slot that it has now, or had last; without one, as for a Skyhook without a policy, it counts everywhere. */
  compartment?: string | undefined
  readonly startOrder: Order
  endOrder: Order
  /** When it ended, where times are not exact: that may have been before the read. */
  endMs?: number
  /** Those that may have let it go out, oldest first; empty: it needed none. */
  readonly readings: readonly Reading[]
  /** It counts for joining nodes only. */
  readonly isJoining?: boolean
}

export type Excess = {
  readonly outing: Outing
  readonly reading: Reading
  readonly others: readonly string[]
}

/** The outing among `outings` that no reading of its own allowed beside `all`; undefined if they are as promised. */
export function findExcess(
  outings: readonly Outing[],
  exemptions: readonly Exemption[],
  all: readonly Outing[] = outings,
): Excess | undefined {
  for (const outing of outings) {
    let worst: Excess | undefined
    const isAllowed = outing.readings.some((reading) => {
      const others = othersOut(outing, reading, all, exemptions)
      if (reading.allowed === 'unlimited') return true
      if (reading.allowed !== 'unknown' && others.length < reading.allowed) return true
      worst = { outing, reading, others }
      return false
    })
    if (!isAllowed && worst !== undefined) return worst
  }
  return undefined
}

/** Hosts that were out at the reading, or went out later on an earlier one. */
function othersOut(
  { host }: Outing,
  { order, untilMs, listOrder, isJoining = false, siblings = [] }: Reading,
  outings: readonly Outing[],
  exemptions: readonly Exemption[],
): readonly string[] {
  const others = new Set<string>()
  for (const other of outings) {
    if (other.host === host || other.endOrder <= order || (other.isJoining ?? false) !== isJoining) continue
    if (other.endOrder !== Infinity && (other.endMs ?? Infinity) <= untilMs) continue
    if (siblings.includes(other.compartment ?? '')) continue
    const admittedAt = other.startOrder <= order ? other.startOrder : (other.readings.at(-1)?.order ?? Infinity)
    if (admittedAt > order) continue
    const isExempt = exemptions.some(
      (one) => one.host === other.host && one.fromOrder <= order && listOrder < one.untilOrder,
    )
    if (!isExempt) others.add(other.host)
  }
  return [...others]
}
