/** Faults of the elected census that leave it elected, or take its agent along. Drawn apart from all others. */
import { censusLeaseName } from '../../../src/lease/names.ts'
import type { FaultRule } from '../api-server/faults.ts'
import type { ActionKind } from './action-kind.ts'
import type { Chance } from './chance.ts'
import { nodePath } from './cluster-writer.ts'
import { rolloutMs, skyhooksAtMs } from './plan-time.ts'
import type { PlannedAction } from './plan.ts'
import type { World } from './world.ts'

/** Long enough for others to notice, and to take over. */
const lastingMs = [240_000, 345_000] as const

/** Name of the host whose agent is elected. */
function censusLeader({ server, hosts }: World): string | undefined {
  const lease = server.objects('leases').find(({ metadata }) => metadata.name === censusLeaseName)
  const { holderIdentity } = (lease?.['spec'] ?? {}) as { readonly holderIdentity?: string }
  return [...hosts.values()].find(({ nodeName }) => nodeName() === holderIdentity)?.name
}

export const censusFaults = {
  /** The whole agent that leads it: nothing is given back, and others wait until its Lease has run out. */
  'census-leader-killed': {
    victim: censusLeader,
    start({ world, host }) {
      if (host.name !== censusLeader(world) || host.agents().length === 0) return 'skipped'
      host.supervisor.kill()
    },
  },
  /** Stopped, starved or deadlocked beside an agent that renews the Lease. */
  'census-hung': {
    victim: censusLeader,
    lastsMs: lastingMs,
    draw: (chance) => ({ hangsAgain: chance.isHit(0.5) }),
    start: ({ host, detail }) => host.hangCensus(detail['hangsAgain'] === true),
  },
  /** Its way to the API server carries small answers, and no large ones; `isEverywhere`: that of all. */
  'census-lists-silent': {
    victim: censusLeader,
    lastsMs: lastingMs,
    start({ world, host, detail }) {
      const { faults } = world.server
      const isOf = (client: string): boolean =>
        detail['isEverywhere'] === true ? client.startsWith('census:') : client === `census:${host.name}`
      const rule: FaultRule = {
        name: 'lists-silent',
        fault: { kind: 'silent' },
        matches: (request) => request.verb === 'list' && isOf(request.client),
      }
      faults.rules.push(rule)
      host.killCensus() // the next one has to list
      return () => void (faults.rules = faults.rules.filter((one) => one !== rule))
    },
  },
  /** Whoever is elected cannot list the Nodes, and so counts nothing. */
  'census-blind': {
    lastsMs: [20_000, 110_000],
    start({ world: { server } }) {
      const rule: FaultRule = {
        name: 'planned',
        fault: { kind: 'silent' },
        matches: ({ client, verb, location }) =>
          client.startsWith('census:') && verb === 'list' && location?.resource.plural === 'nodes',
      }
      server.faults.rules.push(rule)
      return () => void (server.faults.rules = server.faults.rules.filter((one) => one !== rule))
    },
  },
  /** Its agent stays: it renews the Lease, and its own Node is not among those that it could count. */
  'census-node-deleted': {
    victim: censusLeader,
    lastsMs: lastingMs,
    start({ world, host }) {
      world.admin.send('DELETE', nodePath(host.nodeName()))
      return () => host.restartKubelet()
    },
  },
} satisfies Readonly<Record<string, ActionKind>>

/** One of those that last, in a few runs, and an edit that nobody may have counted when it is over. */
export function planCensusFault(
  chance: Chance,
  {
    firstId,
    node,
    skyhooks,
  }: { readonly firstId: number; readonly node: string; readonly skyhooks: readonly string[] },
): readonly PlannedAction[] {
  if (!chance.isHit(0.04)) return []
  const kind = chance.pick(['census-hung', 'census-hung', 'census-lists-silent', 'census-node-deleted'] as const)
  const { draw }: ActionKind = censusFaults[kind]
  const fault = {
    id: firstId,
    kind,
    node,
    atMs: chance.isHit(0.5) ? chance.integer(skyhooksAtMs - 3_000, skyhooksAtMs) : chance.integer(...rolloutMs),
    forMs: chance.integer(...lastingMs),
    ...(draw !== undefined && { detail: draw(chance) }),
  }
  const edit = {
    id: firstId + 1,
    kind: 'package-version',
    node,
    skyhook: chance.pick(skyhooks),
    atMs: fault.atMs,
    follows: { id: firstId, afterMs: chance.integer(1_000, 30_000) },
    detail: { index: chance.integer(0, 5) },
  }
  return [fault, edit]
}
