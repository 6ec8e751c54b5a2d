/**
 * An agent gives no slot back while its host is between a first step and completion, nor while its Node carries the
 * cordon mark: uncordon comes before release. Twins of a slot, and slots of an earlier registration, may go.
 */
import { labelKeys } from '../../src/lease/names.ts'
import { readSlot, type Lease } from '../../src/lease/slot.ts'
import { hostOfClient, isOfScope, isSlotOf, marksOf, nodeOf, skyhookOf, slotsOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Promised } from './promised.ts'

export const slotsKept: Promised = {
  name: 'slots-kept',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    let checks = 0
    return {
      on(event) {
        evidence.see(event)
        if (event.kind !== 'commit' || event.change.type !== 'DELETED') return
        if (event.change.resource.plural !== 'leases') return
        const host = hostOfClient(event.client, 'agent')
        const slot = readSlot(event.change.version.object as unknown as Lease)
        const skyhook = slot?.lease.metadata.labels?.[labelKeys.name]
        const view = host === undefined ? undefined : world.hosts.get(host)
        if (view === undefined || slot === undefined || skyhook === undefined || !isSlotOf(slot, skyhook)) return
        const node = nodeOf(world, view)
        if (node === undefined || node.metadata.uid !== slot.nodeUid) return
        // the slot of a joining node goes when its work has one that counts
        const hasTwin = slotsOf(world).some(
          (one) =>
            one.holder === slot.holder &&
            (one.scope === slot.scope || (slot.kind === 'bootstrap' && isSlotOf(one, skyhook))),
        )
        if (hasTwin) return
        checks++
        if (marksOf(node).includes(skyhook) && !evidence.isBlind(view.name))
          return violate(`${view.name} gives back ${slot.name} while its Node carries the cordon mark of ${skyhook}`)
        const object = skyhookOf(world, skyhook)
        if (object === undefined || !isOfScope(slot, object)) return
        const open = evidence.disruption.openPackages(view.name, skyhook)
        if (open.length > 0)
          violate(`${view.name} gives back ${slot.name} while it is half changed: ${open.join(', ')}`)
      },
      checks: () => checks,
    }
  },
}
