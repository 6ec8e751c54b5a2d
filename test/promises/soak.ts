/**
 * A slot is kept for the time in `spec.pace` after the work, and a node is back in service before its soak begins. That
 * a host that soaks counts for others is part of the rule of the budget.
 */
import { labelKeys } from '../../src/lease/names.ts'
import { readSlot, type Lease } from '../../src/lease/slot.ts'
import { hostOfClient, isOfScope, isSlotOf, marksOf, nodeOf, skyhookOf, slotsOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Promised } from './promised.ts'

export const soak: Promised = {
  name: 'soak',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    let checks = 0
    return {
      on(event, atMs) {
        evidence.see(event)
        if (event.kind !== 'commit' || event.change.resource.plural !== 'leases') return
        const host = hostOfClient(event.client, 'agent')
        const slot = readSlot(event.change.version.object as unknown as Lease)
        const name = slot?.lease.metadata.labels?.[labelKeys.name]
        const view = host === undefined ? undefined : world.hosts.get(host)
        if (view === undefined || slot === undefined || name === undefined || !isSlotOf(slot, name)) return
        const skyhook = skyhookOf(world, name)
        const node = nodeOf(world, view)
        if (skyhook === undefined || node?.metadata.uid !== slot.nodeUid || !isOfScope(slot, skyhook)) return
        if (event.change.type === 'DELETED') {
          const untilMs = evidence.soaks.untilMs(view.name, name)
          const hasTwin = slotsOf(world).some(({ holder, scope }) => holder === slot.holder && scope === slot.scope)
          if (untilMs === undefined || hasTwin || slot.kind === 'bootstrap') return
          checks++
          const earlyMs = Math.round(untilMs - atMs)
          if (earlyMs > 0)
            violate(`${view.name} gives back ${slot.name} ${earlyMs} ms before it has soaked for ${name}`)
        } else if (slot.phase === 'soaking' && !evidence.isBlind(view.name)) {
          checks++
          if (marksOf(node).includes(name))
            violate(`${view.name} soaks for ${name} while its Node carries the cordon mark`)
        }
      },
      checks: () => checks,
    }
  },
}
