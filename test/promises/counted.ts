/**
 * While some agent could count, the Skyhooks that nodes work on are counted: by the ledger and the generation in the
 * status that are committed, whoever is elected and whatever runs there.
 */
import { selectorHash } from '../../src/lease/ledger.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import type { Host, World } from './facts.ts'
import { isSelected, lacksPolicy, ledgerOf, nodeOf, skyhooksOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Promised } from './promised.ts'
import { everyFewSeconds } from './look-interval.ts'

/** One who cannot count leads for a little more than a minute; another takes over, and an increase waits 30 s. */
const maxUncountedMs = 180_000

export const counted: Promised = {
  name: 'counted',
  watch(world, violate) {
    const { health, see, tick } = evidenceOf(world)
    /** By name of the Skyhook: since when nobody has counted what there is now. */
    const pending = new Map<string, { readonly what: string; readonly sinceMs: number }>()
    /** By host. */
    const ableSinceMs = new Map<string, number>()
    const isTime = everyFewSeconds()
    let checks = 0

    /** Since when the same agent could have counted. */
    const longestAbleMs = (atMs: number): number => {
      for (const view of world.hosts.values())
        if (!isAble(world, view, health.sinceMs(view.name))) ableSinceMs.delete(view.name)
        else if (!ableSinceMs.has(view.name)) ableSinceMs.set(view.name, atMs)
      return Math.min(Infinity, ...ableSinceMs.values())
    }

    return {
      on(event) {
        see(event)
        if (event.kind === 'restored') pending.clear()
      },
      tick(atMs) {
        tick(atMs)
        if (!isTime(atMs)) return
        const sinceMs = longestAbleMs(atMs)
        const nodes = world.server.objects('nodes') as unknown as readonly KubernetesNode[]
        for (const skyhook of skyhooksOf(world)) {
          const { name, deletionTimestamp, generation } = skyhook.metadata
          const matched = nodes.filter((node) => isSelected(skyhook, node)).length
          const missing = missingCount(world, skyhook, matched)
          if (missing === undefined || deletionTimestamp !== undefined || matched === 0) {
            pending.delete(name)
            checks++
            continue
          }
          const what = `${skyhook.metadata.uid} ${generation} ${matched}`
          const known = pending.get(name)
          const since = known?.what === what ? known : { what, sinceMs: atMs }
          pending.set(name, since)
          if (atMs - Math.max(since.sinceMs, sinceMs) > maxUncountedMs) violate(`nobody counts ${name}: ${missing}`)
        }
      },
      checks: () => checks,
    }
  },
}

/** Its agent works, and its Node is one of those that it counts. */
const isAble = (world: World, view: Host, healthySinceMs: number | undefined): boolean =>
  healthySinceMs !== undefined && !view.isHalted() && nodeOf(world, view) !== undefined

/** What a census would have written and has not; undefined where all is. */
function missingCount(world: World, skyhook: Skyhook, matched: number): string | undefined {
  const { generation } = skyhook.metadata
  const { observedGeneration } =
    (skyhook as { readonly status?: { readonly observedGeneration?: number } }).status ?? {}
  const missing = lacksPolicy(world, skyhook) ? undefined : missingLedger(world, skyhook, matched)
  if (missing !== undefined || observedGeneration === generation) return missing
  return `the status is of generation ${observedGeneration ?? 'none'}, and the spec of ${generation}`
}

function missingLedger({ server }: World, skyhook: Skyhook, matched: number): string | undefined {
  const ledger = ledgerOf(server, skyhook)
  if (ledger?.matched !== matched) return `the ledger says ${ledger?.matched ?? 'nothing'}, and ${matched} Nodes match`
  return ledger.selectorHash === selectorHash(skyhook.spec.nodeSelectors)
    ? undefined
    : 'the ledger is of another selector'
}
