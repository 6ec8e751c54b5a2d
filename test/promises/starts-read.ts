/**
 * Work starts for a spec that its agent has read consistently since the slot was granted. The first step under a slot
 * is of a generation that such a GET of the Skyhook answered, or of an earlier one. Nothing is judged after a restore
 * of etcd: what is on a host may be of a generation that the API server has forgotten.
 */
import { labelKeys } from '../../src/lease/names.ts'
import { readSlot, type Lease } from '../../src/lease/slot.ts'
import type { HostStep } from '../kit/host/observer.ts'
import type { Fact } from './facts.ts'
import { hostOfClient, isSlotOf, skyhookOf, slotsOf } from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Promised } from './promised.ts'

/** The time under one slot. */
type Tenure = {
  /** By uid of the Skyhook: the latest generation that was read. */
  readonly read: Map<string, number>
  /** Work is under way, or may be: what an agent that ended has written down, no host event shows. */
  hasStarted: boolean
  /** A journal was written while the generation that was read last was current: it may say that work has begun. */
  mayHaveBegun: boolean
}

type Commit = Extract<Fact, { kind: 'commit' }>

export const startsRead: Promised = {
  name: 'starts-read',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** By host, then by Skyhook. */
    const tenures = new Map<string, Map<string, Tenure>>()
    let checks = 0
    let isRestored = false

    const tenuresOf = (host: string): Map<string, Tenure> => {
      const known = tenures.get(host) ?? new Map<string, Tenure>()
      tenures.set(host, known)
      return known
    }
    const excuse = (host: string): void => {
      for (const tenure of tenuresOf(host).values()) tenure.hasStarted = true
    }

    evidence.disruption.onChange(({ host, skyhook, isOut, cause }) => {
      const tenure = tenuresOf(host).get(skyhook)
      if (tenure && isOut && cause !== 'stepStarted') tenure.hasStarted = true // by a cordon, and not for a generation
    })

    function seeSlot({ change, client }: Commit): void {
      const host = hostOfClient(client, 'agent')
      const slot = readSlot(change.version.object as unknown as Lease)
      const skyhook = slot?.lease.metadata.labels?.[labelKeys.name]
      if (host === undefined || !slot || skyhook === undefined || !isSlotOf(slot, skyhook)) return
      if (change.type !== 'ADDED') return
      const isSecond = slotsOf(world).some(
        (one) => one.uid !== slot.uid && one.holder === slot.holder && isSlotOf(one, skyhook),
      )
      if (isSecond) return
      const hasStarted = slot.kind === 'recovery' || evidence.disruption.isOut(host, skyhook)
      tenuresOf(host).set(skyhook, { read: new Map(), hasStarted, mayHaveBegun: false })
    }

    function seeRead({ entry }: Extract<Fact, { kind: 'answered' }>): void {
      const host = hostOfClient(entry.client, 'agent')
      if (host === undefined || entry.verb !== 'get' || entry.resource !== 'skyhooks') return
      if (entry.code !== 200 || entry.query['resourceVersion'] !== undefined) return
      const { uid = '', generation = 0 } = skyhookOf(world, entry.name)?.metadata ?? {}
      tenuresOf(host).get(entry.name)?.read.set(uid, generation)
    }

    /** A step may start long after the journal says that its work has begun: a write of the Node comes in between. */
    function seeJournal(host: string): void {
      for (const [skyhook, tenure] of tenuresOf(host)) {
        const { uid = '', generation = 0 } = skyhookOf(world, skyhook)?.metadata ?? {}
        if (tenure.read.get(uid) === generation) tenure.mayHaveBegun = true
      }
    }

    function judge(host: string, { skyhook, skyhookUid, generation, mode }: HostStep): void {
      const tenure = tenuresOf(host).get(skyhook)
      if (isRestored || tenure === undefined || tenure.hasStarted) return
      tenure.hasStarted = true
      if (skyhookUid === undefined || generation === undefined) return
      checks++
      const read = tenure.read.get(skyhookUid)
      if (read === undefined || (read < generation && !tenure.mayHaveBegun))
        violate(
          `${host} starts ${mode} of ${skyhook} for generation ${generation}, and its agent has read ` +
            `${read === undefined ? 'none' : `generation ${read}`} since its slot was granted`,
        )
    }

    return {
      on(event) {
        if (event.kind === 'host' && event.event.event === 'stepStarted') judge(event.host, event.event.step)
        evidence.see(event)
        if (event.kind === 'host' && event.event.event === 'effect' && event.event.name === 'fsync:journal')
          seeJournal(event.host)
        if (event.kind === 'restored') isRestored = true
        else if (event.kind === 'answered') seeRead(event)
        else if (event.kind === 'commit' && event.change.resource.plural === 'leases') seeSlot(event)
        else if (event.kind === 'host' && ['agentEnded', 'wentDown', 'wiped'].includes(event.event.event))
          excuse(event.host)
      },
      checks: () => checks,
    }
  },
}
