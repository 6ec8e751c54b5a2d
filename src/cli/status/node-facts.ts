/** The state of each node that a Skyhook selects, as the census counts it. Pure. */
import { disableKey, pauseKey } from '../../schemas/annotations.ts'
import { selects } from '../../schemas/selectors.ts'
import type { NodeStatus, Skyhook } from '../../schemas/skyhook.ts'
import { completionHash } from '../../stages/model/applied-hash.ts'
import { known, type Known } from '../../stages/model/snapshot.ts'
import type { AgentPod, FleetView } from '../fleet-view/fleet-view.ts'
import type { NodeReport, NodeRow } from './node-report.ts'

/** What a screen says of a node that a Skyhook selects. */
export type NodeFact = {
  readonly node: string
  readonly status: NodeStatus
  readonly report: NodeReport | undefined
  /** Its agent does not answer: what it has published may be old. */
  readonly isSilent: boolean
}

/** In the order of the Nodes; unknown where they may not be read. */
export function nodeFacts(
  fleet: FleetView<NodeRow>,
  { metadata, spec }: Skyhook,
  agents: AgentStates,
): Known<readonly NodeFact[]> {
  if (!fleet.nodes.known) return fleet.nodes
  const { name, annotations = {} } = metadata
  const isPaused = annotations[pauseKey] === 'true'
  const idle = annotations[disableKey] === 'true' ? 'disabled' : isPaused ? 'paused' : 'waiting'
  const applied = completionHash({ metadata, spec })
  const selected = fleet.nodes.value.filter(({ labels }) => selects(spec.nodeSelectors, labels))
  return known(selected.map((row) => factOf(row, name, { applied, idle, agents })))
}

/** As the census counts: complete only for this spec, and unknown while the agent has been silent for long. */
function factOf(
  { name, reports }: NodeRow,
  skyhook: string,
  { applied, idle, agents }: { readonly applied: string; readonly idle: NodeStatus; readonly agents: AgentStates },
): NodeFact {
  const report = reports.get(skyhook)
  const isSilent = agents.known && !agents.value.has(name)
  const status = ((): NodeStatus => {
    if (isSilent) return 'unknown'
    if (report === undefined) return idle
    if (report.status === undefined) return 'unknown'
    if (report.status !== 'complete') return report.status
    return report.applied === applied ? 'complete' : idle
  })()
  return { node: name, status, report, isSilent }
}

/** Longer than the replacement of an agent takes; the census counts so, too. */
const silentAfterMs = 600_000

/** Nodes whose agent answers, or has only just stopped to. */
export type AgentStates = Known<ReadonlySet<string>>

export function agentStates({ agents, takenAtMs }: FleetView<NodeRow>): AgentStates {
  if (!agents.known) return agents
  const answers = ({ isReady, sinceMs }: AgentPod): boolean =>
    isReady || (sinceMs !== undefined && takenAtMs - sinceMs < silentAfterMs)
  return known(new Set(agents.value.filter(answers).map(({ node }) => node)))
}
