/**
 * Every state that the fleet can reach; and whether each of them still leads to a fleet on which everything is complete
 * and nothing is held, without a further fault.
 */
import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import { search, type SearchResult } from '../breadth-first.ts'
import { agentSteps } from './agent.ts'
import { Cores, hasBegun, masterLabel, poolLabel } from './core.ts'
import { environmentSteps } from './environment.ts'
import { settled } from './judge.ts'
import { type FleetRules, productRules } from './rules.ts'
import { canonical, type Fleet, type FleetNode, keyOf, noAnswerMissing } from './state.ts'
import type { Fault, Step, World } from './world.ts'

export type Search = {
  readonly nodes: number
  /** One after the other, each at any moment. */
  readonly budgets: readonly number[]
  readonly faults?: readonly Fault[]
  /** How many of `faults` happen at most, on any nodes, at any moments; one unless it says otherwise. */
  readonly maxFaults?: number
  readonly spec?: SkyhookSpec
  readonly isControlPlane?: boolean
}

const interrupt = { type: 'service', services: ['cron'] } as const
const image = { version: '1.0.0', image: 'r/pkg' }

const nodeSelectors = { matchLabels: { [poolLabel]: '' } }

/** The node is cordoned before the first step. */
const interrupting: SkyhookSpec = { nodeSelectors, packages: { a: { ...image, interrupt } } }
/** Work is under way for a while when the node has to be cordoned. */
export const interruptingLater: SkyhookSpec = {
  nodeSelectors,
  packages: { a: image, b: { ...image, dependsOn: { a: '1.0.0' }, interrupt } },
}

/** Walks all states of such a fleet. `rules`: instead of those of the model. */
export function explore(
  { nodes, budgets, faults = [], maxFaults = Math.min(1, faults.length), spec = interrupting, ...rest }: Search,
  rules: Partial<FleetRules> = {},
): SearchResult {
  const world: World = {
    cores: new Cores(spec),
    rules: { ...productRules, ...rules },
    budgets,
    faults: new Set(faults),
    labels: { [poolLabel]: '', ...(rest.isControlPlane === true && { [masterLabel]: '' }) },
  }
  return search<Fleet>({
    initial: initialFleet(world, nodes, maxFaults),
    *next(fleet) {
      for (const step of stepsOf(world, fleet)) yield { ...step, to: canonical(settled(world.cores, step.to)) }
    },
    keyOf,
    isEnd: (fleet) => isOver(world, fleet),
  })
}

function initialFleet(world: World, nodes: number, faults: number): Fleet {
  const node: FleetNode = {
    core: world.cores.initial(world.labels),
    isAgentUp: true,
    generation: 1,
    slots: [],
    isDenied: false,
    unanswered: noAnswerMissing,
    late: [],
    creating: undefined,
    isExempt: { skyhook: false, 'control-plane': false },
    admission: undefined,
    shouldBeUnschedulable: false,
  }
  return { nodes: Array.from({ length: nodes }, () => node), generation: 1, faultsLeft: faults }
}

/**
 * All that may happen next. Once no fault is left, a node whose only next step is local takes it before anything else
 * happens: the order with the steps of others makes no difference.
 */
function stepsOf(world: World, fleet: Fleet): readonly Step[] {
  const steps: Step[] = []
  for (const [who, { isAgentUp, late, slots }] of fleet.nodes.entries()) {
    if (!isAgentUp) continue
    const own = [...agentSteps(world, fleet, who)]
    const isAlone =
      fleet.faultsLeft === 0 && late.length === 0 && !slots.some((entry) => entry.isFormer || entry.isDeletionLate)
    if (isAlone && own.length === 1 && own[0]?.isLocal === true && own[0].violation === undefined) return own
    steps.push(...own)
  }
  return [...steps, ...environmentSteps(world, fleet)]
}

/** All nodes are complete and in service, and hold nothing. */
function isOver(world: World, { nodes, generation }: Fleet): boolean {
  if (generation < world.budgets.length) return false
  return nodes.every(({ core, isAgentUp, slots, late, creating, unanswered }) => {
    const { host, node, journal } = world.cores.at(core)
    if (!isAgentUp || !node || host !== 'done') return false
    const isShown = node.metadata.annotations?.['skyhook.nvidia.com/status_s'] === 'complete'
    const isAsking = creating !== undefined || Object.values(unanswered).some(Number.isInteger)
    const isHeld = slots.length > 0 || late.length > 0 || isAsking
    return isShown && !isHeld && !hasBegun(world.cores.at(core)) && journal.skyhooks['s']?.applied !== undefined
  })
}
