/**
 * An agent that finds the journal of a newer one starts nothing on the host, leaves the Node's cordon alone, and says
 * why on the Node within half a minute.
 */
import { statusKey } from '../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { HostView } from '../kit/fleet/world-view.ts'
import type { Fact } from './facts.ts'
import { hostOfClient, isSelected, marksOf, nodeOf, skyhooksOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Invariant } from './promised.ts'
import { reasonOf } from './reasons-true.ts'

const maxSilenceMs = 30_000
/** What keeps the node out whatever its agent can do. */
const settings = ['Paused', 'Disabled', 'Ignored', 'WaitingForPriority', 'InvalidSpec']
/** Faults that answer no request, or late: one that was sent right before their end holds the agent up until its timeout. */
const silentFaults = ['network-cut', 'api-silent', 'api-slow']
const requestTimeoutMs = 30_000
/** What its predecessor had asked for. */
const underWayMs = 5_000

export const halts: Invariant = {
  name: 'halts',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    const haltedSinceMs = new Map<string, number>()
    /** Of that: since when nothing hinders the agent from saying so. */
    const freeSinceMs = new Map<string, number>()
    /** Of that: since when it has said nothing about some Skyhook. After an edit a reason takes a moment. */
    const silentSinceMs = new Map<string, number>()
    /** Until when the agent may wait for the answer to a request that was lost. */
    const heldUpUntilMs = new Map<string, number>()
    let checks = 0

    function seeLostRequests(event: Fact, atMs: number): void {
      if (event.kind === 'host' && event.event.event === 'agentStarted' && event.event.kind === 'agent')
        heldUpUntilMs.delete(event.host)
      if (event.kind !== 'action' || event.what !== 'ends' || !silentFaults.includes(event.action.kind)) return
      const { node, detail } = event.action
      for (const name of world.hosts.keys())
        if (node === name || detail?.['isEverywhere'] === true) heldUpUntilMs.set(name, atMs + requestTimeoutMs)
    }

    const isFree = (view: HostView, atMs: number): boolean =>
      view.host.power() === 'up' &&
      view.agents().length === 1 &&
      view.reachesApi() &&
      !view.isHindered() &&
      atMs >= (heldUpUntilMs.get(view.name) ?? 0)

    const isLong = (host: string, atMs: number): boolean => atMs - (haltedSinceMs.get(host) ?? Infinity) > underWayMs

    function effectIn(event: Fact): { readonly host: string; readonly what: string } | undefined {
      if (event.kind === 'host') {
        const { event: what } = event.event
        const isStart = what === 'stepStarted' || what === 'restartRequested' || what === 'rebootRequested'
        return isStart ? { host: event.host, what } : undefined
      }
      if (event.kind !== 'commit' || event.change.resource.plural !== 'nodes') return undefined
      const host = hostOfClient(event.client, 'agent')
      const [after, before] = [event.change.version.object, event.change.previous?.object] as KubernetesNode[]
      const isSame = after?.spec?.unschedulable === before?.spec?.unschedulable
      return host === undefined || isSame ? undefined : { host, what: 'changes the cordon of its Node' }
    }

    const silenceOf = (view: HostView): string | undefined => {
      const node = nodeOf(world, view)
      return skyhooksOf(world)
        .filter((skyhook) => isSelected(skyhook, node) && skyhook.metadata.deletionTimestamp === undefined)
        .map(({ metadata: { name } }) => name)
        .find((name) => {
          const isDone = node?.metadata.annotations?.[statusKey(name)] === 'complete' && !marksOf(node).includes(name)
          const { reason, message } = reasonOf(node, name) ?? { reason: '', message: '' }
          return !isDone && !message.includes('newer agent') && !settings.includes(reason)
        })
    }

    return {
      on(event, atMs) {
        evidence.see(event)
        seeLostRequests(event, atMs)
        if (event.kind === 'restored') freeSinceMs.clear()
        const effect = effectIn(event)
        if (effect !== undefined && isLong(effect.host, atMs) && world.hosts.get(effect.host)?.isHalted() === true)
          violate(`${effect.host} ${effect.what}, and its agent cannot read the journal of a newer one`)
      },
      tick(atMs) {
        evidence.tick(atMs)
        for (const view of world.hosts.values()) {
          const { name } = view
          if (!view.isHalted()) {
            haltedSinceMs.delete(name)
            freeSinceMs.delete(name)
            continue
          }
          if (!haltedSinceMs.has(name)) haltedSinceMs.set(name, atMs)
          if (!isFree(view, atMs)) {
            freeSinceMs.delete(name)
            continue
          }
          if (!freeSinceMs.has(name)) {
            freeSinceMs.set(name, atMs)
            silentSinceMs.delete(name)
          }
          const skyhook = silenceOf(view)
          if (skyhook === undefined) silentSinceMs.delete(name)
          else if (!silentSinceMs.has(name)) silentSinceMs.set(name, atMs)
          if (atMs - (freeSinceMs.get(name) ?? atMs) < maxSilenceMs) continue
          checks++
          if (atMs - (silentSinceMs.get(name) ?? atMs) >= maxSilenceMs)
            violate(`${name} does not say for ${skyhook} that a newer agent wrote its journal, for ${maxSilenceMs} ms`)
        }
      },
      checks: () => checks,
    }
  },
}
