/**
 * Of the Nodes that carry a label of the control plane, at most one is being cordoned, drained or interrupted, by
 * whichever Skyhook. One that went down meanwhile is out until its static pods run again. One that gets the label
 * meanwhile breaks nothing, and counts once its agent holds the slot: for those that are admitted by a LIST from after
 * that.
 */
import { hostOfClient, isControlPlane, isOfControlPlane, marksOf, nodeOf, slotsOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import { followExemptions } from './exemptions.ts'
import type { Invariant } from './promised.ts'
import { readSlot, type Lease } from '../../src/lease/slot.ts'

export const controlPlane: Invariant = {
  name: 'control-plane',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    const exemptions = followExemptions(world, evidence, isOfControlPlane)
    /**
     * Labeled Nodes with a cordon mark, and from when they count, in the order of events: from the start if the label
     * was there before the mark, else from their slot.
     */
    const disturbed = new Map<string, { countsFromOrder: number }>()
    /** Went down while they were out, and do not run their static pods again: members of etcd that are missing. */
    const missing = new Set<string>()
    /** Of hosts that were disturbed: the slot is still theirs. */
    const keepsSlot = new Set<string>()
    let checks = 0

    /** By host: the LIST of slots that it was admitted by; who had no slot then through a person's hand is not in it. */
    const admittedBy = new Map<string, number>()
    const lastList = new Map<string, number>()

    /** One that got the label later runs none. */
    const hasStaticPods = (host: string): boolean => world.hosts.get(host)?.isControlPlane === true

    const isExempt = (host: string, afterOrder = Infinity): boolean =>
      exemptions.all.some((one) => one.host === host && one.untilOrder >= afterOrder)

    const holdsSlot = (host: string): boolean =>
      slotsOf(world).some((slot) => isOfControlPlane(slot) && slot.holder === world.hosts.get(host)?.nodeName())

    function look(host: string): void {
      const view = world.hosts.get(host)
      const node = view && nodeOf(world, view)
      const isDisturbed = isControlPlane(node) && (marksOf(node).length > 0 || missing.has(host))
      if (isDisturbed === disturbed.has(host)) return
      if (!isDisturbed) {
        disturbed.delete(host)
        if (!holdsSlot(host)) keepsSlot.delete(host)
        return
      }
      disturbed.set(host, { countsFromOrder: 0 })
      checks++
      if (isExempt(host) || keepsSlot.has(host)) return
      keepsSlot.add(host)
      const others = [...disturbed].filter(
        ([other, { countsFromOrder }]) =>
          other !== host &&
          countsFromOrder < (admittedBy.get(host) ?? Infinity) &&
          !isExempt(other, admittedBy.get(host)),
      )
      if (others.length > 0)
        violate(`control-plane node ${host} is cordoned while ${others.map(([name]) => name).join(', ')} is`)
    }

    return {
      on(event) {
        evidence.see(event)
        const writer = event.kind === 'commit' ? hostOfClient(event.client, 'agent') : undefined
        const wasExempt = writer !== undefined && isExempt(writer) // the slot that it writes now ends that
        exemptions.see(event)
        if (event.kind === 'restored') for (const host of world.hosts.keys()) look(host)
        if (event.kind === 'answered' && event.entry.verb === 'list' && event.entry.resource === 'leases')
          lastList.set(hostOfClient(event.entry.client, 'agent') ?? '', evidence.order())
        if (
          event.kind === 'host' &&
          event.event.event === 'wentDown' &&
          hasStaticPods(event.host) &&
          disturbed.has(event.host)
        )
          missing.add(event.host)
        // with its disk, a host loses its member of etcd for good
        if (event.kind === 'host' && event.event.event === 'wiped') missing.delete(event.host)
        if (event.kind === 'host' && event.event.event === 'staticPodsRun' && missing.delete(event.host))
          look(event.host)
        if (event.kind !== 'commit') return
        const { resource, version, previous, type } = event.change
        if (resource.plural === 'nodes') {
          const view = evidence.hostNamed(version.object.metadata.name)
          if (view === undefined) return
          const before = previous?.object as Parameters<typeof isControlPlane>[0]
          const gotLabel = type === 'MODIFIED' && !isControlPlane(before) && marksOf(before).length > 0
          if (gotLabel && isControlPlane(nodeOf(world, view))) disturbed.set(view.name, { countsFromOrder: Infinity })
          look(view.name)
        } else if (resource.plural === 'leases') {
          const slot = readSlot(version.object as unknown as Lease)
          const host = writer
          if (slot === undefined || !isOfControlPlane(slot) || host === undefined) return
          if (type === 'DELETED' && !holdsSlot(host)) keepsSlot.delete(host)
          const entry = disturbed.get(host)
          if (type === 'ADDED' && slot.kind === 'recovery' && wasExempt) keepsSlot.add(host) // goes on
          if (type === 'ADDED') admittedBy.set(host, lastList.get(host) ?? evidence.order())
          if (type !== 'DELETED' && entry) entry.countsFromOrder = Math.min(entry.countsFromOrder, evidence.order())
        }
      },
      tick(atMs) {
        evidence.tick(atMs)
        exemptions.tick()
      },
      checks: () => checks,
    }
  },
}
