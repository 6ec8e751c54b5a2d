/**
 * Every state that the fleet can reach; and whether each of them still leads to a fleet on which everything is complete
 * and nothing is held, without a further fault.
 */
import { search, type SearchResult } from '../breadth-first.ts'
import { agentSteps } from './agent.ts'
import { hasBegun } from './core.ts'
import { environmentSteps } from './environment.ts'
import { noExemption, settled } from './judge.ts'
import { canonical, type Fleet, type FleetNode, keyOf } from './state.ts'
import type { Step, World } from './world.ts'

function initialFleet(world: World, nodes: number, faults: number): Fleet {
  const node: FleetNode = {
    core: world.cores.initial(world.labels),
    isAgentUp: true,
    generation: 1,
    slots: [],
    isDenied: false,
    unanswered: {},
    late: [],
    creating: [],
    creatingUnder: 0,
    creatingUnseen: 0,
    isExempt: noExemption,
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

export const explore = (world: World, nodes: number, faults: number): SearchResult =>
  search<Fleet>({
    initial: initialFleet(world, nodes, faults),
    *next(fleet) {
      for (const step of stepsOf(world, fleet)) yield { ...step, to: canonical(settled(world.cores, step.to)) }
    },
    keyOf,
    isEnd: (fleet) => isOver(world, fleet),
  })

/** All nodes are complete and in service, and hold nothing. */
function isOver(world: World, { nodes, generation }: Fleet): boolean {
  if (generation < world.budgets.length) return false
  return nodes.every(({ core, isAgentUp, slots, late, creating, unanswered }) => {
    const { host, node, journal } = world.cores.at(core)
    if (!isAgentUp || !node || host !== 'done') return false
    const isShown = node.metadata.annotations?.['skyhook.nvidia.com/status_s'] === 'complete'
    const isHeld =
      slots.length > 0 || late.length > 0 || creating.length > 0 || Object.values(unanswered).some(Number.isInteger)
    return isShown && !isHeld && !hasBegun(world.cores.at(core)) && journal.skyhooks['s']?.applied !== undefined
  })
}
