/** What an apply or a delete of a file would do for one Skyhook, by groups of nodes that it treats alike. Pure. */
import { readLedger } from '../../../lease/ledger.ts'
import { ledgerName } from '../../../lease/names.ts'
import { readSlotTimes, type SlotTimeEstimate, slotTimeEstimate } from '../../../lease/slot-times.ts'
import type { Lease } from '../../../lease/slot.ts'
import type { DeploymentPolicySpec } from '../../../schemas/deployment-policy.ts'
import type { KubernetesNode } from '../../../schemas/kubernetes.ts'
import { selects } from '../../../schemas/selectors.ts'
import type { SkyhookSpec } from '../../../schemas/skyhook.ts'
import { groupPods, podsInTheWay } from '../../../stages/drain/pods.ts'
import type { Pod } from '../../../stages/model/pods.ts'
import { type Known, known } from '../../../stages/model/snapshot.ts'
import type { FleetView } from '../../fleet/fleet-view/fleet-view.ts'
import { atOnce, type CompartmentPlan, roundsOf } from './at-once.ts'
import type { DrainedPods } from './drained-pods.ts'
import { type Edit, type Fleets, holdsSlot, type NodePlan } from './plan-node.ts'
import type { RehearsedStep } from './rehearsal.ts'

export type SkyhookPlan = {
  readonly skyhook: string
  /** Of the nodes that it would select. */
  readonly compartments: readonly CompartmentPlan[]
  /** Unknown where the caller may not read Nodes. */
  readonly groups: Known<readonly PlanGroup[]>
  /** Of all nodes that would be drained, by the index of their group. */
  readonly pods: ReadonlyMap<number, Known<DrainedPods>>
  readonly duration: Duration
  /** Nodes whose published state cannot be trusted. */
  readonly doubtful: readonly string[]
  /** What is allowed, and is rarely meant. */
  readonly warnings: readonly string[]
}

/** `none`: no node has work. Times are those of slots held one after another, without what nodes wait for others. */
export type Duration =
  | { readonly state: 'none' }
  | { readonly state: 'unknown'; readonly why: string }
  | { readonly state: 'estimated'; readonly p50Ms: number; readonly p95Ms: number; readonly history: SlotTimeEstimate }

/** Without the pods that leave, which are read for the groups that this returns. */
export function skyhookPlan(
  { before, after }: Fleets,
  edit: Edit,
  plans: readonly NodePlan[],
  joining: JoiningNodes,
): Omit<SkyhookPlan, 'pods'> {
  const { name } = edit
  const spec = edit.after?.spec ?? edit.before?.spec ?? {}
  const nodes = before.nodes.known
    ? before.nodes.value.filter(({ metadata }) => selects(spec.nodeSelectors, metadata.labels ?? {}))
    : []
  const compartments = before.nodes.known
    ? atOnce(spec, policyOf(after, spec.deploymentPolicy), nodes, after.settings, joining.certain)
    : []
  const placementOf = (node: string) => {
    const found = compartments.find((one) => one.nodes.includes(node))
    const isAtWork = !before.slots.known || holdsSlot(before.slots.value, node, name)
    const mayStart = found?.limit !== 0 || isAtWork || (joining.possible.has(node) && spec.bootstrap?.count !== 0)
    return { compartment: found?.compartment ?? '', isJoining: found?.isJoining === true, mayStart }
  }
  const groups = before.nodes.known ? known(planGroups(plans, placementOf)) : before.nodes
  return {
    skyhook: name,
    compartments,
    groups,
    duration: durationOf(before, edit, compartments, groups),
    doubtful: plans.flatMap(({ doubt, node }) => (doubt === undefined ? [] : [node])),
    warnings: edit.after !== undefined && before.nodes.known && nodes.length === 0 ? [selectsNothing] : [],
  }
}

const selectsNothing = 'spec.nodeSelectors matches no node: the Skyhook would be Ready, and nothing would be installed'

function policyOf(
  { policies }: FleetView<KubernetesNode>,
  name: string | undefined,
): Known<DeploymentPolicySpec | undefined> {
  if (!policies.known) return policies
  return known(policies.value.find(({ metadata }) => metadata.name === name)?.spec)
}

function durationOf(
  { ledgers }: FleetView<KubernetesNode>,
  { before, after }: Edit,
  compartments: readonly CompartmentPlan[],
  groups: SkyhookPlan['groups'],
): Duration {
  if (!groups.known) return { state: 'unknown', why: groups.why }
  const working = groups.value.filter(({ steps }) => steps.length > 0)
  if (working.length === 0) return { state: 'none' }
  const rounds = compartments.map((one) => {
    const own = working.filter(
      ({ compartment, isJoining }) => compartment === one.compartment && isJoining === (one.isJoining === true),
    )
    return roundsOf(
      one,
      own.reduce((sum, { nodes }) => sum + nodes.length, 0),
    )
  })
  if (rounds.includes(undefined)) return { state: 'unknown', why: 'the budget lets no node start, or is not known' }
  if (!ledgers.known) return { state: 'unknown', why: ledgers.why }
  const history = before && historyOf(ledgers.value, before.metadata)
  if (history === undefined)
    return { state: 'unknown', why: 'no history: no rollout of this Skyhook has been measured' }
  const { pauseSeconds = 0, minReadySeconds = 0 } = (after ?? before)?.spec.pace ?? {}
  const soakMs = (pauseSeconds + minReadySeconds) * 1_000
  const longest = Math.max(...rounds.map((one) => one ?? 0))
  const of = (slotMs: number): number => longest * (slotMs + soakMs)
  return { state: 'estimated', p50Ms: of(history.p50Ms), p95Ms: of(history.p95Ms), history }
}

