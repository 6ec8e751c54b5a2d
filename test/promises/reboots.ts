/** A host whose agent asks for a reboot holds a slot. */
import { nodeOf, slotsOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import { followExemptions } from './exemptions.ts'
import type { Promised } from './promised.ts'

export const reboots: Promised = {
  name: 'reboots',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    const exemptions = followExemptions(world, evidence, () => true)
    let checks = 0
    return {
      on(fact) {
        evidence.see(fact)
        exemptions.see(fact)
        if (fact.kind !== 'host' || fact.event.event !== 'rebootRequested' || fact.event.answer === 'refused') return
        const view = world.hosts.get(fact.host)
        const uid = view && nodeOf(world, view)?.metadata.uid
        const isExempt = exemptions.all.some(({ host, untilOrder }) => host === fact.host && untilOrder === Infinity)
        if (uid === undefined || isExempt) return
        checks++
        if (!slotsOf(world).some(({ nodeUid }) => nodeUid === uid)) violate(`${fact.host} reboots without a slot`)
      },
      tick(atMs) {
        evidence.tick(atMs)
        exemptions.tick()
      },
      checks: () => checks,
    }
  },
}
