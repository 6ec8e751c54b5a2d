/**
 * No interrupt that drains happens beside a running pod, except pods of DaemonSets, static ones, those of namespaces
 * that are never drained, and those that the spec lets die. Every pod that runs on the Node in that moment counts; what
 * the drain says of it does not.
 */
import type { Skyhook, SkyhookSpec } from '../../src/schemas/skyhook.ts'
import type { Fact, Host } from './facts.ts'
import { hostOfClient, isSelected, marksOf, nodeOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Promised } from './promised.ts'
import { interruptIn, isRunningOn, mayEnd, ownerKey, type RunningPod } from './may-end.ts'

/** An edit or a Node that joins reaches the agent within this time, unless a fault is in the way. */
const newsMs = 5_000
/** A request that was sent under a fault may be answered this long after it. */
const requestTimeoutMs = 30_000
/** Under a fault, or right after it: the number of Nodes is asked for before other requests that may take as long. */
const slowNewsMs = 60_000

export const endedPods: Promised = {
  name: 'ended-pods',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** By host: UIDs of the pods on its Node at its agent's last consistent LIST. */
    const lastLook = new Map<string, ReadonlySet<string>>()
    /** By host: owners of the pods that its agent evicted. */
    const evicted = new Map<string, Map<string, number>>()
    /** By name: specs that were in force, and until when. */
    const formerSpecs = new Map<string, { readonly spec: SkyhookSpec; readonly untilMs: number }[]>()
    /** By UID of the pods there are; one that an older copy of etcd brings back comes then. */
    const createdAtMs = new Map<string, number>()
    /** The cluster had one Node until then. */
    let wasSingleUntilMs = -Infinity
    let checks = 0

    const nowMs = (): number => world.clock.monotonicMs()
    const podsOn = (view: Host): readonly RunningPod[] =>
      (world.server.objects('pods') as readonly RunningPod[]).filter((pod) => isRunningOn(pod, view.nodeName()))

    /** Of the Skyhooks that may be interrupting the Node, as they are and as they were when the agent last heard. */
    function specsFor(view: Host): readonly SkyhookSpec[] {
      const node = nodeOf(world, view)
      const skyhooks = world.server.objects('skyhooks') as unknown as readonly Skyhook[]
      const marks = marksOf(node)
      const isAtWork = ({ metadata, spec }: Skyhook): boolean =>
        marks.length > 0 ? marks.includes(metadata.name) : isSelected({ metadata, spec } as Skyhook, node)
      const sinceMs = nowMs() - newsMs
      const names = new Set([...skyhooks.filter(isAtWork).map(({ metadata }) => metadata.name), ...marks])
      const current = skyhooks.filter(({ metadata }) => names.has(metadata.name)).map(({ spec }) => spec)
      const former = [...names].flatMap((name) =>
        (formerSpecs.get(name) ?? []).filter(({ untilMs }) => view.isFaulty() || untilMs >= sinceMs),
      )
      return [...current, ...former.map(({ spec }) => spec)]
    }

    function seeInterrupt(view: Host, what: string): void {
      if (evidence.isBlind(view.name) || nodeOf(world, view) === undefined) return
      checks++
      const specs = specsFor(view)
      const healthyForMs = nowMs() - (evidence.health.sinceMs(view.name) ?? Infinity)
      const countMs = healthyForMs >= requestTimeoutMs ? newsMs : slowNewsMs
      const isOnlyNode = world.server.objects('nodes').length <= 1 || nowMs() - wasSingleUntilMs < countMs
      const seen = lastLook.get(view.name)
      for (const pod of podsOn(view)) {
        const { uid, name } = pod.metadata
        if (seen !== undefined && !seen.has(uid)) continue // it came when the agent had looked
        const cameBack = (createdAtMs.get(uid) ?? 0) >= (evicted.get(view.name)?.get(ownerKey(pod)) ?? Infinity)
        if (specs.some((spec) => mayEnd(pod, spec, { isOnlyNode, cameBack }))) continue
        violate(`${view.name} ${what} beside the running pod ${pod.metadata.namespace}/${name}`)
      }
    }

    function seeCommit({ change, client }: Extract<Fact, { kind: 'commit' }>): void {
      const { type, resource, version, previous } = change
      const object = version.object as RunningPod
      if (resource.plural === 'nodes' && world.server.objects('nodes').length <= 2) wasSingleUntilMs = nowMs()
      if (resource.plural === 'skyhooks' && previous !== undefined) {
        const { name } = object.metadata
        const former = { spec: previous.object['spec'] as SkyhookSpec, untilMs: nowMs() }
        formerSpecs.set(name, [...(formerSpecs.get(name) ?? []), former].slice(-20))
      }
      if (resource.plural !== 'pods') return
      if (type === 'ADDED') createdAtMs.set(object.metadata.uid, nowMs())
      if (type === 'DELETED') createdAtMs.delete(object.metadata.uid)
      const host = hostOfClient(client, 'agent')
      if (host === undefined || object.metadata.deletionTimestamp === undefined) return
      const owners = evicted.get(host) ?? new Map<string, number>()
      owners.set(ownerKey(object), nowMs())
      evicted.set(host, owners)
    }

    return {
      on(event) {
        evidence.see(event)
        if (event.kind === 'commit') seeCommit(event)
        else if (event.kind === 'restored')
          for (const { metadata } of world.server.objects('pods'))
            createdAtMs.set(metadata.uid, createdAtMs.get(metadata.uid) ?? nowMs())
        else if (event.kind === 'answered') {
          const { client, resource, verb, code, query } = event.entry
          const view = world.hosts.get(hostOfClient(client, 'agent') ?? '')
          if (view === undefined || resource !== 'pods' || verb !== 'list' || code !== 200) return
          if (query['resourceVersion'] === undefined)
            lastLook.set(view.name, new Set(podsOn(view).map(({ metadata }) => metadata.uid)))
        } else if (event.kind === 'host') {
          const view = world.hosts.get(event.host)
          if (view === undefined) return
          const what = interruptIn(event.event)
          if (what !== undefined) seeInterrupt(view, what)
        }
      },
      tick: (atMs) => evidence.tick(atMs),
      checks: () => checks,
    }
  },
}
