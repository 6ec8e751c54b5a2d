/**
 * Each slot's Node exists, garbage collection's delay aside. Its agent knows the slot within five minutes of running
 * and reaching the API server: it writes into it, or gives it back.
 */
import { readSlot, type Lease, type Slot } from '../../src/lease/slot.ts'
import { hostOfClient, slotsOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import { slotKnownMs } from './exemptions.ts'
import type { Promised } from './promised.ts'
import { everyFewSeconds } from './look-interval.ts'

/** The collector of the simulated cluster takes 2 s; it waits for an API server that is away. */
const maxGarbageMs = 30_000

export const slotsOwned: Promised = {
  name: 'slots-owned',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** By UID of the Lease: healthy time of its host when its agent last wrote it. */
    const writtenAtMs = new Map<string, number>()
    const garbageSinceMs = new Map<string, number>()
    const isTime = everyFewSeconds()
    let checks = 0

    const isRegistered = (slot: Slot): boolean =>
      world.server.object('nodes', undefined, slot.holder)?.metadata.uid === slot.nodeUid

    function lookAt(slot: Slot, atMs: number): void {
      checks++
      if (!isRegistered(slot)) {
        const sinceMs = garbageSinceMs.get(slot.uid) ?? atMs
        garbageSinceMs.set(slot.uid, sinceMs)
        if (atMs - sinceMs > maxGarbageMs) violate(`slot ${slot.name} is there for ${maxGarbageMs} ms without its Node`)
        return
      }
      garbageSinceMs.delete(slot.uid)
      const host = evidence.hostNamed(slot.holder)
      if (host?.nodeName() !== slot.holder) return // its host goes by another name: only a person deletes that Node
      const totalMs = evidence.health.totalMs(host.name)
      const writtenMs = writtenAtMs.get(slot.uid) ?? totalMs
      writtenAtMs.set(slot.uid, writtenMs)
      if (totalMs - writtenMs > slotKnownMs)
        violate(`slot ${slot.name} of ${host.name}: its agent has not written it for ${slotKnownMs} ms of running well`)
    }

    return {
      on(event) {
        evidence.see(event)
        if (event.kind === 'restored') {
          writtenAtMs.clear()
          garbageSinceMs.clear()
        }
        if (event.kind !== 'commit' || event.change.resource.plural !== 'leases') return
        const host = hostOfClient(event.client, 'agent')
        const slot = readSlot(event.change.version.object as unknown as Lease)
        if (host !== undefined && slot) writtenAtMs.set(slot.uid, evidence.health.totalMs(host))
      },
      tick(atMs) {
        evidence.tick(atMs)
        const isAway = world.server.isAway()
        if (isAway) garbageSinceMs.clear()
        if (isAway || !isTime(atMs)) return
        for (const slot of slotsOf(world)) lookAt(slot, atMs)
      },
      checks: () => checks,
    }
  },
}
