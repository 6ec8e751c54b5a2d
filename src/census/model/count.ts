import { candidatesIn, compartmentOfNode, compartmentsOf } from '../../lease/policy/compartments.ts'
import type { Budget } from '../../schemas/budget.ts'
import type { ReasonName } from '../../schemas/catalogue/reasons.ts'
import { isFailure } from '../../schemas/catalogue/reason.ts'
import type { DeploymentPolicySpec, PolicyKnowledge } from '../../schemas/deployment-policy.ts'
import { createPublishedReader } from '../../schemas/published.ts'
import { selects } from '../../schemas/selectors.ts'
import type { NodeStatus } from '../../schemas/skyhook.ts'
import { appliedHash, completionHash } from '../../stages/model/package-inputs.ts'
import type { SkyhookView } from '../../stages/model/snapshot.ts'
import { idleStatus, isDisabled, isPaused, specProblem } from '../../stages/skyhook/gates.ts'
import type { Agents } from './agent-liveness.ts'
import { type CensusNode, type NodeFact, nodeFact } from './node-facts.ts'

/** The counts of one Skyhook at one moment. */
export type Counts = {
  /** The selected nodes by name. */
  readonly nodes: readonly NodeFact[]
  readonly complete: number
  /** Nodes whose work waits only for a slot or a batch, or that have not reported yet. */
  readonly waiters: number
  /** Hash of the spec that `complete` was counted for. */
  readonly applied: string
  readonly isPaused: boolean
  readonly isDisabled: boolean
  /** Why no node can work on this spec, in one message. */
  readonly specProblem: string | undefined
  /** The same nodes, by compartment. */
  readonly compartments: readonly CompartmentCount[]
  /** What limits the nodes without a policy. */
  readonly budget: Budget
  /** The policy that the spec names. */
  readonly policy: PolicyKnowledge | undefined
}

/** Counts the nodes that the Skyhook selects. Reports of other nodes do not matter. */
export function countSelectedNodes(view: SkyhookView, nodes: Iterable<CensusNode>, agents: Agents): Counts {
  const applied = appliedHash(view.spec)
  const context = {
    skyhook: view.metadata.name,
    applied: completionHash(view),
    idle: idleStatus(view),
    read: createPublishedReader(),
  }
  const labelled: LabelledFact[] = []
  for (const node of nodes)
    if (selects(view.spec.nodeSelectors, node.labels))
      labelled.push({ fact: nodeFact(node, agents.of(node.name), context), labels: node.labels })
  labelled.sort((a, b) => (a.fact.name < b.fact.name ? -1 : 1))
  const facts = labelled.map(({ fact }) => fact)
  return {
    nodes: facts,
    complete: facts.filter(({ status }) => status === 'complete').length,
    waiters: facts.filter(isInLine).length,
    applied,
    isPaused: isPaused(view),
    isDisabled: isDisabled(view),
    specProblem: specProblem(view)?.message,
    compartments: divideNodes(labelled, view.policy),
    budget: view.budget,
    policy: view.policy,
  }
}

/** Its work waits only for a slot or a batch, or it has not reported yet. */
export const isInLine = ({ status, reason }: NodeFact): boolean =>
  status === 'waiting' && (reason === undefined || lineReasons.has(reason.reason))

/** Also while it retries, so that messages do not change with each attempt. */
export const isFailing = ({ status, reason }: NodeFact): boolean =>
  status === 'erroring' || (status === 'in_progress' && isFailure(reason?.reason ?? ''))

const lineReasons: ReadonlySet<string> = new Set<ReasonName>(['WaitingForSlot', 'WaitingForBatch', 'Preparing'])

/** The Skyhook's status: the most urgent one of its incomplete nodes. `unknown` only if every one is unknown. */
export function rollUp(counts: Counts): NodeStatus {
  if (counts.specProblem !== undefined) return 'blocked'
  if (counts.complete === counts.nodes.length) return 'complete'
  if (counts.isPaused) return 'paused'
  if (counts.isDisabled) return 'disabled'
  const present = new Set(counts.nodes.map(({ status }) => status))
  return rollUpOrder.find((status) => present.has(status)) ?? 'unknown'
}

/** `paused` and `disabled` are for nodes that have not yet observed that their Skyhook continues. */
const rollUpOrder: readonly NodeStatus[] = ['in_progress', 'erroring', 'blocked', 'waiting', 'paused', 'disabled']

/** The nodes of one compartment; `''` is that of a Skyhook without a policy. */
export type CompartmentCount = {
  readonly name: string
  /** By name. */
  readonly nodes: readonly NodeFact[]
  /** Selected nodes that the compartment's selector matches; absent where it has none. */
  readonly candidates?: number
}

type LabelledFact = { readonly fact: NodeFact; readonly labels: Readonly<Record<string, string>> }

/** Divides the selected nodes as the policy says; without a usable policy all of them are together. */
function divideNodes(nodes: readonly LabelledFact[], policy: PolicyKnowledge | undefined): readonly CompartmentCount[] {
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
