import { candidatesIn, compartmentOfNode, compartmentsOf } from '../lease/policy/compartments.ts'
import type { DeploymentPolicySpec, PolicyKnowledge } from '../schemas/deployment-policy.ts'
import type { NodeFact } from './node-facts.ts'

/** The nodes of one compartment; `''` is that of a Skyhook without a policy. */
export type CompartmentCount = {
  readonly name: string
  /** By name. */
  readonly nodes: readonly NodeFact[]
  /** Selected nodes that the compartment's selector matches; absent where it has none. */
  readonly candidates?: number
}

export type LabelledFact = { readonly fact: NodeFact; readonly labels: Readonly<Record<string, string>> }

/** Divides the selected nodes as the policy says; without a usable policy all of them are together. */
export function divideNodes(
  nodes: readonly LabelledFact[],
  policy: PolicyKnowledge | undefined,
): readonly CompartmentCount[] {
  if (policy?.state !== 'found') return [{ name: '', nodes: nodes.map(({ fact }) => fact) }]
  const { spec } = policy
  const candidates = candidatesIn(
    spec,
    nodes.map(({ labels }) => labels),
  )
  const members = Map.groupBy(nodes, ({ labels }) => compartmentOfNode(spec, labels, (name) => candidates.get(name)))
  return compartmentsOf(spec).map(({ name }) => {
    const matching = candidates.get(name)
    return {
      name,
      nodes: (members.get(name) ?? []).map(({ fact }) => fact),
      ...(matching !== undefined && { candidates: matching }),
    }
  })
}

/** Names of all compartments of a policy. */
export const compartmentNames = (spec: DeploymentPolicySpec): string[] => compartmentsOf(spec).map(({ name }) => name)
