/** All checks of a cluster or of a node, from what the API shows. */
import type { KubeTransport } from '../../../kube/transport.ts'
import { sleep } from '../../../schemas/clock.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { FleetView } from '../../fleet-view/fleet-view.ts'
import { readVitals } from '../../fleet-view/vitals.ts'
import { CommandError, notFoundError, exitCodes } from '../../framework/command-error.ts'
import { clusterReport, nodeReport } from '../cluster-report.ts'
import type { Check } from '../finding.ts'
import { confirmed, type Suspicion, suspicionsOf } from '../left-overs.ts'
import { expectedDefinitions } from './expected-definitions.ts'
import type { ClusterRequest } from './cluster-request.ts'
import { readCluster, readDoctorFleet } from './read-cluster.ts'

/** Agents need less time between two steps of their work, such as slot and cordon. */
const secondLookMs = 5_000

/** Throws for an API server that does not answer. */
export async function checkCluster(transport: KubeTransport, request: ClusterRequest): Promise<readonly Check[]> {
  const expected = expectedDefinitions()
  const names = expected.map(({ name }) => name)
  const facts = await readCluster(transport, request, names)
  return clusterReport(facts, expected, await leftOvers(transport, request, facts.fleet))
}

/** Throws "not found" for a missing node. */
export async function checkNode(
  transport: KubeTransport,
  request: ClusterRequest,
  name: string,
): Promise<readonly Check[]> {
  const fleet = await readDoctorFleet(transport, request)
  if (!fleet.nodes.known) throw new CommandError(exitCodes.refused, `cannot look at node ${name}: ${fleet.nodes.why}`)
  const node = fleet.nodes.value.find(({ metadata }) => metadata.name === name)
  if (node === undefined) throw notFoundError(`there is no Node ${name}`, 'kubectl get nodes')
  const vitals = await readVitals(transport, request)
  return nodeReport({ fleet, vitals }, node, await leftOvers(transport, request, fleet))
}

/** Looks again if something seems to be left over. */
async function leftOvers(
  transport: KubeTransport,
  request: ClusterRequest,
  fleet: FleetView<KubernetesNode>,
): Promise<readonly Suspicion[]> {
  const first = suspicionsOf(fleet)
  if (first.length === 0) return first
  await sleep(request.clock, secondLookMs, request.signal)
  return confirmed(first, suspicionsOf(await readDoctorFleet(transport, request)))
}
