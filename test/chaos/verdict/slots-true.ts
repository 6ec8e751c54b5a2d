/** Slots say which nodes are out: one that is out has a slot again within a minute, one that is not gives it back. */
import { readSlot } from '../../../src/lease/slot.ts'
import type { Moment } from '../../e2e/moments.ts'
import { publishedState } from '../../e2e/skyhooks.ts'
import { disturbancesOf } from './disturbances.ts'
import type { Evidence, Finding, Violation } from './evidence.ts'
import { outagesOf, type Outage } from './outages.ts'

const maxDelayMs = 60_000

export function judgeSlotsTrue(evidence: Evidence): Finding {
  const violations: Violation[] = []
  const outages = outagesOf(evidence)
  for (const skyhook of evidence.skyhooks)
    for (const node of evidence.steps.keys()) {
      const own = outages.filter((outage) => outage.node === node && outage.skyhook === skyhook)
      violations.push(...lastingLies(evidence, node, skyhook, own))
    }
  return { checked: outages.length, violations }
}

function lastingLies(evidence: Evidence, node: string, skyhook: string, outages: readonly Outage[]): Violation[] {
  const violations: Violation[] = []
  const disturbances = disturbancesOf(evidence, node)
  let lie = ''
  let sinceMs = 0
  let isReported = false
  for (const moment of evidence.moments) {
    const { atMs } = moment.change
    const now = lieOf(moment, node, skyhook, outages)
    if (now !== lie) {
      lie = now
      sinceMs = atMs
      isReported = false
    }
    const quietSinceMs = Math.max(sinceMs, disturbances.findLast((each) => each <= atMs) ?? 0)
    if (lie === '' || isReported || atMs - quietSinceMs < maxDelayMs) continue
    isReported = true
    violations.push({ atMs, text: `${node} ${lie} for ${skyhook} since ${new Date(sinceMs).toISOString()}` })
  }
  return violations
}

/** Empty: slots and node agree, or nobody can tell. */
function lieOf({ change, leases, nodes }: Moment, node: string, skyhook: string, outages: readonly Outage[]): string {
  const found = nodes.get(node)
  if (!found) return ''
  const hasSlot = [...leases.values()].some(
    (lease) =>
      readSlot(lease)?.nodeUid === found.metadata.uid && lease.metadata.labels?.['skyhook.nvidia.com/name'] === skyhook,
  )
  const isOut = outages.some(({ startedMs, endedMs }) => startedMs <= change.atMs && change.atMs < endedMs)
  if (isOut && !hasSlot) return 'is out without a slot'
  const isComplete = publishedState(found, skyhook).status === 'complete'
  return !isOut && hasSlot && isComplete ? 'is complete and keeps a slot' : ''
}
