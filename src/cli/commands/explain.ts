/** Why a Skyhook is not complete, on one node or on all. */
import { explainNode, type NodeExplanation } from '../reason/explain/explain-node.ts'
import { explanationText, groupsText } from '../reason/explain/explanation-text.ts'
import { nodeGroups } from '../reason/explain/node-groups.ts'
import { nobodySelected } from '../reason/explain/selector-finding.ts'
import type { FleetView } from '../fleet/fleet-view/fleet-view.ts'
import { type NodeDetail, readNodeDetail, readNodeEvents } from '../fleet/fleet-view/node-detail.ts'
import { slimNode } from '../fleet/fleet-view/project.ts'
import { readFleet } from '../fleet/fleet-view/collections.ts'
import { valueOr } from '../fleet/fleet-view/readable.ts'
import { readVitals } from '../fleet/fleet-view/vitals.ts'
import { defineCommand } from '../base/framework/command.ts'
import { CommandError, notFoundError, exitCodes } from '../base/framework/command-error.ts'
import { explainPainter } from '../base/output/painters.ts'
import { envelope, print } from '../base/output/print.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { cordonKey } from '../../schemas/annotations.ts'
import { selects } from '../../schemas/selectors.ts'
import type { Skyhook } from '../../schemas/skyhook.ts'
import { unknown } from '../../stages/model/snapshot.ts'
import { fromFlag, openSource } from '../bundle/open.ts'

/** Pods are read only for nodes that are out of service: with a budget these are few. */
const maxPodReads = 50

export const explain = defineCommand({
  name: 'explain',
  summary: 'say why a Skyhook is not complete: every gate, since when it is closed, and what opens it',
  description:
    'Repeats the decision of the agents from what the API shows. Reasons that nodes publish are used for what only ' +
    'their hosts know. It reports where they differ from the decision. What you may not read is unknown.',
  example: 'kubectl skyhook explain tuning n1',
  otherExamples: ['kubectl skyhook explain tuning n1 --from support.tar.gz'],
  arguments: {
    skyhook: { summary: 'name of the Skyhook', complete: 'skyhooks' },
    node: { summary: 'name of the node; without it all nodes, by cause', isOptional: true, complete: 'nodes' },
  },
  flags: {
    from: fromFlag,
  },
  exitCodes: { [exitCodes.notFound]: 'the Skyhook or the node does not exist, or no agents are installed' },
  formats: ['table', 'json', 'yaml'],
  async run(context, { arguments: { skyhook: name, node: nodeName }, flags: { from } }) {
    const { signal } = context
    const { transport, namespace, clock } = await openSource(context, from)
    const fleet = await readFleet(transport, { namespace, clock, signal, nodeOf: slimNode })
    const skyhook = foundIn(fleet, 'skyhooks', name, 'kubectl get skyhooks')
    const nodes =
      nodeName === undefined ? selectedNodes(fleet, skyhook) : [foundIn(fleet, 'nodes', nodeName, 'kubectl get nodes')]
    const detailOf =
      nodeName === undefined
        ? await detailsOfFleet(transport, nodes, name, signal)
        : async (node: KubernetesNode) => await readNodeDetail(transport, node.metadata.name, signal)
    const vitals = await readVitals(transport, { namespace, signal })
    const explanations: NodeExplanation[] = []
    for (const node of nodes)
      explanations.push(explainNode(fleet, { skyhook, node, detail: await detailOf(node), vitals }))

    const groups = nodeGroups(explanations)
    const unselected = nodes.length === 0 ? nobodySelected(skyhook, valueOr(fleet.nodes, [])) : undefined
    const complete = explanations.filter(({ state }) => state === 'complete').length
    const [first] = explanations
    const text =
      nodeName !== undefined && first !== undefined
        ? explanationText(first, fleet.takenAtMs)
        : groupsText(name, { groups, selected: nodes.length, complete, unselected }, fleet.takenAtMs)
    const document = envelope('NodeExplanation', explanations)
    await print(context, { rows: [text], document, lines: (block) => block.trimEnd(), paint: explainPainter })
    return exitCodes.ok
  },
})

/** Throws for an object that does not exist, and for one that the caller may not read. */
function foundIn<Kind extends 'skyhooks' | 'nodes'>(
  fleet: FleetView<KubernetesNode>,
  kind: Kind,
  name: string,
  remedy: string,
): Kind extends 'skyhooks' ? Skyhook : KubernetesNode {
  const list = fleet[kind]
  if (!list.known) throw new CommandError(exitCodes.refused, `cannot explain ${name}: ${list.why}`)
  const found = (list.value as readonly (Skyhook | KubernetesNode)[]).find(({ metadata }) => metadata.name === name)
  if (found === undefined)
    throw notFoundError(`there is no ${kind === 'skyhooks' ? 'Skyhook' : 'Node'} ${name}`, remedy)
  return found as Kind extends 'skyhooks' ? Skyhook : KubernetesNode
}

function selectedNodes({ nodes }: FleetView<KubernetesNode>, { metadata, spec }: Skyhook): readonly KubernetesNode[] {
  if (!nodes.known) throw new CommandError(exitCodes.refused, `cannot explain ${metadata.name}: ${nodes.why}`)
  return nodes.value.filter((node) => selects(spec.nodeSelectors, node.metadata.labels ?? {}))
}

/** Events come in one LIST for all nodes, pods for those that the Skyhook has cordoned. */
async function detailsOfFleet(
  transport: KubeTransport,
  nodes: readonly KubernetesNode[],
  skyhook: string,
  signal: AbortSignal,
): Promise<(node: KubernetesNode) => Promise<NodeDetail>> {
  const events = await readNodeEvents(transport, signal)
  const cordoned = nodes.filter(({ metadata }) => Object.hasOwn(metadata.annotations ?? {}, cordonKey(skyhook)))
  const isRead = new Set(cordoned.slice(0, maxPodReads).map(({ metadata }) => metadata.name))
  const unread = unknown('pods are read for single nodes only: name the node')
  return async ({ metadata: { name } }) =>
    isRead.has(name)
      ? await readNodeDetail(transport, name, signal)
      : { pods: unread, budgets: unread, events: events(name) }
}