function historyOf(
  ledgers: readonly Lease[],
  skyhook: { readonly name: string; readonly uid: string },
): SlotTimeEstimate | undefined {
  const lease = ledgers.find(({ metadata }) => metadata.name === ledgerName(skyhook))
  const read = lease && readLedger(lease)
  return read?.outcome === 'read' && read.ledger.skyhookUID === skyhook.uid
    ? slotTimeEstimate(readSlotTimes(read.ledger.slotTimes))
    : undefined
}

/** Undefined where nobody may say it. */
export const wouldDisrupt = ({ groups }: Pick<SkyhookPlan, 'groups'>): boolean | undefined =>
  groups.known ? groups.value.some(({ isDisruptive }) => isDisruptive) : undefined

/** Nodes that the edit closes for new pods until they are complete. */
export const closedNodes = ({ groups }: Pick<SkyhookPlan, 'groups'>): readonly string[] =>
  groups.known
    ? groups.value.flatMap(({ steps, nodes, isDueAnyway }) =>
        !isDueAnyway && steps.some((step) => step.do === 'taint') ? nodes : [],
      )
    : []

export type PlanGroup = Pick<
  NodePlan,
  'steps' | 'stepsIfAsked' | 'causes' | 'obstacle' | 'selection' | 'isDueAnyway' | 'agent'
> & {
  readonly nodes: readonly string[]
  readonly compartment: string
  /** They join the cluster: they are counted apart. */
  readonly isJoining: boolean
  /** The budget lets some node start, or these are at work already. */
  readonly mayStart: boolean
  /** Workloads on these nodes would notice: they are drained or interrupted, and not without the edit. */
  readonly isDisruptive: boolean
}

/** The compartment of a node, and whether the budget lets any of its nodes start. */
type Placement = (node: string) => Pick<PlanGroup, 'compartment' | 'isJoining' | 'mayStart'>

/** Nodes that are disrupted come first, those on which nothing happens last; then the larger group. */
export function planGroups(plans: readonly NodePlan[], placementOf: Placement): readonly PlanGroup[] {
  const groups = [...Map.groupBy(plans, (plan) => keyOf(plan, placementOf)).values()].flatMap(
    (members): PlanGroup[] => {
      const [first] = members
      if (first === undefined) return []
      const { steps, stepsIfAsked, causes, obstacle, selection, isDueAnyway, agent } = first
      const { compartment, isJoining, mayStart } = placementOf(first.node)
      const isDisruptive = !isDueAnyway && mayStart && steps.some(disrupts)
      const nodes = members.map(({ node }) => node).toSorted((a, b) => (a < b ? -1 : 1))
      return [
        {
          nodes,
          compartment,
          isJoining,
          mayStart,
          steps,
          stepsIfAsked,
          causes,
          obstacle,
          selection,
          isDueAnyway,
          agent,
          isDisruptive,
        },
      ]
    },
  )
  return groups.toSorted((a, b) => rankOf(a) - rankOf(b) || b.nodes.length - a.nodes.length)
}

function keyOf(
  { steps, stepsIfAsked, causes, obstacle, selection, isDueAnyway, agent, node }: NodePlan,
  placement: Placement,
): string {
  const hasAgent = agent === undefined
  return JSON.stringify([
    steps,
    stepsIfAsked,
    causes,
    obstacle?.reason,
    selection,
    isDueAnyway,
    hasAgent,
    placement(node),
  ])
}

const rankOf = ({ isDisruptive, steps }: PlanGroup): number => (isDisruptive ? 0 : steps.length > 0 ? 1 : 2)

const disrupts = (step: RehearsedStep): boolean =>
  step.do === 'drain' || (step.do === 'interrupt' && step.type !== 'noop')

/** Names of nodes that are closed for pods, and have none that must leave. `possible`: their pods may not be read. */
type JoiningNodes = { readonly certain: ReadonlySet<string>; readonly possible: ReadonlySet<string> }

/** `pods`: of all nodes that are closed. `skipNamespaces`: of the agents, whose pods are never drained. */
export function joiningNodes(
  plans: readonly NodePlan[],
  rules: Pick<SkyhookSpec, 'podNonInterruptLabels' | 'drain'>,
  pods: Known<readonly Pod[]>,
  skipNamespaces: readonly string[],
): JoiningNodes {
  const closed = new Set(plans.flatMap(({ isJoining, node }) => (isJoining ? [node] : [])))
  if (!pods.known) return { certain: new Set(), possible: closed }
  const inTheWay = podsInTheWay(groupPods(pods.value, rules, { skipNamespaces }))
  return { certain: closed.difference(new Set(inTheWay.map(({ spec }) => spec?.nodeName ?? ''))), possible: new Set() }
}
