/** What a judge of a simulated fleet sees: everything that happens, and the truth about each host. */
import type { Budget } from '../../../src/schemas/budget.ts'
import type { VirtualClock } from '../../support/virtual-clock.ts'
import type { AuditEntry } from '../api-server/audit.ts'
import type { SimulatedApiServer } from '../api-server/server.ts'
import type { Change } from '../api-server/store.ts'
import type { LogLine, SimulatedAgent } from '../host/agent.ts'
import type { HostTruth } from '../host/host-truth.ts'
import type { HostEvent } from '../host/observer.ts'
import type { SimulatedHost } from '../host/simulated-host.ts'
import type { Phase } from './phase.ts'
import type { Plan, PlannedAction } from './plan.ts'

export type FleetEvent =
  | { readonly kind: 'host'; readonly host: string; readonly event: HostEvent }
  /**
   * `client`: `agent:<host>`, `census:<host>`, `kubelet:<host>`, `admin`, `workload` (owners of pods),
   * `garbage-collector`, `disruption-controller`.
   */
  | { readonly kind: 'commit'; readonly change: Change; readonly client: string }
  /** A request that reached the server; its change, if it made one, was told before. */
  | { readonly kind: 'answered'; readonly entry: AuditEntry }
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

export type HostView = {
  readonly name: string
  /** It changes when the host is registered under a new one. */
  readonly nodeName: () => string
  readonly isControlPlane: boolean
  readonly host: SimulatedHost
  readonly truth: HostTruth
  /** Those that live, oldest first. More than one for a while when a second one was started beside the first. */
  readonly agents: () => readonly SimulatedAgent[]
  /** Neither its network nor the API server is away. */
  readonly reachesApi: () => boolean
  /** A fault of this host or of all hosts is active. */
  readonly isFaulty: () => boolean
  /** The same without that of an agent of another version. */
  readonly isHindered: () => boolean
  /** False before its first boot. */
  readonly hasJoined: () => boolean
  /** Its agent finds a journal that only a newer agent can read. */
  readonly isHalted: () => boolean
  readonly phase: () => Phase
  /** What the agents that live, and the next one, take for Skyhooks without a budget. */
  readonly defaultBudgets: () => readonly Budget[]
}

export type WorldView = {
  /** No fault changes it. */
  readonly clock: VirtualClock
  readonly server: SimulatedApiServer
  /** By name of the host. */
  readonly hosts: ReadonlyMap<string, HostView>
  readonly plan: Plan
  /** When the last fault or edit was over; undefined while one is active or to come. */
  readonly faultsEndedAtMs: () => number | undefined
}
