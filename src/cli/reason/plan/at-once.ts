/** How many nodes may be out at once, by the budget or the policy as they would be. Pure. */
import { candidatesIn, compartmentOfNode, compartmentsOf } from '../../../lease/policy/compartments.ts'
import { nextSize, type Strategy } from '../../../lease/policy/strategy.ts'
import { bootstrapLimit, ceilingOf, effectiveLimit } from '../../../lease/rule.ts'
import { takesDefaultBudget } from '../../../schemas/budget.ts'
import type { DeploymentPolicySpec } from '../../../schemas/deployment-policy.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import type { SkyhookSpec } from '../../../schemas/skyhook.ts'
import type { FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import { knownBudget } from '../../fleet/fleet-view/settings.ts'
import type { Known } from '../../../stages/model/snapshot.ts'

/** The nodes of one compartment; `''` is that of a Skyhook without a policy. */
export type CompartmentPlan = {
  readonly compartment: string
  /** Of nodes that join the cluster: they have a budget of their own. */
  readonly isJoining?: true
  readonly nodes: readonly string[]
  /** At once; `unlimited` without a budget. Undefined while the policy is not there or not known. */
  readonly limit: number | 'unlimited' | undefined
  /** Where the limit comes from, or why it is not known. */
  readonly source: string
  /** Sizes of the batches, in order, if no node fails; absent without a policy. */
  readonly batches?: readonly number[]
}

/**
 * `nodes`: all that the Skyhook would select. `policy`: the one that it would name; undefined if it is not there.
 * `joining`: names of those that join the cluster.
 */
export function atOnce(
  spec: SkyhookSpec,
  policy: Known<DeploymentPolicySpec | undefined>,
  nodes: readonly KubernetesNode[],
  settings: FleetView<unknown>['settings'],
  joining: ReadonlySet<string> = new Set(),
): readonly CompartmentPlan[] {
  const { deploymentPolicy } = spec
  if (!deploymentPolicy) return withJoining(spec, ofBudget(spec, nodes.map(nameOf), settings), joining)
  const source = `DeploymentPolicy ${deploymentPolicy}`
  if (!policy.known || policy.value === undefined) {
    const why = policy.known ? `${source} does not exist, so no node starts` : policy.why
    return [{ compartment: '', nodes: nodes.map(nameOf), limit: policy.known ? 0 : undefined, source: why }]
  }
  const { value } = policy
  const candidates = candidatesIn(
    value,
    nodes.map(({ metadata }) => metadata.labels ?? {}),
  )
  const members = Map.groupBy(nodes, ({ metadata }) =>
    compartmentOfNode(value, metadata.labels ?? {}, (name) => candidates.get(name)),
  )
  return compartmentsOf(value).flatMap(({ name, budget, strategy }): readonly CompartmentPlan[] => {
    const names = (members.get(name) ?? []).map(nameOf)
    if (names.length === 0) return []
    const ceiling = ceilingOf(budget, names.length)
    const limit = Number.isFinite(ceiling) ? ceiling : 'unlimited'
    const found = withJoining(spec, { compartment: name, nodes: names, limit, source }, joining)
    return found.map((one) =>
      one.isJoining ? one : { ...one, batches: batchesOf(strategy, ceiling, one.nodes.length) },
    )
  })
}

/** The nodes of a compartment in service, and beside them those that join the cluster, with their own limit. */
function withJoining(
  { bootstrap, deploymentPolicy }: SkyhookSpec,
  all: CompartmentPlan,
  joining: ReadonlySet<string>,
): readonly CompartmentPlan[] {
  const own = all.nodes.filter((name) => joining.has(name))
  const { count } = bootstrap ?? {}
  // where nodes are not counted, joining nodes need no budget of their own
  if (own.length === 0 || (all.limit === 'unlimited' && count === undefined)) return [all]
  const others = all.nodes.filter((name) => !joining.has(name))
  const isHidden = all.limit === undefined && (count === undefined || (deploymentPolicy && count !== 0))
  const limit = isHidden ? undefined : bootstrapLimit(count, all.limit ?? 0, { matched: all.nodes.length })
  const source =
    count !== undefined ? `bootstrap.count ${count}` : limit === all.limit ? all.source : defaultOfBootstrap
  return [
    ...(others.length === 0 ? [] : [{ ...all, nodes: others }]),
    {
      compartment: all.compartment,
      isJoining: true,
      nodes: own,
      limit: typeof limit === 'object' ? undefined : limit,
      source: isHidden ? all.source : source,
    },
  ]
}

const defaultOfBootstrap = 'a tenth of the nodes, without bootstrap.count'

const nameOf = ({ metadata }: KubernetesNode): string => metadata.name

function ofBudget(
  spec: SkyhookSpec,
  nodes: readonly string[],
  settings: FleetView<unknown>['settings'],
): CompartmentPlan {
  const budget = knownBudget(spec, settings)
  if (!budget.known) return { compartment: '', nodes, limit: undefined, source: budget.why }
  const limit = effectiveLimit(budget.value, { matched: nodes.length })
  const { count, percent } = budget.value
  const owner = takesDefaultBudget(spec) ? 'defaults.interruptionBudget' : 'interruptionBudget'
  const source =
    count !== undefined
      ? `${owner}.count ${count}`
      : percent !== undefined
        ? `${owner}.percent ${percent}`
        : 'no interruptionBudget'
  return { compartment: '', nodes, limit: typeof limit === 'object' ? undefined : limit, source }
}

/** More would tell nobody more. */
const maxBatches = 1_000

/** From the first batch, as if none failed. */
function batchesOf(strategy: Strategy, ceiling: number, nodes: number): readonly number[] {
  if (ceiling <= 0) return []
  const sizes: number[] = []
  let size = strategy.initialBatch
  for (let left = nodes; left > 0 && sizes.length < maxBatches; ) {
    const taken = Math.max(1, Math.min(size, ceiling, left))
    sizes.push(taken)
    left -= taken
    const progressPercent = Math.floor(((nodes - left) * 100) / nodes)
    size = nextSize(strategy, Math.max(1, Math.min(size, ceiling)), {
      hasFailed: false,
      progressPercent,
      matched: nodes,
    })
  }
  return sizes
}

/** How many times a slot is held one after another until so many nodes of the compartment are done. */
export function roundsOf({ limit, batches }: CompartmentPlan, working: number): number | undefined {
  if (working === 0) return 0
  if (limit === undefined || limit === 0) return undefined
  if (batches) return countUntil(batches, working)
  return limit === 'unlimited' ? 1 : Math.ceil(working / limit)
}

function countUntil(batches: readonly number[], working: number): number {
  let done = 0
  const enough = batches.findIndex((size) => (done += size) >= working)
  return enough < 0 ? batches.length : enough + 1
}
