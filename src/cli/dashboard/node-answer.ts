/** The answer to a click on a node: it is read as a whole, and explained. */
import { isNotFound } from '../../kube/errors.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import type { Known } from '../../stages/model/snapshot.ts'
import { explainNode } from '../reason/explain/explain-node.ts'
import type { FleetView } from '../fleet/fleet-view/fleet-view.ts'
import { readNodeDetail, readSkyhookEvents, type NodeEvent } from '../fleet/fleet-view/node-detail.ts'
import { slimNode } from '../fleet/fleet-view/project.ts'
import { mapped, UnreadError, valueOr } from '../fleet/fleet-view/readable.ts'
import { notFoundError, refusedError } from '../base/framework/command-error.ts'
import { nodePath, publishedPackages, skyhooksOn, summarize } from '../fleet/objects/read.ts'
import { agentStates, nodeFacts, reasonOf } from '../reason/status/node-facts.ts'
import type { NodeRow } from '../reason/status/node-report.ts'
import type { NodeAction, NodeAnswer, NodeOfSkyhook, EventRow, OtherSkyhook, PanelEvents } from './page-data.ts'

/** Where a node is: in a cluster, or in what somebody saved of one. */
export type NodePlace = {
  readonly transport: KubeTransport
  readonly actions: readonly NodeAction[]
  /** A command for the cluster that the page shows. */
  readonly here: (command: string) => string
  readonly noNode: () => Error
}

/** @throws CommandError for what is not there, or may not be read */
export async function answerAbout(
  { skyhook: name, node: nodeName }: NodeOfSkyhook,
  fleet: FleetView<NodeRow>,
  { transport, actions, here, noNode }: NodePlace,
  signal: AbortSignal,
): Promise<NodeAnswer> {
  const skyhook = skyhookNamed(fleet.skyhooks, name)
  const [node, detail, skyhookEvents] = await Promise.all([
    readNode(transport, { name: nodeName, noNode, signal }),
    readNodeDetail(transport, nodeName, signal),
    readSkyhookEvents(transport, name, signal),
  ])
  const view = { ...fleet, nodes: mapped(fleet.nodes, (rows) => [node, ...othersByName(rows, nodeName)]) }
  const packages = [...(publishedPackages(node, name)?.values() ?? [])]
  return {
    nowMs: fleet.takenAtMs,
    explanation: withCommands(explainNode(view, { skyhook, node, detail }), here),
    packages: packages.map(({ name, version, stage, state, restarts }) => ({ name, version, stage, state, restarts })),
    others: othersOn(node, fleet, name),
    events: panelEvents({ node: detail.events, skyhook: skyhookEvents }),
    actions: actions.map(({ what, command }) => ({ what, command: here(command) })),
  }
}

async function readNode(
  transport: KubeTransport,
  { name, noNode, signal }: Pick<NodePlace, 'noNode'> & { readonly name: string; readonly signal: AbortSignal },
): Promise<KubernetesNode> {
  try {
    return slimNode(await transport.json<KubernetesNode>('GET', nodePath(name), { signal }))
  } catch (error) {
    if (isNotFound(error)) throw noNode()
    if (error instanceof UnreadError) throw refusedError(error.message)
    throw error
  }
}

/** A decision about one node needs of the others only that they are there. */
const othersByName = (rows: readonly NodeRow[], name: string): readonly KubernetesNode[] =>
  rows.filter((row) => row.name !== name).map((row) => ({ metadata: { name: row.name, uid: '', resourceVersion: '' } }))

/** States and reasons are those of the squares, packages those of `node status`. */
function othersOn(node: KubernetesNode, fleet: FleetView<NodeRow>, shown: string): readonly OtherSkyhook[] {
  const rows = mapped(fleet.nodes, (all) => all.filter((row) => row.name === node.metadata.name))
  const agents = agentStates(fleet)
  const facts = new Map(
    valueOr(fleet.skyhooks, []).flatMap((skyhook) =>
      valueOr(nodeFacts({ ...fleet, nodes: rows }, skyhook, agents), []).map((fact) => [skyhook.metadata.name, fact]),
    ),
  )
  const names = new Set([...facts.keys(), ...skyhooksOn(node)])
  names.delete(shown)
  return [...names].toSorted().map((skyhook) => {
    const fact = facts.get(skyhook)
    const reason = fact && reasonOf(fact)?.reason
    const { complete, total } = summarize(publishedPackages(node, skyhook) ?? new Map())
    return { skyhook, ...(fact && { status: fact.status }), ...(reason !== undefined && { reason }), complete, total }
  })
}

function withCommands(
  explanation: NodeAnswer['explanation'],
  here: (command: string) => string,
): NodeAnswer['explanation'] {
  const changed = <F extends { readonly command: string }>(finding: F): F => ({
    ...finding,
    command: here(finding.command),
  })
  return {
    ...explanation,
    verdict: explanation.verdict && changed(explanation.verdict),
    gates: explanation.gates.map((gate) => ({ ...gate, findings: gate.findings.map(changed) })),
  }
}

/** @throws CommandError for a Skyhook that is not there, or may not be read */
export function skyhookNamed(skyhooks: Known<readonly Skyhook[]>, name: string): Skyhook {
  if (!skyhooks.known) throw refusedError(skyhooks.why)
  const found = skyhooks.value.find(({ metadata }) => metadata.name === name)
  if (found === undefined) throw notFoundError(`there is no Skyhook ${name}`, 'kubectl get skyhooks')
  return found
}

/** The panel is narrow, and has more to say. */
const maxEvents = 5

type EventsOfBoth = { readonly node: Known<readonly NodeEvent[]>; readonly skyhook: Known<readonly NodeEvent[]> }

/** The newest of the Node and of the Skyhook together, and why some may be missing. */
export function panelEvents({ node, skyhook }: EventsOfBoth): PanelEvents {
  const rowsOf = (about: EventRow['about'], events: Known<readonly NodeEvent[]>): readonly EventRow[] =>
    valueOr(events, []).map(({ reason, message, atMs }) => ({ about, reason, message, atMs }))
  const rows = [...rowsOf('Node', node), ...rowsOf('Skyhook', skyhook)]
  const unread = [node, skyhook].flatMap((events) => (events.known ? [] : [events.why]))
  return { newest: rows.toSorted((a, b) => b.atMs - a.atMs).slice(0, maxEvents), unread: [...new Set(unread)] }
}
