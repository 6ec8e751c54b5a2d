import { defaultAgentPodSelector } from '../../census/model/messages.ts'
import { type Election, startElection } from '../../lease/election.ts'
import { toWallMs } from '../../schemas/clock.ts'
import type { FleetSeries } from '../../schemas/catalogue/fleet-metrics.ts'
import type { Leases } from '../../lease/slot-reads.ts'
import type { Platform } from '../platform/platform.ts'
import type { Settings } from '../settings/settings.ts'
import { version } from '../../schemas/version.ts'
import { errorField } from '../telemetry/log.ts'
import type { FleetSize } from '../state/fleet-size.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { createCensusSupervisor, maxUncountedMs } from './supervisor.ts'

/**
 * The agent's campaign for the census. While the agent is elected, a child process counts for the whole cluster. It
 * grants nothing.
 */
export type CensusCampaign = {
  /** It is elected and has counted within the last minute. Based on completed counts, not on the schedule. */
  isCounting(): boolean
  /**
   * The time since which no census has counted, as of the last read of the Lease. Undefined if one counts, or if it is
   * unknown.
   */
  uncounted(): string | undefined
  /** The counts of this term's census. Empty while another agent leads, and until the first count. */
  fleetSeries(): readonly FleetSeries[]
  /** Checks whether there is a census, because a count is missing. */
  look(): void
  /** Campaigns until the signal aborts, then releases the Lease so that another agent takes it immediately. */
  run(): Promise<void>
}

export function createCensusCampaign(options: {
  readonly platform: Platform
  readonly leases: Leases
  readonly settings: Pick<Settings, 'nodeName' | 'podName' | 'namespace' | 'defaultBudget'>
  /** Whether NodeWright may be active and read the status of Skyhooks. */
  readonly isNodeWrightServed: () => boolean
  readonly fleet: FleetSize
  readonly metrics: Metrics
  readonly signal: AbortSignal
}): CensusCampaign {
  const { platform, leases, settings, fleet, metrics, signal } = options
  const { clock, log } = platform
  const { nodeName, podName, namespace, defaultBudget } = settings
  let election: Election | undefined
  let lastElectionError = ''
  let countedAgents: number | undefined
  const supervisor = createCensusSupervisor({
    settings: () => ({
      v: 1,
      version,
      nodeName,
      podName,
      namespace,
      agentPodSelector: defaultAgentPodSelector,
      defaultBudget,
      isNodeWrightServed: options.isNodeWrightServed(),
    }),
    start: () => platform.startCensus(),
    clock,
    onLine(line) {
      if (line.kind === 'log') log[line.level](line.fields, line.message)
      else if (line.kind === 'requests')
        for (const { verb, code, count } of line.counts) metrics.apiRequest(verb, code, count)
      else {
        countedAgents = line.agents
        if (line.agents !== undefined) fleet.observe(line.agents)
      }
    },
    onExit: (how) => log.warn({ cause: how }, 'census exited'),
    uncountedMs: () => election?.uncountedMs() ?? 0,
    onUnfit: (resignForMs, why) => {
      log.error({ backoffMs: resignForMs, reason: why }, 'census failed, resigning leadership')
      election?.resign(resignForMs, why)
    },
  })
  const isLeader = (): boolean => election?.isLeader() === true
  const uncountedMs = (): number => clock.monotonicMs() - (supervisor.countedAtMs() ?? -Infinity)
  return {
    isCounting: () => isLeader() && uncountedMs() <= maxUncountedMs,
    uncounted: () => election?.uncounted(),
    fleetSeries: () => (isLeader() ? supervisor.series() : []),
    look: () => election?.look(),
    async run() {
      election = startElection(leases, {
        identity: nodeName,
        random: platform.random,
        agents: () => fleet.agents(),
        published: () => ({
          agents: countedAgents,
          countedAtMs:
            supervisor.countedAtMs() === undefined ? undefined : toWallMs(clock, clock.steadyMs() - uncountedMs()),
        }),
        onAgents: (agents) => fleet.observe(agents),
        onElected(term) {
          log.info({}, 'elected for the census')
          countedAgents = undefined
          void supervisor.supervise(term)
        },
        onLost: (why) => log.info({ reason: why }, 'census term ended'),
        onError(error) {
          const fields = errorField(error)
          // log it once, not every few seconds
          if (fields.error !== lastElectionError) log.warn(fields, 'election failed, retrying')
          lastElectionError = fields.error
        },
        signal,
      })
      await election.ended
    },
  }
}
