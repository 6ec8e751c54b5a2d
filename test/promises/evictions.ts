/**
 * Agents end pods by eviction only, of cordoned Nodes only, and none that is protected, belongs to a DaemonSet or a
 * namespace that is never drained. No interrupt while a protected pod runs that the agent's last look could show.
 */
import { isEmptySelector, selects } from '../../src/schemas/selectors.ts'
import type { Fact, Host } from './facts.ts'
import { hostOfClient, marksOf, nodeOf, skyhookOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Promised } from './promised.ts'
import { interruptIn, isOutOfReach, type RunningPod, toleratesCordon } from './may-end.ts'

export const evictions: Promised = {
  name: 'evictions',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** By host: UIDs of the pods on its Node at its agent's last consistent LIST. */
    const lastLook = new Map<string, ReadonlySet<string>>()
    let checks = 0

    const podsOn = (view: Host): readonly RunningPod[] =>
      (world.server.objects('pods') as readonly RunningPod[]).filter(({ spec }) => spec?.nodeName === view.nodeName())

    /** For every Skyhook that has cordoned the Node: one that does not protect the pod may evict it. */
    const isProtected = (view: Host, pod: RunningPod): boolean => {
      const marks = marksOf(nodeOf(world, view))
      return marks.every((name) => {
        const selector = skyhookOf(world, name)?.spec.podNonInterruptLabels
        return !isEmptySelector(selector) && selects(selector, pod.metadata.labels ?? {})
      })
    }

    /** Every Skyhook that has cordoned the Node leaves those that tolerate the cordon. */
    const isToStay = (view: Host, pod: RunningPod): boolean =>
      (pod.spec?.tolerations ?? []).some(toleratesCordon) &&
      marksOf(nodeOf(world, view)).every((name) => skyhookOf(world, name)?.spec.drain?.tolerating === 'leave')

    function seePod(pod: RunningPod, before: RunningPod | undefined, host: string): void {
      const view = world.hosts.get(host)
      const isEnded = pod.metadata.deletionTimestamp !== undefined && before?.metadata.deletionTimestamp === undefined
      if (view === undefined || before === undefined || !isEnded) return
      checks++
      const name = `${pod.metadata.namespace}/${pod.metadata.name}`
      if (before.spec?.nodeName !== view.nodeName()) violate(`${host} evicts ${name} of another node`)
      else if (marksOf(nodeOf(world, view)).length === 0) {
        // a request that a fault held up may come after the uncordon
        if (!view.isFaulty() && !evidence.isBlind(host)) violate(`${host} evicts ${name} without a cordon`)
      } else if (isProtected(view, before)) violate(`${host} evicts the protected pod ${name}`)
      else if (isOutOfReach(before) || isToStay(view, before))
        violate(`${host} evicts ${name}, which no drain may touch`)
    }

    function seeInterrupt(view: Host, what: string): void {
      const seen = lastLook.get(view.name)
      if (marksOf(nodeOf(world, view)).length === 0 || seen === undefined) return
      checks++
      for (const pod of podsOn(view)) {
        const isRunning = pod.status?.phase !== 'Succeeded' && pod.status?.phase !== 'Failed'
        if (isRunning && seen.has(pod.metadata.uid) && isProtected(view, pod))
          violate(`${view.name} ${what} while the protected pod ${pod.metadata.name} runs`)
      }
    }

    function seeAnswer({ entry }: Extract<Fact, { kind: 'answered' }>): void {
      const view = world.hosts.get(hostOfClient(entry.client, 'agent') ?? '')
      if (view === undefined || entry.resource !== 'pods') return
      if (entry.verb === 'list' && entry.code === 200 && entry.query['resourceVersion'] === undefined)
        lastLook.set(view.name, new Set(podsOn(view).map(({ metadata }) => metadata.uid)))
      if (entry.verb === 'delete' && entry.isCommitted) {
        const isAsked = marksOf(nodeOf(world, view)).some(
          (name) => skyhookOf(world, name)?.spec.drain?.onTimeout === 'delete',
        )
        checks++
        if (!isAsked) violate(`${view.name} deletes the pod ${entry.name} instead of evicting it`)
      }
    }

    return {
      on(event) {
        evidence.see(event)
        if (event.kind === 'answered') seeAnswer(event)
        else if (event.kind === 'commit' && event.change.resource.plural === 'pods') {
          const { version, previous } = event.change
          const host = hostOfClient(event.client, 'agent')
          if (host !== undefined) seePod(version.object as RunningPod, previous?.object as RunningPod | undefined, host)
        } else if (event.kind === 'host') {
          const view = world.hosts.get(event.host)
          if (view === undefined) return
          const what = interruptIn(event.event)
          if (what !== undefined) seeInterrupt(view, what)
        }
      },
      checks: () => checks,
    }
  },
}
