/** What a judge of a simulated fleet sees beyond what every world shows: the truth about each host, and the plan. */
import type { VirtualClock } from '../virtual-clock.ts'
import type { Host, World } from '../../promises/facts.ts'
import type { SimulatedApiServer } from '../api-server/server.ts'
import type { SimulatedAgent } from '../host/agent.ts'
import type { HostTruth } from '../host/host-truth.ts'
import type { SimulatedHost } from '../host/simulated-host.ts'
import type { Phase } from './phase.ts'
import type { Plan } from './plan.ts'

export type HostView = Omit<Host, 'agents' | 'host'> & {
  readonly isControlPlane: boolean
  readonly host: SimulatedHost
  readonly truth: HostTruth
  readonly agents: () => readonly SimulatedAgent[]
  /** Faulty, and not only because its agent is of another version. */
  readonly isHindered: () => boolean
  /** False before its first boot. */
  readonly hasJoined: () => boolean
  readonly phase: () => Phase
}

export type WorldView = Omit<World, 'clock' | 'hosts' | 'plan' | 'server'> & {
  readonly clock: VirtualClock
  readonly server: SimulatedApiServer
  /** By name of the host. */
  readonly hosts: ReadonlyMap<string, HostView>
  readonly plan: Plan
  /** When the last fault or edit was over; undefined while one is active or to come. */
  readonly faultsEndedAtMs: () => number | undefined
}

/** Twice what a healthy agent was seen to need. */
export const simulated: Pick<World, 'maxRequests' | 'slackMs'> = {
  slackMs: 0,
  maxRequests: { inFirstMinute: 240, perMinute: 120 },
}
