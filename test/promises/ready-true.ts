/** `Ready` turns True only when each selected node, whose agent is there, has finished every package on its host. */
import { nodeStateKey } from '../../src/schemas/annotations.ts'
import type { Condition, SkyhookStatus } from '../../src/census/model/skyhook-status.ts'
import { isEqual } from '../../src/schemas/json.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import type { Fact } from './facts.ts'
import { isSelected, nodeOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import { isHealthy } from './health.ts'
import type { Promised } from './promised.ts'

/** What the cluster cannot know at once: a disk that was replaced, a state that a person cleared, a new label. */
const newsMs = 60_000
/** A census hears of a new Node sooner. */
const registrationMs = 20_000

const readyOf = (skyhook: Skyhook | undefined): Condition | undefined =>
  (skyhook?.status as SkyhookStatus | undefined)?.conditions?.find(({ type }) => type === 'Ready')

export const readyTrue: Promised = {
  name: 'ready-true',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** By host: when something happened to it that its Node does not tell yet. */
    const newsAtMs = new Map<string, number>()
    let checks = 0

    function seeNode({ change, client }: Extract<Fact, { kind: 'commit' }>, atMs: number): void {
      const { version, previous, type } = change
      const view = evidence.hostNamed(version.object.metadata.name)
      if (view === undefined) return
      const { labels, annotations = {} } = version.object.metadata
      const before = previous?.object.metadata
      const isRelabeled = type === 'MODIFIED' && !isEqual(labels, before?.labels) && !client.startsWith('agent:')
      const isEdited =
        client === 'admin' &&
        world.plan.skyhooks.some(
          ({ name }) => annotations[nodeStateKey(name)] !== before?.annotations?.[nodeStateKey(name)],
        )
      if (type === 'DELETED' || isRelabeled || isEdited) newsAtMs.set(view.name, atMs)
      else if (type === 'ADDED')
        newsAtMs.set(view.name, Math.max(newsAtMs.get(view.name) ?? -Infinity, atMs - newsMs + registrationMs))
    }

    function seeStatus(skyhook: Skyhook, before: Skyhook | undefined, atMs: number): void {
      const ready = readyOf(skyhook)
      const isNew =
        readyOf(before)?.status !== 'True' || readyOf(before)?.observedGeneration !== ready?.observedGeneration
      if (ready?.status !== 'True' || !isNew || ready.observedGeneration !== skyhook.metadata.generation) return
      for (const view of world.hosts.values()) {
        const isNews = atMs - (newsAtMs.get(view.name) ?? -Infinity) < newsMs
        if (isNews || !isHealthy(view) || !isSelected(skyhook, nodeOf(world, view))) continue
        checks++
        const unfinished = evidence.work.unfinished(view.name, skyhook)
        if (unfinished.length > 0)
          violate(`${skyhook.metadata.name} is Ready while ${view.name} has not finished ${unfinished.join(', ')}`)
      }
    }

    return {
      on(event, atMs) {
        evidence.see(event)
        if (event.kind === 'restored') for (const host of world.hosts.keys()) newsAtMs.set(host, atMs)
        else if (event.kind === 'host' && event.event.event === 'wiped') newsAtMs.set(event.host, atMs)
        if (event.kind !== 'commit') return
        const { resource, version, previous, type } = event.change
        if (resource.plural === 'nodes') seeNode(event, atMs)
        else if (resource.plural === 'skyhooks' && type === 'MODIFIED')
          seeStatus(version.object as unknown as Skyhook, previous?.object as Skyhook | undefined, atMs)
      },
      checks: () => checks,
    }
  },
}
