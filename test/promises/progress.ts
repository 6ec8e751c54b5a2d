/**
 * No node stands still for a minute without a true reason while its agent runs and reaches the API server. Progress is
 * something that happens on the host, or a write of the Node that changes more than a time.
 */
import { statusKey } from '../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import type { Fact, Host } from './facts.ts'
import { hostOfClient, isSelected, marksOf, nodeOf, skyhooksOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Promised } from './promised.ts'
import { everyFewSeconds } from './look-interval.ts'
import { reasonOf, whyUntrue } from './reasons-true.ts'

const maxStandstillMs = 60_000

type Silence = { readonly sinceMs: number; readonly view: Host; readonly skyhook: Skyhook }

export const progress: Promised = {
  name: 'progress',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    const progressAtMs = new Map<string, number>()
    /** By host and Skyhook: since when it has had no true reason. */
    const silentSinceMs = new Map<string, Silence>()
    const isTime = everyFewSeconds()
    let checks = 0

    function progressIn(event: Fact): string | undefined {
      if (event.kind === 'host') {
        const { event: what } = event.event
        return what === 'effect' || what === 'agentStarted' || what === 'agentEnded' ? undefined : event.host
      }
      if (event.kind !== 'commit' || event.change.resource.plural !== 'nodes') return undefined
      const host = hostOfClient(event.client, 'agent')
      if (host === undefined) return undefined
      const { version, previous } = event.change
      return substanceOf(version.object) === substanceOf(previous?.object) ? undefined : host
    }

    function problemOf(view: Host, node: KubernetesNode, skyhook: Skyhook): string | undefined {
      const { name } = skyhook.metadata
      const isMarked = marksOf(node).includes(name)
      const status = node.metadata.annotations?.[statusKey(name)]
      const unfinished = evidence.work.unfinished(view.name, skyhook)
      if (!isMarked && status === 'complete' && unfinished.length === 0) return undefined
      checks++
      const reason = reasonOf(node, name)
      const state = `${view.name} is ${status ?? 'silent'} for ${name}`
      if (reason === undefined) return `${state} and says no reason`
      const why = whyUntrue(world, view, skyhook, reason)
      return why === undefined ? undefined : `${state} and says ${reason.reason} (${reason.message}), but ${why}`
    }

    return {
      on(event, atMs) {
        evidence.see(event)
        // between two looks all slots may be held for a moment
        if (event.kind === 'commit' && event.change.resource.plural === 'leases' && event.change.type === 'ADDED')
          for (const [key, { view, skyhook }] of silentSinceMs) {
            const node = nodeOf(world, view)
            if (node === undefined || problemOf(view, node, skyhook) === undefined) silentSinceMs.delete(key)
          }
        const host = progressIn(event)
        if (host !== undefined) progressAtMs.set(host, atMs)
      },
      tick(atMs) {
        evidence.tick(atMs)
        if (!isTime(atMs)) return
        for (const view of world.hosts.values()) {
          const healthySinceMs = evidence.health.sinceMs(view.name)
          const sinceMs = Math.max(healthySinceMs ?? Infinity, progressAtMs.get(view.name) ?? 0)
          if (atMs - sinceMs < 0) continue
          const node = nodeOf(world, view)
          for (const skyhook of skyhooksOf(world)) {
            const key = `${view.name} ${skyhook.metadata.name}`
            const isWanted = isSelected(skyhook, node) && skyhook.metadata.deletionTimestamp === undefined
            const problem = node !== undefined && isWanted ? problemOf(view, node, skyhook) : undefined
            if (problem === undefined) {
              silentSinceMs.delete(key)
              continue
            }
            const { sinceMs: silentMs } = silentSinceMs.get(key) ?? { sinceMs: atMs }
            silentSinceMs.set(key, { sinceMs: silentMs, view, skyhook })
            if (atMs - Math.max(silentMs, sinceMs) > maxStandstillMs)
              violate(`${problem}; nothing has happened there for ${maxStandstillMs} ms`)
          }
        }
      },
      checks: () => checks,
    }
  },
}

/** Without what a write always changes: versions, times, counters of the companion. */
function substanceOf(object: object | undefined): string {
  if (object === undefined) return ''
  let substance = substances.get(object)
  if (substance === undefined) {
    const text = JSON.stringify(object, (key, value: unknown) => (changing.has(key) ? undefined : value))
    substance = text.replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z|\\"rev\\":\d+/g, '')
    substances.set(object, substance)
  }
  return substance
}

const changing = new Set(['resourceVersion', 'lastHeartbeatTime', 'lastTransitionTime', 'managedFields'])
const substances = new WeakMap<object, string>()
