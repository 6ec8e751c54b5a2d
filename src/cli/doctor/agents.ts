/** Whether every node has an agent that answers, all agents are of one version, and one of them counts. */
import { uncountedSince } from '../../lease/election-lease.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { selects } from '../../schemas/selectors.ts'
import { silentAfterMs } from '../../stages/skyhook/counted-status.ts'
import { agentFinding } from '../explain/agent-finding.ts'
import type { Finding as Explanation } from '../explain/finding.ts'
import type { AgentPod, FleetView } from '../fleet-view/fleet-view.ts'
import type { ClusterFacts } from './cluster-facts.ts'
import { type Check, checkOf, type Finding, finding, namedSome } from './finding.ts'
import { counted } from '../../schemas/wording.ts'

type Fleet = FleetView<KubernetesNode>

/** `nodes`: those that are looked at; all of the fleet by default. */
export function checkAgents(fleet: Fleet, nodes = fleet.nodes): Check {
  const { agents, namespace } = fleet
  const unknown = [...(agents.known ? [] : [agents.why]), ...(nodes.known ? [] : [nodes.why])]
  if (!agents.known || !nodes.known) return checkOf('agents', { unknown })
  const troubled = nodes.value.flatMap((node) => {
    const found = agentFinding(fleet, node)
    return found && isLasting(fleet, node, found) ? [{ node: node.metadata.name, found }] : []
  })
  const missing = troubled.filter(({ found }) => found.cause === 'no-agent')
  const silent = troubled.filter(({ found }) => found.cause === 'agent-dead')
  const findings = [
    // nodes without an agent for one reason belong together
    ...[...Map.groupBy(missing, ({ found }) => `${found.message}\n${found.unblock}`).values()].flatMap((group) =>
      missingFinding(group),
    ),
    ...silentFindings(silent, namespace),
    ...mixedFindings(fleet),
  ]
  const ready = agents.value.filter(({ isReady, isDeleting }) => isReady && !isDeleting).length
  return checkOf('agents', {
    findings,
    about: `${counted(nodes.value.length, 'node')}, ${ready} Ready agents in the cluster`,
  })
}

type Troubled = { readonly node: string; readonly found: Explanation }

function missingFinding(group: readonly Troubled[]): readonly Finding[] {
  const [first] = group
  if (first === undefined) return []
  const nodes = group.map(({ node }) => node)
  return [
    finding('agent-missing', {
      message: `${counted(nodes.length, 'node')} without an agent: ${namedSome(nodes)}; ${first.found.message}`,
      remedy: first.found.unblock,
      command: first.found.command,
      objects: [...nodes.map((name) => ({ kind: 'Node', name })), ...first.found.objects.filter(isDaemonSet)],
    }),
  ]
}

const isDaemonSet = ({ kind }: { readonly kind: string }): boolean => kind === 'DaemonSet'

function silentFindings(silent: readonly Troubled[], namespace: string): readonly Finding[] {
  const [first] = silent
  if (first === undefined) return []
  const nodes = silent.map(({ node }) => node)
  return [
    finding('agent-silent', {
      message:
        `${counted(nodes.length, 'agent')} not Ready for ten minutes or longer, on ${namedSome(nodes)}; ` +
        first.found.message,
      remedy: first.found.unblock,
      command: first.found.command,
      objects: silent.flatMap(({ node, found }) => [
        { kind: 'Node', name: node },
        ...found.objects.map((object) => ({ ...object, namespace })),
      ]),
    }),
  ]
}

/** A node that joins, or an agent that is being replaced, is no finding; nor is one that nobody wants an agent on. */
function isLasting(fleet: Fleet, node: KubernetesNode, found: Explanation): boolean {
  const { takenAtMs, skyhooks } = fleet
  if (found.cause === 'no-agent') {
    const createdAtMs = Date.parse(node.metadata.creationTimestamp ?? '')
    const isNew = takenAtMs - createdAtMs < silentAfterMs
    const isExcluded = found.objects.some(({ kind }) => kind === 'DaemonSet')
    const isSelected =
      skyhooks.known && skyhooks.value.some(({ spec }) => selects(spec.nodeSelectors, node.metadata.labels ?? {}))
    return !isNew && (!isExcluded || isSelected)
  }
  return found.cause === 'agent-dead' && takenAtMs - (found.sinceMs ?? -Infinity) >= silentAfterMs
}

function mixedFindings({ agents, namespace }: Fleet): readonly Finding[] {
  const images = agents.known ? [...countsOf(agents.value)] : []
  if (images.length < 2) return []
  const texts = images.toSorted(([, a], [, b]) => b - a).map(([image, count]) => `${count} run ${image}`)
  return [
    finding('agents-mixed', {
      message: `agents of different versions: ${namedSome(texts)}`,
      remedy:
        'let the rolling update of the DaemonSet end; if it does not move, look at the agents that are not Ready. ' +
        'Agents of both versions work side by side meanwhile',
      command: `kubectl -n ${namespace} rollout status daemonset -l app.kubernetes.io/name=skyhookd`,
      objects: images.map(([image]) => ({ kind: 'Image', name: image })),
    }),
  ]
}

function countsOf(agents: readonly AgentPod[]): ReadonlyMap<string, number> {
  const current = agents.filter(({ isDeleting, image }) => !isDeleting && image !== '')
  return new Map([...Map.groupBy(current, ({ image }) => image)].map(([image, pods]) => [image, pods.length]))
}

/** Whether an elected agent counts nodes. */
export function checkCensus({ election, fleet }: Pick<ClusterFacts, 'election' | 'fleet'>): Check {
  if (!election.known) return checkOf('census', { unknown: [election.why] })
  const { namespace, takenAtMs, agents } = fleet
  const { holderIdentity: holder = '', renewTime, leaseDurationSeconds = 0 } = election.value?.spec ?? {}
  const renewedAtMs = Date.parse(renewTime ?? '')
  const isAlive = holder !== '' && takenAtMs - renewedAtMs < 2_000 * leaseDurationSeconds + clockSlackMs
  const uncounted = uncountedSince(election.value)
  if (isAlive && uncounted === undefined) return checkOf('census', { about: `held by ${holder}` })
  if (isAlive) {
    const notCounting = finding('census-uncounted', {
      message: `agents that are elected have not counted the nodes since ${uncounted}; the current one is ${holder}`,
      remedy:
        'an agent that cannot count resigns after a minute, and another one tries: look at their logs for "census". ' +
        'Each of them has to list Nodes, Skyhooks and Leases, its own Node among them',
      command: `kubectl -n ${namespace} logs -l app.kubernetes.io/name=skyhookd --prefix --tail=-1 | grep census`,
      objects: [{ kind: 'Lease', namespace, name: 'skyhookd-census' }],
    })
    return checkOf('census', { findings: [notCounting] })
  }
  if (agents.known && agents.value.length === 0) return checkOf('census', { about: 'nobody: there is no agent' })
  const since = Number.isNaN(renewedAtMs) ? '' : `, the last one ${holder} at ${new Date(renewedAtMs).toISOString()}`
  const silent = finding('census-silent', {
    message: `no agent is elected to count the nodes${since}, by this machine's clock`,
    remedy:
      'an agent is elected within a minute where one is Ready and may write Leases: look at the agents, and at ' +
      'their log for "census"',
    command: `kubectl -n ${namespace} get lease skyhookd-census -o yaml`,
    objects: [{ kind: 'Lease', namespace, name: 'skyhookd-census' }],
  })
  return checkOf('census', { findings: [silent] })
}

/** The holder's clock and this machine's may differ. */
const clockSlackMs = 30_000
