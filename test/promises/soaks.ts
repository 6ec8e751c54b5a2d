/**
 * Which hosts have to keep their slots for now because of `spec.pace`: their work is complete, and they are back in
 * service. By hosts, Nodes and specs alone.
 */
import { isEqual } from '../../src/schemas/json.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import { readSlot, type Lease } from '../../src/lease/slot.ts'
import { labelKeys } from '../../src/lease/names.ts'
import type { Fact, World } from './facts.ts'
import { hostOfClient, isSelected, isSlotOf, nodeOf, skyhookOf } from './cluster.ts'
import type { Disruption } from './disruption.ts'
import type { FinishedWork } from './finished-work.ts'

export type Soaks = {
  /** When the slot may go at the earliest; undefined if the host does not soak for the Skyhook. */
  readonly untilMs: (host: string, skyhook: string) => number | undefined
  readonly see: (event: Fact) => void
}

/** The longer one of both times: DaemonSets may prolong it. */
const paceMs = ({ spec: { pace = {} } }: Skyhook): number =>
  1_000 * Math.max(pace.pauseSeconds ?? 0, pace.minReadySeconds ?? 0)

export function followSoaks(
  world: World,
  disruption: Disruption,
  work: FinishedWork,
  hostNamed: (nodeName: string) => { readonly name: string } | undefined,
): Soaks {
  /** By `host/skyhook`: the generation under which the host went out. */
  const generations = new Map<string, number | undefined>()
  const soaks = new Map<string, number>()

  const end = (test: (host: string, skyhook: string) => boolean): void => {
    for (const key of [...soaks.keys(), ...generations.keys()]) {
      const [host = '', skyhook = ''] = key.split('/')
      if (!test(host, skyhook)) continue
      soaks.delete(key)
      generations.delete(key)
    }
  }

  /** What a person did to it, or an edit, may end the soak at once: only work under one spec counts. */
  disruption.onChange(({ host, skyhook: name, isOut }) => {
    const key = `${host}/${name}`
    const view = world.hosts.get(host)
    const skyhook = skyhookOf(world, name)
    soaks.delete(key)
    if (view === undefined || skyhook === undefined) return
    const { generation, deletionTimestamp } = skyhook.metadata
    if (isOut) {
      if (!generations.has(key)) generations.set(key, generation)
      return
    }
    const isWhole = generations.get(key) === generation && deletionTimestamp === undefined
    if (!isWhole || !isSelected(skyhook, nodeOf(world, view))) return
    if (work.unfinished(host, skyhook).length > 0) return
    generations.delete(key)
    if (paceMs(skyhook) > 0) soaks.set(key, world.clock.monotonicMs() + paceMs(skyhook))
  })

  function seeCommit({ change, client }: Extract<Fact, { kind: 'commit' }>): void {
    const { resource, version, previous, type } = change
    const { metadata } = version.object
    if (resource.plural === 'skyhooks') {
      const isEdited = metadata.generation !== previous?.object.metadata.generation
      if (isEdited || type === 'DELETED') end((_, skyhook) => skyhook === metadata.name)
    } else if (resource.plural === 'nodes') {
      const isOfPerson = client === 'admin' || client.startsWith('kubelet:')
      const { labels, annotations } = previous?.object.metadata ?? {}
      const isMarked = !isEqual(metadata.labels, labels) || !isEqual(metadata.annotations, annotations)
      const host = hostNamed(metadata.name)?.name
      if (type !== 'MODIFIED' || (isOfPerson && isMarked)) end((one) => one === host)
    } else if (resource.plural === 'leases' && hostOfClient(client, 'agent') === undefined) {
      const slot = type === 'DELETED' ? readSlot(version.object as unknown as Lease) : undefined
      const skyhook = slot?.lease.metadata.labels?.[labelKeys.name] ?? ''
      if (slot === undefined || !isSlotOf(slot, skyhook)) return
      const host = hostNamed(slot.holder)?.name
      end((one, other) => one === host && other === skyhook)
    }
  }

  return {
    untilMs: (host, skyhook) => soaks.get(`${host}/${skyhook}`),
    see(event) {
      if (event.kind === 'restored') end(() => true)
      else if (event.kind === 'commit') seeCommit(event)
      else if (event.kind === 'host' && event.event.event === 'wiped') end((host) => host === event.host)
    },
  }
}
