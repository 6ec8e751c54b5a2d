/** The fleet view of a screen of rollouts. */
import type { KubeTransport } from '../../kube/transport.ts'
import { selects } from '../../schemas/selectors.ts'
import type { FleetView } from '../fleet-view/fleet-view.ts'
import { readerOf, nodesAs, type FleetRequest, readFleet } from '../fleet-view/collections.ts'
import { valueOr } from '../fleet-view/readable.ts'
import { createNodeReader, type NodeRow } from './node-report.ts'

/**
 * Reads Nodes without their spec and status. Reads them again as a whole if a Skyhook keeps nodes closed by a taint:
 * only the spec shows whether a Node has it. Throws for an API server that does not answer.
 */
export async function readRollouts(
  transport: KubeTransport,
  request: Pick<FleetRequest<NodeRow>, 'namespace' | 'clock' | 'signal'>,
): Promise<FleetView<NodeRow>> {
  const nodeOf = createNodeReader()
  const fleet = await readFleet(transport, { ...request, nodeOf, isMetadataEnough: true })
  if (!needsTaints(fleet)) return fleet
  return { ...fleet, nodes: await readerOf(transport, request.signal)(nodesAs(nodeOf)) }
}

/** Whether a node that a Skyhook with `runtimeRequired` selects reports that it is not complete. */
function needsTaints({ skyhooks, nodes }: FleetView<NodeRow>): boolean {
  const rows = valueOr(nodes, [])
  return valueOr(skyhooks, []).some(
    ({ metadata, spec }) =>
      spec.runtimeRequired === true &&
      rows.some(
        ({ labels, reports }) =>
          selects(spec.nodeSelectors, labels) && reports.get(metadata.name)?.status !== 'complete',
      ),
  )
}
