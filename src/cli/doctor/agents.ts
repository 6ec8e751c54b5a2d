/** Whether every node has an agent that answers, all agents are of one version, and one of them counts. */
import { uncountedSince } from '../../lease/election-lease.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { silentAfterMs } from '../../stages/skyhook/gates.ts'
import { agentFinding, agentPodOn, podFailure, slowStartMs } from '../reason/explain/agent-finding.ts'
import type { Finding as Explanation } from '../reason/explain/finding.ts'
import type { AgentPod, FleetView } from '../fleet/fleet-view/fleet-view.ts'
import { valueOr } from '../fleet/fleet-view/readable.ts'
import type { Vitals } from '../fleet/fleet-view/vitals.ts'
import type { ClusterFacts } from './cluster-facts.ts'
import { type Check, checkOf, type Finding, finding, namedSome } from './finding.ts'
import type { Suspicion } from './left-overs.ts'
import { counted } from '../../schemas/wording.ts'

type Fleet = FleetView<KubernetesNode>

/** Of an installation. `nodes`: the checked ones. `missing`: nodes that two looks found without an agent. */
export type AgentsRequest = {
  readonly fleet: Fleet
  readonly nodes: Fleet['nodes']
  readonly vitals: Vitals
  readonly suspicions: readonly Suspicion[]
}

export function checkAgents({ fleet, nodes, vitals, suspicions }: AgentsRequest): Check {
  const { agents, namespace } = fleet
  const unknown = [...(agents.known ? [] : [agents.why]), ...(nodes.known ? [] : [nodes.why])]
  if (!nodes.known) return checkOf('agents', { unknown })
  const isMissing = new Set(suspicions.filter(({ id }) => id === 'agent-missing').map(({ node }) => node))
  const ready = valueOr(agents, []).filter(({ isReady, isDeleting }) => isReady && !isDeleting).length
  const troubled = nodes.value.flatMap((node) => {
    const found = agentFinding(fleet, node, vitals)
    const isReported =
      found?.cause === 'no-agent'
        ? isMissing.has(node.metadata.name)
        : found !== undefined && isLasting(fleet, node, { found, vitals, isAlone: ready === 0 })
    return found && isReported ? [{ node: node.metadata.name, found }] : []
  })
  const ofCause = (cause: Explanation['cause']): readonly Troubled[] =>
    troubled.filter(({ found }) => found.cause === cause)
  const findings = [
    ...ofCause('node-not-ready').map(notReadyFinding),
    // nodes without an agent for one reason belong together
    ...groups(ofCause('no-agent'), ({ message, unblock }) => `${message}\n${unblock}`).flatMap(missingFinding),
    ...groups(ofCause('agent-dead'), ({ message, objects }) => withoutName(message, objects)).flatMap((group) =>
      silentFindings(group, namespace),
    ),
    ...mixedFindings(fleet),
  ]
  const isUnsaid = agents.known && ready === 0 && nodes.value.length > 0 && troubled.length === 0
  return checkOf('agents', {
    findings,
    unknown: isUnsaid ? ['no agent is Ready yet: look again in half a minute'] : unknown,
    about: `${counted(nodes.value.length, 'node')}, ${ready} Ready agents in the cluster`,
  })
}

const groups = (troubled: readonly Troubled[], keyOf: (found: Explanation) => string): (readonly Troubled[])[] => [
  ...Map.groupBy(troubled, ({ found }) => keyOf(found)).values(),
]

/** The same problem of another pod has the same text. */
const withoutName = (message: string, objects: Explanation['objects']): string =>
  objects.reduce((text, { name }) => text.replaceAll(name, ''), message)

const notReadyFinding = ({ node, found }: Troubled): Finding =>
  finding('node-not-ready', {
    message: found.message,
    remedy: found.unblock,
    command: found.command,
    objects: [{ kind: 'Node', name: node }],
  })

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
      message: `${counted(nodes.length, 'agent')} not Ready, on ${namedSome(nodes)}; ${first.found.message}`,
      remedy: first.found.unblock,
      command: first.found.command,
      objects: silent.flatMap(({ node, found }) => [
        { kind: 'Node', name: node },
        ...found.objects.map((object) => ({ ...object, namespace })),
      ]),
    }),
  ]
}

type Doubted = {
  readonly found: Explanation
  readonly vitals: Vitals
  /** No agent is Ready: a rolling update does not do that. */
  readonly isAlone: boolean
}

/** Whether it is more than a start, a rolling update or a reboot for a package. */
function isLasting(fleet: Fleet, node: KubernetesNode, { found, vitals, isAlone }: Doubted): boolean {
  const { takenAtMs } = fleet
  if (found.cause === 'node-not-ready') return !isJoining(node, takenAtMs)
  const pod = agentPodOn(fleet, node)
  if (found.cause !== 'agent-dead' || pod === undefined) return false
  const ageMs = takenAtMs - (pod.sinceMs ?? -Infinity)
  return podFailure(pod, vitals.warnings, takenAtMs).isLasting || (isAlone && ageMs >= slowStartMs)
}

/** A Node is registered before its network is there. */
const isJoining = ({ metadata }: KubernetesNode, takenAtMs: number): boolean =>
  takenAtMs - Date.parse(metadata.creationTimestamp ?? '') < joiningMs

const joiningMs = 2 * 60_000

function mixedFindings({ agents, namespace, takenAtMs }: Fleet): readonly Finding[] {
  const isRolling = valueOr(agents, []).some(({ createdAt }) => takenAtMs - Date.parse(createdAt) < silentAfterMs)
  const images = agents.known ? [...countsOf(agents.value)] : []
  if (images.length < 2 || isRolling) return []
  const texts = images.toSorted(([, a], [, b]) => b - a).map(([image, count]) => `${count} run ${image}`)
  return [
    finding('agents-mixed', {
      message: `agents of different versions: ${namedSome(texts)}`,
      remedy:
        'no agent was replaced for ten minutes: look at the agents that are not Ready, and at the updateStrategy. ' +
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
        'Each of them must list Nodes, Skyhooks and Leases, its own Node among them',
      command: `kubectl -n ${namespace} logs -l app.kubernetes.io/name=skyhookd --prefix --tail=-1 | grep census`,
      objects: [{ kind: 'Lease', namespace, name: 'skyhookd-census' }],
    })
    return checkOf('census', { findings: [notCounting] })
  }
  if (agents.known && agents.value.length === 0) return checkOf('census', { about: 'none: there is no agent' })
  const since = Number.isNaN(renewedAtMs) ? '' : `, the last one ${holder} at ${new Date(renewedAtMs).toISOString()}`
  const silent = finding('census-silent', {
    message: `no agent is elected to count the nodes${since}, by this machine's clock`,
    remedy:
      'an agent is elected within a minute if one is Ready and may write Leases: look at the agents, and at ' +
      'their log for "census"',
    command: `kubectl -n ${namespace} get lease skyhookd-census -o yaml`,
    objects: [{ kind: 'Lease', namespace, name: 'skyhookd-census' }],
  })
  return checkOf('census', { findings: [silent] })
}

/** The holder's clock and this machine's may differ. */
const clockSlackMs = 30_000
