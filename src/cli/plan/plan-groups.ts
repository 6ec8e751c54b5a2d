/** Nodes that an edit treats alike, as one. Pure. */
import type { NodePlan } from './plan-node.ts'
import type { RehearsedStep } from './rehearsal.ts'

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
export type Placement = (node: string) => Pick<PlanGroup, 'compartment' | 'isJoining' | 'mayStart'>

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

export const disrupts = (step: RehearsedStep): boolean =>
  step.do === 'drain' || (step.do === 'interrupt' && step.type !== 'noop')
