/**
 * A batch is a barrier. When a census passes the epoch of a rollout, no slot of that epoch is at work, its results are
 * exactly the slots of that epoch, and the next epoch is the next number. A complete node keeps its slot until then.
 * Once a compartment is stopped, no slot of it, and none for joining nodes, is created on a LIST from then on.
 */
import { type Ledger, type LedgerScope, readLedger } from '../../src/lease/ledger.ts'
import { bootstrapScope, skyhookScope } from '../../src/lease/names.ts'
import { readSlot, type Lease, type Slot } from '../../src/lease/slot.ts'
import { appliedHash } from '../../src/stages/model/package-inputs.ts'
import type { Fact } from './facts.ts'
import { publishedOf } from '../../src/schemas/published.ts'
import { hostOfClient, isSelected, isSlotOf, nodeOf, skyhooksOf, slotsOf } from './cluster.ts'
import type { Invariant } from './promised.ts'

/** Who is in a batch changes by the hand of a person or with its disk, and an old copy of the store has old slots. */
const excepted: ReadonlySet<string> = new Set([
  'host-wiped',
  'lease-deleted',
  'node-deleted',
  'node-renamed',
  'host-wiped-and-registered',
  'etcd-restored',
  'skyhook-deleted',
])

type Commit = Extract<Fact, { kind: 'commit' }>

export const batches: Invariant = {
  name: 'batches',
  watch(world, violate) {
    const isExcepted = world.plan.actions.some(({ kind }) => excepted.has(kind))
    /** By host: the last LIST of slots that it was answered, in the order of events. */
    const listedAt = new Map<string, number>()
    /** By uid of the Skyhook. */
    const ledgers = new Map<string, Ledger>()
    /** By scope, also that of joining nodes: since when it is stopped. */
    const stoppedAt = new Map<string, number>()
    let order = 0
    let checks = 0

    const scopesOf = (ledger: Ledger, compartment: string): { slots: string; joining: string } | undefined => {
      const skyhook = skyhooksOf(world).find(({ metadata }) => metadata.uid === ledger.skyhookUID)
      const [slots, joining] = [skyhookScope, bootstrapScope].map((of) => skyhook && of(skyhook.metadata, compartment))
      return slots && joining && { slots: slots.hash, joining: joining.hash }
    }

    function judgePassed(name: string, before: LedgerScope, after: LedgerScope, slots: readonly Slot[]): void {
      const [was, is] = [before.batch, after.batch]
      if (was === undefined || is === undefined || was.epoch === is.epoch) return
      checks++
      if (is.epoch !== was.epoch + 1) return violate(`epoch ${is.epoch} of ${name} follows ${was.epoch}`)
      const ofEpoch = slots.filter(({ epoch }) => epoch === was.epoch)
      const atWork = ofEpoch.find(({ phase }) => phase !== 'finished' && phase !== 'failed')
      if (atWork) return violate(`${name} passes epoch ${was.epoch} while ${atWork.holder} is ${atWork.phase} in it`)
      const results = is.completed + is.failed - was.completed - was.failed
      if (results !== ofEpoch.length)
        violate(`epoch ${was.epoch} of ${name} had ${ofEpoch.length} nodes, and ${results} results were counted`)
    }

    function seeLedger({ change }: Commit): void {
      const [after, before] = [change.version.object, change.previous?.object].map((object) => {
        const read = object && readLedger(object as unknown as Lease)
        return read?.outcome === 'read' ? read.ledger : undefined
      })
      if (after === undefined) return
      if (change.type !== 'DELETED') ledgers.set(after.skyhookUID, after)
      for (const [name, scope] of Object.entries(after.compartments)) {
        const hashes = scopesOf(after, name)
        if (hashes === undefined) continue
        for (const hash of Object.values(hashes))
          if (scope.batch?.stopped === true) stoppedAt.set(hash, stoppedAt.get(hash) ?? order)
          else stoppedAt.delete(hash)
        const last = before?.compartments[name]
        const isSameRollout = before?.applied === after.applied && before.skyhookUID === after.skyhookUID
        const slots = slotsOf(world).filter((slot) => slot.scope === hashes.slots && slot.kind === 'slot')
        if (last && isSameRollout && before.reset === after.reset && !isExcepted) judgePassed(name, last, scope, slots)
      }
    }

    /** The Node says that the work of now is complete: its result is not counted yet. */
    function judgeReturn(host: string, slot: Slot): void {
      const view = world.hosts.get(host)
      const node = view && nodeOf(world, view)
      const skyhook = skyhooksOf(world).find(({ metadata }) => isSlotOf(slot, metadata.name))
      const ledger = skyhook && ledgers.get(skyhook.metadata.uid)
      if (skyhook === undefined || ledger === undefined || node?.metadata.uid !== slot.nodeUid) return
      const applied = appliedHash(skyhook.spec)
      const { name, deletionTimestamp } = skyhook.metadata
      const { status, companion } = publishedOf(node, name)
      const isComplete = status === 'complete' && companion?.applied === applied
      const batch = ledger.compartments[slot.compartmentName]?.batch
      const isOpen = ledger.applied === applied && batch?.epoch === slot.epoch && slot.epoch !== undefined
      if (deletionTimestamp !== undefined || !isSelected(skyhook, node) || !isComplete || !isOpen) return
      violate(`${host} is complete and gives back ${slot.name} of the open epoch ${slot.epoch}`)
    }

    function seeSlot({ change, client }: Commit, slot: Slot): void {
      const host = hostOfClient(client, 'agent')
      if (change.type === 'DELETED' && host !== undefined && !isExcepted) judgeReturn(host, slot)
      const sinceOrder = stoppedAt.get(slot.scope)
      if (change.type !== 'ADDED' || host === undefined || sinceOrder === undefined || slot.kind === 'recovery') return
      checks++
      if ((listedAt.get(host) ?? 0) > sinceOrder) violate(`${host} takes ${slot.name} although the rollout is stopped`)
    }

    return {
      on(event) {
        order++
        if (event.kind === 'answered') {
          const { client, verb, resource, code } = event.entry
          const host = hostOfClient(client, 'agent')
          if (host !== undefined && verb === 'list' && resource === 'leases' && code === 200) listedAt.set(host, order)
        }
        if (event.kind !== 'commit' || event.change.resource.plural !== 'leases') return
        const slot = readSlot(event.change.version.object as unknown as Lease)
        if (slot === undefined) seeLedger(event)
        else seeSlot(event, slot)
      },
      checks: () => checks,
    }
  },
}
