/**
 * No node is admitted while as many nodes are out as the budget allows. The budget is the one that was committed when
 * the admitted node's agent last read the Skyhook.
 */
import { readSlot, type Lease } from '../../../src/lease/slot.ts'
import type { Skyhook } from '../../../src/schemas/skyhook.ts'
import { limitOf } from '../../../src/lease/budget/budget.ts'
import type { Evidence, Finding, Violation } from './evidence.ts'
import { outagesOf, type Outage } from './outages.ts'
import { readBudget } from '../../../src/schemas/budget.ts'

/** A watch event arrives later than its change; what was in force this long before or after counts in favor. */
const toleranceMs = 1_000

const nameLabel = 'skyhook.nvidia.com/name'

export function judgeBudget(evidence: Evidence): Finding {
  const violations: Violation[] = []
  let checked = 0
  const outages = outagesOf(evidence)
  for (const outage of outages) {
    const { admission, node, skyhook, startedMs } = outage
    if (!admission) continue
    checked++
    const limit = limitAt(evidence, skyhook, admission.receivedMs, admission.answeredMs)
    const admittedMs = Math.max(admission.answeredMs, lastListMs(evidence, outage))
    const grantedMs = slotsListedMs(evidence, outage) ?? admittedMs
    const others = outages.filter(
      (other) =>
        other.skyhook === skyhook &&
        other.node !== node &&
        (other.admission?.receivedMs ?? other.startedMs) < admission.receivedMs &&
        other.endedMs > admittedMs + toleranceMs &&
        !isExempt(evidence, other, grantedMs),
    )
    if (others.length < limit) continue
    const names = others.map((other) => `${other.node} (out since ${new Date(other.startedMs).toISOString()})`)
    violations.push({
      atMs: startedMs,
      text: `${node} was admitted for ${skyhook} with a budget of ${limit} while ${names.join(', ')} were out`,
    })
  }
  return { checked, violations }
}

/** The largest limit that was in force around this time: which of two versions a read saw is not recorded. */
function limitAt({ moments }: Evidence, name: string, fromMs: number, toMs: number): number {
  let limit = -1
  let before = -1
  for (const { change, skyhooks, leases } of moments) {
    const isNear = change.atMs >= fromMs - toleranceMs && change.atMs <= toMs + toleranceMs
    if (change.atMs > toMs + toleranceMs) break
    const isRelevant = change.kind === 'skyhooks' || (change.kind === 'leases' && !readSlot(change.object))
    if (!isRelevant && limit >= 0) continue
    const skyhook = skyhooks.get(name)
    const now = skyhook ? numberOf(skyhook, [...leases.values()]) : -1
    if (isNear) limit = Math.max(limit, now)
    else before = now
  }
  return Math.max(limit, before)
}

function numberOf(skyhook: Skyhook, ledgers: readonly Lease[]): number {
  const limit = limitOf({ ...skyhook, budget: readBudget(skyhook.spec.interruptionBudget), stale: false }, ledgers)
  if (limit === 'unlimited') return Infinity
  return typeof limit === 'number' ? limit : 0
}

/** When the agent last saw who holds slots before it began. */
function lastListMs({ audit }: Evidence, { node, admission, startedMs }: Outage): number {
  return audit.reduce(
    (latest, request) =>
      request.node === node &&
      request.verb === 'list' &&
      request.resource === 'leases' &&
      request.receivedMs >= (admission?.receivedMs ?? 0) &&
      request.answeredMs <= startedMs
        ? Math.max(latest, request.answeredMs)
        : latest,
    0,
  )
}

/** When the agent last saw all slots of the Skyhook before it began: its own slot comes from that. */
function slotsListedMs({ audit }: Evidence, { node, skyhook, startedMs }: Outage): number | undefined {
  return audit.findLast(
    (request) =>
      request.node === node &&
      request.verb === 'list' &&
      request.resource === 'leases' &&
      new URL(request.uri, 'https://kubernetes').searchParams.get('labelSelector') === `${nameLabel}=${skyhook}` &&
      request.answeredMs <= startedMs,
  )?.answeredMs
}

/**
 * Somebody deleted its slot or its Node, and it had written no slot since when the other one listed the slots: nobody
 * could see that it was out.
 */
function isExempt({ deletions, moments }: Evidence, other: Outage, atMs: number): boolean {
  return deletions.some((deletion) => {
    if (deletion.node !== other.node || deletion.atMs > atMs + toleranceMs) return false
    if (deletion.atMs < other.startedMs - toleranceMs) return false
    const again = moments.find(
      ({ change }) =>
        change.kind === 'leases' &&
        change.type === 'ADDED' &&
        change.atMs > deletion.atMs &&
        change.object.spec?.holderIdentity === other.node &&
        change.object.metadata.labels?.[nameLabel] === other.skyhook,
    )
    return again === undefined || again.change.atMs > atMs - toleranceMs
  })
}
