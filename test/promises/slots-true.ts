/**
 * Slots say which nodes are out: within a minute of running well, a host that is out has a slot, and one whose work is
 * finished has none.
 */
import { isSlotOf, nodeOf, skyhooksOf, slotsOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Host } from './facts.ts'
import { everyFewSeconds } from './look-interval.ts'
import type { Promised } from './promised.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'

const maxLieMs = 60_000

export const slotsTrue: Promised = {
  name: 'slots-true',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** By host and Skyhook: what is not so, and since when, in healthy time of the host. */
    const lies = new Map<string, { readonly lie: string; readonly sinceMs: number }>()
    const isTime = everyFewSeconds()
    let checks = 0

    function lieOf(view: Host, skyhook: Skyhook): string | undefined {
      const { name } = skyhook.metadata
      const node = nodeOf(world, view)
      if (node === undefined || view.isHalted()) return undefined
      const hasSlot = slotsOf(world).some((slot) => slot.nodeUid === node.metadata.uid && isSlotOf(slot, name))
      const isOut = evidence.disruption.isOut(view.name, name)
      if (isOut || hasSlot) checks++
      if (isOut) return hasSlot ? undefined : 'is out without a slot'
      // the slot of a rollout by policy stays until its batch is over
      const isKept = skyhook.spec.deploymentPolicy || evidence.soaks.untilMs(view.name, name) !== undefined
      const isFinished = evidence.work.unfinished(view.name, skyhook).length === 0
      return hasSlot && isFinished && !isKept ? 'is finished and keeps a slot' : undefined
    }

    return {
      on: (fact) => evidence.see(fact),
      tick(atMs) {
        evidence.tick(atMs)
        if (!isTime(atMs)) return
        for (const view of world.hosts.values())
          for (const skyhook of skyhooksOf(world)) {
            const key = `${view.name} ${skyhook.metadata.uid}`
            const lie = lieOf(view, skyhook)
            const healthyMs = evidence.health.totalMs(view.name)
            const known = lies.get(key)
            if (lie === undefined) lies.delete(key)
            else if (known?.lie !== lie) lies.set(key, { lie, sinceMs: healthyMs })
            else if (healthyMs - known.sinceMs > maxLieMs)
              violate(`${view.name} ${lie} for ${skyhook.metadata.name}, for ${maxLieMs} ms of running well`)
          }
      },
      checks: () => checks,
    }
  },
}
