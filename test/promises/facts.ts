/**
 * What happened, in words that do not depend on where: a simulated fleet or node tells it while it runs,
 * `test/kit/recorded/judge.ts` from the record of real hosts. Every promise is judged from these facts and from what
 * the world shows at that moment.
 */
import type { Budget } from '../../src/schemas/budget.ts'
import type { AuditEntry } from '../kit/api-server/audit.ts'
import type { SimulatedApiServer } from '../kit/api-server/server.ts'
import type { Change } from '../kit/api-server/store.ts'
import type { LogLine } from '../kit/host/agent.ts'
import type { HostEvent } from '../kit/host/observer.ts'
import type { SimulatedHost } from '../kit/host/simulated-host.ts'
import type { Phase } from '../kit/fleet/phase.ts'
import type { Plan, PlannedAction } from '../kit/fleet/plan.ts'

export type Fact =
  | { readonly kind: 'host'; readonly host: string; readonly event: HostEvent }
  /**
   * `client`: `agent:<host>`, `census:<host>`, `kubelet:<host>`, `admin`, `workload` (owners of pods),
   * `garbage-collector`, `disruption-controller`.
   */
  | { readonly kind: 'commit'; readonly change: Change; readonly client: string }
  /**
   * A request that reached the server; its change, if it made one, was told before. `fromMs`: what it read is not
   * older, where that is not the moment itself.
   */
  | { readonly kind: 'answered'; readonly entry: AuditEntry; readonly fromMs?: number }
  /** The API server has an older copy of its store. */
  | { readonly kind: 'restored' }
  /** A fault or an edit. `skipped`: it had no object, or its phase did not come. */
  | {
      readonly kind: 'action'
      readonly action: PlannedAction
      readonly what: 'begins' | 'ends' | 'skipped'
      /** Of the node that it is about. */
      readonly phase: Phase | undefined
    }
  | { readonly kind: 'log'; readonly host: string; readonly line: LogLine }

/** A host as every world can show it. */
export type Host = {
  readonly name: string
  /** It changes when the host is registered under a new one. */
  readonly nodeName: () => string
  readonly host: Pick<SimulatedHost, 'power' | 'bootId'>
  /** Those that live, oldest first. More than one for a while when a second one was started beside the first. */
  readonly agents: () => readonly object[]
  /** Neither its network nor the API server is away. */
  readonly reachesApi: () => boolean
  /** A fault of this host or of all hosts is active. */
  readonly isFaulty: () => boolean
  /** Its agent finds a journal that only a newer agent can read. */
  readonly isHalted: () => boolean
  /** What the agents that live, and the next one, take for Skyhooks without a budget. */
  readonly defaultBudgets: () => readonly Budget[]
}

/** What a promise may ask, of the moment of the current fact. */
export type World = {
  /** No fault changes it. */
  readonly clock: { monotonicMs(): number }
  readonly server: Pick<SimulatedApiServer, 'object' | 'objects' | 'isAway'>
  /** By name of the host. */
  readonly hosts: ReadonlyMap<string, Host>
  readonly plan: Pick<Plan, 'skyhooks' | 'defaultBudget'>
  /** The times of facts are exact to so much: what was in force so long before or after counts in favor. */
  readonly slackMs: number
  /** Of one client, watches and evictions aside: in the first minute of an agent, and in any other. */
  readonly maxRequests: { readonly inFirstMinute: number; readonly perMinute: number }
}
