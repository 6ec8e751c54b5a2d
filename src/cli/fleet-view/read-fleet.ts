import type { KubeTransport } from '../../kube/transport.ts'
import { isLedger, isStray, type Lease, readSlot } from '../../lease/slot.ts'
import type { Clock } from '../../schemas/clock.ts'
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { known, type Known, unknown } from '../../stages/model/snapshot.ts'
import { readerOf } from './collection.ts'
import { fleetCollections, nodesAs } from './collections.ts'
import type { FleetView } from './fleet-view.ts'
import { mapped } from './readable.ts'
import type { FleetSettings } from './settings.ts'

export type FleetRequest<Node> = {
  readonly namespace: string
  readonly clock: Clock
  readonly signal?: AbortSignal | undefined
  /** What is kept of each Node. */
  readonly nodeOf: (node: KubernetesNode) => Node
  /** Only the metadata of Nodes is asked for; `nodeOf` then gets no spec and no status. */
  readonly isMetadataEnough?: boolean
}

/**
 * Reads everything that a view of the fleet needs, in consistent LISTs by pages. Throws for an API server that does not
 * answer. It does not use a watch that ends after its list: that would need the right to watch, and retry forever.
 */
export async function readFleet<Node>(transport: KubeTransport, request: FleetRequest<Node>): Promise<FleetView<Node>> {
  const { namespace, clock, signal, nodeOf, isMetadataEnough } = request
  const collections = fleetCollections(namespace)
  const read = readerOf(transport, signal)
  const [skyhooks, policies, nodes, leases, agents, daemonSets, settings] = await Promise.all([
    read(collections.skyhooks),
    read(collections.policies),
    read(nodesAs(nodeOf, isMetadataEnough)),
    read(collections.leases),
    read(collections.agents),
    read(collections.daemonSets),
    read(collections.settings),
  ])
  return {
    takenAtMs: clock.wallMs(),
    namespace,
    skyhooks,
    policies,
    nodes,
    ...heldLeases(leases),
    agents,
    daemonSet: mapped(daemonSets, ([first]) => first),
    settings: firstSettings(settings, namespace),
  }
}

/** Sorts the Leases of a fleet. */
export const heldLeases = (
  leases: Known<readonly Lease[]>,
): Pick<FleetView<unknown>, 'slots' | 'ledgers' | 'strays'> => ({
  slots: mapped(leases, (all) => all.flatMap((lease) => readSlot(lease) ?? [])),
  ledgers: mapped(leases, (all) => all.filter(isLedger)),
  strays: mapped(leases, (all) => all.filter(isStray)),
})

function firstSettings(found: Known<readonly FleetSettings[]>, namespace: string): Known<FleetSettings> {
  if (!found.known) return found
  const [first] = found.value
  return first ? known(first) : unknown(`no ConfigMap in namespace ${namespace} has settings`)
}
