/** What a screen of rollouts reads: its fleet view, and the last completions. */
import type { KubeObject } from '../../../kube/objects.ts'
import type { KubeTransport } from '../../../kube/transport.ts'
import { selects } from '../../../schemas/selectors.ts'
import { type FleetRequest, nodesAs, readerOf, readFleet } from '../../fleet/fleet-view/collections.ts'
import type { FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import { eventsAbout } from '../../fleet/fleet-view/node-detail.ts'
import { valueOr } from '../../fleet/fleet-view/readable.ts'
import type { Completion } from './fleet-status.ts'
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

type EventObject = KubeObject & { readonly message?: string; readonly lastTimestamp?: string }

/** When nodes completed, by their Events of the last hour; none where Events may not be read. */
export async function readCompletions(transport: KubeTransport, signal?: AbortSignal): Promise<readonly Completion[]> {
  const completed = { ...eventsAbout('Node', ',reason=SkyhookCompleted'), keep: completionOf }
  return valueOr(await readerOf(transport, signal)(completed), [])
}

function completionOf({ message = '', lastTimestamp = '' }: EventObject): Completion | undefined {
  const [, skyhook] = /^Skyhook (\S+) /.exec(message) ?? []
  const atMs = Date.parse(lastTimestamp)
  return skyhook === undefined || Number.isNaN(atMs) ? undefined : { skyhook, atMs }
}
