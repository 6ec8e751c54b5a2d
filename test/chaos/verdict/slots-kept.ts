/** A node that is out keeps its slot: it gives it back only after the uncordon, and never in the middle of its work. */
import { readSlot } from '../../../src/lease/slot.ts'
import { cordonKey } from '../../../src/schemas/annotations.ts'
import type { Evidence, Finding, Violation } from './evidence.ts'
import { outagesOf } from './outages.ts'

/** Between the answer to a deletion and its watch event. */
const maxDelayMs = 3_000

export function judgeSlotsKept(evidence: Evidence): Finding {
  const violations: Violation[] = []
  let checked = 0
  const outages = outagesOf(evidence)
  for (const { change, leases, nodes } of evidence.moments) {
    if (change.kind !== 'leases' || change.type !== 'DELETED') continue
    const slot = readSlot(change.object)
    const skyhook = change.object.metadata.labels?.['skyhook.nvidia.com/name'] ?? ''
    if (!slot || skyhook === '' || !isOfItsAgent(evidence, slot.name, slot.holder, change.atMs)) continue
    checked++
    const hasAnother = [...leases.values()].some(
      (lease) =>
        lease.spec?.holderIdentity === slot.holder && lease.metadata.labels?.['skyhook.nvidia.com/name'] === skyhook,
    )
    const node = nodes.get(slot.holder)
    if (hasAnother || node?.metadata.uid !== slot.nodeUid) continue // a surplus one, or of an earlier registration
    const isMarked = node.metadata.annotations?.[cordonKey(skyhook)] === 'true'
    const outage = outages.find(
      (each) =>
        each.node === slot.holder &&
        each.skyhook === skyhook &&
        each.startedMs < change.atMs - maxDelayMs &&
        each.endVersion > change.resourceVersion &&
        each.endedMs > change.atMs,
    )
    if (!isMarked && !outage) continue
    const why = isMarked ? 'before the uncordon' : 'in the middle of its work'
    violations.push({ atMs: change.atMs, text: `${slot.holder} gave ${slot.name} back ${why} for ${skyhook}` })
  }
  return { checked, violations }
}

/** Not of a person, and not garbage collection. The names of slots come again, so the nearest request in time counts. */
function isOfItsAgent({ audit, deletions }: Evidence, lease: string, node: string, atMs: number): boolean {
  const requests = audit.filter(
    (request) =>
      request.verb === 'delete' &&
      request.resource === 'leases' &&
      request.name === lease &&
      request.node === node &&
      request.status === 200,
  )
  const byAgentMs = nearest(requests.map(({ answeredMs }) => answeredMs))
  const byHandMs = nearest(deletions.flatMap((each) => (each.node === node && each.what === 'slot' ? [each.atMs] : [])))
  return byAgentMs < maxDelayMs && byAgentMs < byHandMs

  function nearest(timesMs: readonly number[]): number {
    return Math.min(...timesMs.map((timeMs) => Math.abs(timeMs - atMs)))
  }
}
