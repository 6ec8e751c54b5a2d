/**
 * An agent gives no slot back while its host is between a first step and completion, nor while its Node carries the
 * cordon mark: uncordon comes before release, and so does the Node's word that the work of the slot is complete. Twins
 * of a slot, and slots of an earlier registration, may go.
 */
import { statusKey } from '../../src/schemas/annotations.ts'
import type { KubernetesNode } from '../../src/schemas/kubernetes.ts'
import type { Skyhook } from '../../src/schemas/skyhook.ts'
import { labelKeys } from '../../src/lease/names.ts'
import { readSlot, type Lease, type Slot } from '../../src/lease/slot.ts'
import type { Fact, Host } from './facts.ts'
import {
  hostOfClient,
  isOfScope,
  isSelected,
  isSlotOf,
  marksOf,
  nodeOf,
  skyhookOf,
  skyhooksOf,
  slotsOf,
} from './cluster.ts'
import { evidenceOf } from './evidence.ts'
import type { Promised } from './promised.ts'
import { reasonOf } from './reasons-true.ts'

export const slotsKept: Promised = {
  name: 'slots-kept',
  watch(world, violate) {
    const evidence = evidenceOf(world)
    /** `host skyhook`: a step has run since its agent last gave a slot back. */
    const worked = new Set<string>()
    /** Of those: the Node has said complete since. An edit may ask for more before the slot is gone. */
    const said = new Set<string>()
    let checks = 0

    /** What of it is not over yet. */
    function problemOf(view: Host, node: KubernetesNode, slot: Slot, name: string): string | undefined {
      if (marksOf(node).includes(name) && !evidence.isBlind(view.name))
        return `its Node carries the cordon mark of ${name}`
      const object = skyhookOf(world, name)
      const running = evidence.disruption
        .runningSteps(view.name)
        .find(({ skyhook, skyhookUid: uid = object?.metadata.uid }) => skyhook === name && isOf(slot, { name, uid }))
      if (running !== undefined) return `it runs ${running.package} ${running.mode} of ${name}`
      if (object === undefined || !isOfScope(slot, object)) return undefined
      const open = evidence.disruption.openPackages(view.name, name)
      if (open.length > 0) return `it is half changed: ${open.join(', ')}`
      const isAsked = isSelected(object, node) && object.metadata.deletionTimestamp === undefined
      const isFinished = isAsked && evidence.work.unfinished(view.name, object).length === 0
      if (!isFinished || !worked.has(`${view.name} ${name}`) || evidence.isBlind(view.name)) return undefined
      const status = node.metadata.annotations?.[statusKey(name)]
      const wasSaid = status === 'complete' || said.has(`${view.name} ${name}`)
      const isSaid = wasSaid || reasonOf(node, name) !== undefined
      return isSaid ? undefined : `its Node says ${status ?? 'nothing'} of ${name}, which is complete`
    }

    function seeDeletion({ change, client }: Extract<Fact, { kind: 'commit' }>): void {
      const host = hostOfClient(client, 'agent')
      const slot = readSlot(change.version.object as unknown as Lease)
      const skyhook = slot?.lease.metadata.labels?.[labelKeys.name]
      const view = host === undefined ? undefined : world.hosts.get(host)
      if (view === undefined || slot === undefined || skyhook === undefined || !isSlotOf(slot, skyhook)) return
      const node = nodeOf(world, view)
      if (node === undefined || node.metadata.uid !== slot.nodeUid) return
      // the slot of a joining node goes when its work has one that counts
      const hasTwin = slotsOf(world).some(
        (one) =>
          one.holder === slot.holder &&
          (one.scope === slot.scope || (slot.kind === 'bootstrap' && isSlotOf(one, skyhook))),
      )
      if (hasTwin) return
      checks++
      const problem = problemOf(view, node, slot, skyhook)
      if (problem !== undefined) violate(`${view.name} gives back ${slot.name} while ${problem}`)
      worked.delete(`${view.name} ${skyhook}`)
    }

    function seeNode({ version, previous }: Extract<Fact, { kind: 'commit' }>['change']): void {
      const [after, before] = [version.object.metadata, previous?.object.metadata]
      const host = evidence.hostNamed(after.name)?.name
      for (const { metadata } of skyhooksOf(world)) {
        const key = statusKey(metadata.name)
        const isNew = before?.annotations?.[key] !== 'complete'
        if (isNew && after.annotations?.[key] === 'complete') said.add(`${host} ${metadata.name}`)
      }
    }

    return {
      on(event) {
        evidence.see(event)
        if (event.kind === 'host' && event.event.event === 'stepStarted') {
          const key = `${event.host} ${event.event.step.skyhook}`
          worked.add(key)
          said.delete(key)
        }
        if (event.kind === 'commit' && event.change.resource.plural === 'nodes') seeNode(event.change)
        if (event.kind !== 'commit' || event.change.type !== 'DELETED') return
        if (event.change.resource.plural === 'leases') seeDeletion(event)
      },
      checks: () => checks,
    }
  },
}

const isOf = (slot: Slot, { name, uid }: { readonly name: string; readonly uid: string | undefined }): boolean =>
  uid !== undefined && isOfScope(slot, { metadata: { name, uid } } as Skyhook)
