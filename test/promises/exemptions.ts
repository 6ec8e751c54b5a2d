/**
 * Hosts whose slots a person or an older copy of etcd took away: they do not count for admissions until their agent has
 * written a slot again, for which it has five minutes.
 */
import { readSlot, type Lease, type Slot } from '../../src/lease/slot.ts'
import { hasRequiredTaint } from '../../src/stages/drain/node-spec.ts'
import { requiredTaint } from '../kit/fleet/fleet-host.ts'
import type { Fact, Host, World } from './facts.ts'
import type { Exemption } from './admission-facts.ts'
import { hostOfClient, nodeOf } from './cluster.ts'
import type { Evidence } from './evidence.ts'

/** An agent that runs and reaches the API server knows its slots within this time. */
export const slotKnownMs = 5 * 60_000

type Open = { readonly exemption: Exemption; readonly untilHealthyMs: number }

export type Exemptions = {
  readonly all: readonly Exemption[]
  /** A slot that counts is missing, for a reason that the promise excepts. */
  readonly begin: (host: string) => void
  /** True if a new one began. */
  readonly see: (event: Fact) => void
  readonly tick: () => void
}

/** `isOurs`: slots that the rule is about. */
export function followExemptions(world: World, evidence: Evidence, isOurs: (slot: Slot) => boolean): Exemptions {
  const all: Exemption[] = []
  const open = new Map<string, Open>()

  const begin = (host: string): void => {
    if (open.has(host)) return
    const exemption = { host, fromOrder: evidence.order(), untilOrder: Infinity }
    all.push(exemption)
    open.set(host, { exemption, untilHealthyMs: evidence.health.totalMs(host) + slotKnownMs })
  }

  const end = (host: string): void => {
    const current = open.get(host)
    if (current) current.exemption.untilOrder = evidence.order()
    open.delete(host)
  }

  /**
   * A taint that came back says that the node joins, and its agent has slots of both budgets until it knows: such a
   * host is not judged any more.
   */
  function seeRestored(view: Host): void {
    begin(view.name)
    const node = nodeOf(world, view)
    if (node !== undefined && hasRequiredTaint(node, requiredTaint)) open.delete(view.name)
  }

  function seeCommit({ change, client }: Extract<Fact, { kind: 'commit' }>): void {
    const { resource, type, version } = change
    if (resource.plural === 'nodes' && type === 'DELETED') {
      const host = evidence.hostNamed(version.object.metadata.name)
      if (host) begin(host.name)
    }
    if (resource.plural !== 'leases') return
    const slot = readSlot(version.object as unknown as Lease)
    if (slot === undefined || !isOurs(slot)) return
    const agent = hostOfClient(client, 'agent')
    if (type === 'DELETED') {
      const host = evidence.hostNamed(slot.holder)
      if (agent === undefined && client !== 'garbage-collector' && host) begin(host.name)
      return
    }
    const view = agent === undefined ? undefined : world.hosts.get(agent)
    const isCurrent = view !== undefined && nodeOf(world, view)?.metadata.uid === slot.nodeUid
    if (isCurrent) end(view.name)
  }

  return {
    all,
    begin,
    see(event) {
      if (event.kind === 'restored') for (const view of world.hosts.values()) seeRestored(view)
      else if (event.kind === 'commit') seeCommit(event)
    },
    tick() {
      for (const [host, { untilHealthyMs }] of open) if (evidence.health.totalMs(host) >= untilHealthyMs) end(host)
    },
  }
}
