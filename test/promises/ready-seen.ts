/**
 * `Ready` turns True only for work that the agent of each selected node has read: it may be what a node was complete
 * with before the last two edits, and another one may be under way there. Silence counts as having read it a second
 * after the edit, and not before, whatever keeps the agent from reading.
 */
import type { Condition, SkyhookStatus } from '../../src/census/model/skyhook-status.ts'
import { isEqual } from '../../src/schemas/json.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import { appliedHash } from '../../src/stages/model/package-inputs.ts'
import type { Fact } from './facts.ts'
import { hostOfClient, isSelected, nodeOf, skyhookOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Promised } from './promised.ts'

const silenceMs = 1_000
/** A census may hear that late of a label, or of a new Node: watches are slow, and networks are cut. */
const newsMs = 120_000

/** What a Skyhook asks for, and since when. */
type Work = { readonly hash: string; readonly generation: number; readonly atMs: number }

const readyOf = (skyhook: Skyhook | undefined): Condition | undefined =>
  (skyhook?.status as SkyhookStatus | undefined)?.conditions?.find(({ type }) => type === 'Ready')

export const readySeen: Promised = {
  name: 'ready-seen',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** By uid of the Skyhook. */
    const works = new Map<string, Work>()
    /** By host and uid: the latest generation that its agent has read. */
    const reads = new Map<string, number>()
    /** By host: when another selection of it became possible. */
    const newsAtMs = new Map<string, number>()
    let checks = 0
    let isRestored = false

    function seeSpec({ metadata, spec }: Skyhook, atMs: number): void {
      const { uid, generation = 0 } = metadata
      const hash = appliedHash(spec)
      if (works.get(uid)?.hash !== hash) works.set(uid, { hash, generation, atMs })
    }

    function seeRead({ entry }: Extract<Fact, { kind: 'answered' }>): void {
      const host = hostOfClient(entry.client, 'agent')
      if (host === undefined || entry.verb !== 'get' || entry.resource !== 'skyhooks' || entry.code !== 200) return
      const { uid = '', generation = 0 } = skyhookOf(world, entry.name)?.metadata ?? {}
      reads.set(`${host} ${uid}`, generation)
    }

    function seeNode({ change, client }: Extract<Fact, { kind: 'commit' }>, atMs: number): void {
      const { version, previous } = change
      const view = evidence.hostNamed(version.object.metadata.name)
      if (view === undefined || client.startsWith('agent:')) return // its own label says how far it is
      if (!isEqual(version.object.metadata.labels, previous?.object.metadata.labels)) newsAtMs.set(view.name, atMs)
    }

    function judge(skyhook: Skyhook, before: Skyhook | undefined, atMs: number): void {
      const { name, uid, generation } = skyhook.metadata
      const [ready, was] = [readyOf(skyhook), readyOf(before)]
      const isNew = was?.status !== 'True' || was.observedGeneration !== ready?.observedGeneration
      const work = works.get(uid)
      if (ready?.status !== 'True' || !isNew || ready.observedGeneration !== generation || work === undefined) return
      for (const view of world.hosts.values()) {
        const isNews = atMs - (newsAtMs.get(view.name) ?? -Infinity) < newsMs
        if (isNews || !isSelected(skyhook, nodeOf(world, view))) continue
        checks++
        const read = reads.get(`${view.name} ${uid}`) ?? 0
        if (read < work.generation && atMs - work.atMs < silenceMs)
          violate(`${name} is Ready for generation ${work.generation}, and ${view.name} has read generation ${read}`)
      }
    }

    return {
      on(event, atMs) {
        evidence.see(event)
        // generations that agents have read are given again to others
        if (event.kind === 'restored') isRestored = true
        if (isRestored) return
        if (event.kind === 'answered') seeRead(event)
        if (event.kind !== 'commit') return
        const { resource, version, previous, type } = event.change
        if (resource.plural === 'nodes') seeNode(event, atMs)
        if (resource.plural !== 'skyhooks' || type === 'DELETED') return
        const skyhook = version.object as unknown as Skyhook
        seeSpec(skyhook, atMs)
        judge(skyhook, previous?.object as Skyhook | undefined, atMs)
      },
      checks: () => checks,
    }
  },
}
