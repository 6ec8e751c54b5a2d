/**
 * An agent takes the runtime-required taint off its Node only when each Skyhook that asks for it and selects the Node
 * is finished on the host.
 */
import { nodeStateKey } from '../../src/schemas/annotations.ts'
import { isEqual } from '../../src/schemas/json.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import { hasRequiredTaint } from '../../src/stages/drain/node-spec.ts'
import { requiredTaint } from '../kit/fleet/fleet-host.ts'
import type { Fact } from './facts.ts'
import { hostOfClient, isSelected, skyhooksOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Promised } from './promised.ts'

/** An agent that nothing hinders knows of an edit after this; from others nothing is expected while it is fresh. */
const [newsMs, hinderedNewsMs] = [10_000, 120_000]

export const joining: Promised = {
  name: 'joining',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** By name of the Skyhook, and of the host: when there was something that its agent may not know yet. */
    const newsAtMs = new Map<string, number>()
    let checks = 0

    const isNews = (host: string, skyhook: string, atMs: number): boolean => {
      const sinceMs = Math.max(newsAtMs.get(skyhook) ?? -Infinity, newsAtMs.get(host) ?? -Infinity)
      const healthySinceMs = evidence.health.sinceMs(host) ?? Infinity
      return atMs - sinceMs < hinderedNewsMs && atMs - Math.max(sinceMs, healthySinceMs) < newsMs
    }

    function seeNode({ change, client }: Extract<Fact, { kind: 'commit' }>, atMs: number): void {
      const before = change.previous?.object as KubernetesNode | undefined
      const node = change.version.object as KubernetesNode
      const view = evidence.hostNamed(node.metadata.name)
      if (view === undefined || change.type !== 'MODIFIED') return
      const isEdited = world.plan.skyhooks.some(({ name }) => {
        const key = nodeStateKey(name)
        return client === 'admin' && node.metadata.annotations?.[key] !== before?.metadata.annotations?.[key]
      })
      const isRelabeled = !isEqual(node.metadata.labels, before?.metadata.labels)
      if (isEdited || (isRelabeled && !client.startsWith('agent:'))) newsAtMs.set(view.name, atMs)
      const isLifted =
        before !== undefined && hasRequiredTaint(before, requiredTaint) && !hasRequiredTaint(node, requiredTaint)
      if (!isLifted || hostOfClient(client, 'agent') !== view.name) return
      for (const skyhook of skyhooksOf(world)) {
        const { name, deletionTimestamp } = skyhook.metadata
        const isAsked = skyhook.spec.runtimeRequired === true && deletionTimestamp === undefined
        if (!isAsked || !isSelected(skyhook, node) || isNews(view.name, name, atMs)) continue
        checks++
        const unfinished = evidence.work.unfinished(view.name, skyhook)
        if (unfinished.length > 0)
          violate(`${view.name} lifts its taint and has not finished ${unfinished.join(', ')} of ${name}`)
      }
    }

    return {
      on(event, atMs) {
        evidence.see(event)
        if (event.kind === 'restored') for (const host of world.hosts.keys()) newsAtMs.set(host, atMs)
        else if (event.kind === 'host' && event.event.event === 'wiped') newsAtMs.set(event.host, atMs)
        if (event.kind !== 'commit') return
        const { resource, version, previous } = event.change
        if (resource.plural === 'nodes') seeNode(event, atMs)
        else if (resource.plural === 'skyhooks') {
          const { name, generation } = version.object.metadata
          if (generation !== previous?.object.metadata.generation) newsAtMs.set(name, atMs)
        }
      },
      tick: (atMs) => evidence.tick(atMs),
      checks: () => checks,
    }
  },
}
