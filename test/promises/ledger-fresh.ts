/** While a census lives and reaches the API server for two minutes, what it has published is what the Nodes are. */
import { selectorHash } from '../../src/lease/ledger.ts'
import { isSelected, lacksPolicy, ledgerOf, skyhooksOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Promised } from './promised.ts'
import { everyFewSeconds } from './look-interval.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'

/** Increases are published after 30 s. */
const maxStaleMs = 120_000

export const ledgerFresh: Promised = {
  name: 'ledger-fresh',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** By host: censuses that live, and since when one has counted without a break. */
    const living = new Map<string, Set<number>>()
    const countingSinceMs = new Map<string, number>()
    const staleSinceMs = new Map<string, number>()
    const countedLast = new Map<string, number>()
    const isTime = everyFewSeconds()
    let checks = 0

    const longestSinceMs = (atMs: number): number => {
      for (const host of world.hosts.keys()) {
        const isCounting = (living.get(host)?.size ?? 0) > 0 && evidence.health.sinceMs(host) !== undefined
        if (!isCounting) countingSinceMs.delete(host)
        else if (!countingSinceMs.has(host)) countingSinceMs.set(host, atMs)
      }
      return Math.min(Infinity, ...countingSinceMs.values())
    }

    return {
      on(event, atMs) {
        evidence.see(event)
        if (event.kind === 'restored') staleSinceMs.clear()
        if (event.kind !== 'host') return
        const { host, event: what } = event
        if ((what.event !== 'agentStarted' && what.event !== 'agentEnded') || what.kind !== 'census') return
        const ids = living.get(host) ?? new Set<number>()
        living.set(host, ids)
        if (what.event === 'agentStarted') ids.add(what.process)
        else ids.delete(what.process)
        if (ids.size === 0) countingSinceMs.delete(host)
        else if (what.event === 'agentStarted') countingSinceMs.set(host, atMs)
      },
      tick(atMs) {
        evidence.tick(atMs)
        if (!isTime(atMs)) return
        const sinceMs = longestSinceMs(atMs)
        const nodes = world.server.objects('nodes') as unknown as readonly KubernetesNode[]
        for (const skyhook of skyhooksOf(world)) {
          const { name, deletionTimestamp } = skyhook.metadata
          const matched = nodes.filter((node) => isSelected(skyhook, node)).length
          const ledger = ledgerOf(world.server, skyhook)
          const isFresh =
            ledger?.matched === matched && ledger.selectorHash === selectorHash(skyhook.spec.nodeSelectors)
          const isMoving = countedLast.get(name) !== matched
          countedLast.set(name, matched)
          const isExpected = deletionTimestamp === undefined && !lacksPolicy(world, skyhook)
          if (isFresh || isMoving || !isExpected || sinceMs === Infinity) {
            staleSinceMs.delete(name)
            checks++
            continue
          }
          const staleMs = staleSinceMs.get(name) ?? atMs
          staleSinceMs.set(name, staleMs)
          if (atMs - Math.max(staleMs, sinceMs) > maxStaleMs)
            violate(`the ledger of ${name} says ${ledger?.matched ?? 'nothing'}, and ${matched} Nodes match`)
        }
      },
      checks: () => checks,
    }
  },
}
