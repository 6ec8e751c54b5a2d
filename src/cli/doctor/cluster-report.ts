/** All checks of a cluster, or those of one node. */
import type { KubernetesNode } from '../../schemas/kubernetes.ts'
import { known, type Known } from '../../stages/model/snapshot.ts'
import { checkAgents, checkCensus } from './agents.ts'
import type { ClusterFacts } from './cluster-facts.ts'
import { checkDefinitions, type ExpectedDefinition } from './definitions.ts'
import type { Check } from './finding.ts'
import { checkHosts } from './hosts.ts'
import { checkCordons, checkSlots, type Suspicion } from './left-overs.ts'
import { checkPermissions } from './permissions.ts'
import { checkPolicies } from './policies.ts'
import { checkPriority } from './priority.ts'
import { checkTaints } from './taints.ts'
import { checkVersions } from './versions.ts'

/** `suspicions`: those that a second look has confirmed. */
export function clusterReport(
  facts: ClusterFacts,
  expected: readonly ExpectedDefinition[],
  suspicions: readonly Suspicion[],
): readonly Check[] {
  const { fleet, vitals } = facts
  return [
    checkVersions(facts),
    checkPermissions(facts),
    checkPolicies(facts),
    checkDefinitions(facts, expected),
    checkPriority(facts),
    checkAgents({ fleet, nodes: fleet.nodes, vitals, suspicions }),
    checkCensus(facts),
    checkCordons(fleet, suspicions),
    checkSlots(fleet, suspicions),
    checkTaints(fleet),
    checkHosts(fleet, fleet.nodes),
  ]
}

export function nodeReport(
  { fleet, vitals }: Pick<ClusterFacts, 'fleet' | 'vitals'>,
  node: KubernetesNode,
  suspicions: readonly Suspicion[],
): readonly Check[] {
  const { name } = node.metadata
  const nodes: Known<readonly KubernetesNode[]> = known([node])
  return [
    checkAgents({ fleet, nodes, vitals, suspicions }),
    checkCordons(fleet, suspicions, name),
    checkSlots(fleet, suspicions, name),
    checkTaints(fleet, nodes),
    checkHosts(fleet, nodes),
  ]
}
