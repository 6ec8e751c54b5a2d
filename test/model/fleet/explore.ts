/**
 * Every state that the fleet can reach, shortest paths first; and whether each of them still leads to a fleet on which
 * everything is complete and nothing is held, without a further fault.
 */
import { agentSteps } from './agent.ts'
import { hasBegun } from './core.ts'
import { environmentSteps } from './environment.ts'
import { noExemption, settled } from './judge.ts'
import { canonical, type Fleet, type FleetNode } from './state.ts'
import type { Step, World } from './world.ts'

export type FleetResult =
  | { readonly outcome: 'holds'; readonly states: number; readonly steps: number; readonly nodeStates: number }
  | {
      readonly outcome: 'violated'
      readonly states: number
      readonly violation: string
      readonly path: readonly string[]
    }

export function initialFleet(world: World, nodes: number, faults: number): Fleet {
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
export function stepsOf(world: World, fleet: Fleet): readonly Step[] {
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

/** Throws beyond `maxStates`: a search that gave up has proved nothing. */
export function explore(world: World, initial: Fleet, maxStates = 2_000_000): FleetResult {
  const first = canonical(initial)
  const fleets: Fleet[] = [first.fleet]
  const numbers = new Map<string, number>([[first.text, 0]])
  const predecessors: number[] = [-1]
  const actions: string[] = ['']
  /** Steps that are no faults, from and to. */
  const froms: number[] = []
  const tos: number[] = []
  const pathTo = (end: number): string[] => {
    const path: string[] = []
    for (let at = end; at > 0; at = predecessors[at] ?? 0) path.push(actions[at] ?? '')
    return path.toReversed()
  }
  for (let from = 0; from < fleets.length; from++) {
    const fleet = fleets[from]
    if (!fleet) continue
    for (const { action, to, violation, isFault } of stepsOf(world, fleet)) {
      if (violation !== undefined)
        return { outcome: 'violated', states: fleets.length, violation, path: [...pathTo(from), action] }
      const next = canonical(settled(world.cores, to))
      let number = numbers.get(next.text)
      if (number === undefined) {
        number = fleets.length
        if (number >= maxStates) throw new Error(`more than ${maxStates} states`)
        numbers.set(next.text, number)
        fleets.push(next.fleet)
        predecessors.push(from)
        actions.push(action)
      }
      if (number !== from && isFault !== true) {
        froms.push(from)
        tos.push(number)
      }
    }
  }
  const stuck = firstStuck(
    fleets.map((fleet) => isOver(world, fleet)),
    froms,
    tos,
  )
  if (stuck !== undefined)
    return { outcome: 'violated', states: fleets.length, violation: 'never complete', path: pathTo(stuck) }
  return { outcome: 'holds', states: fleets.length, steps: froms.length, nodeStates: world.cores.count }
}

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

/** The first state from which no way leads to one that is over. */
function firstStuck(over: readonly boolean[], froms: readonly number[], tos: readonly number[]): number | undefined {
  const starts = new Uint32Array(over.length + 1)
  for (const to of tos) starts[to + 1] = (starts[to + 1] ?? 0) + 1
  for (let at = 0; at < over.length; at++) starts[at + 1] = (starts[at + 1] ?? 0) + (starts[at] ?? 0)
  const incoming = new Uint32Array(tos.length)
  const filled = starts.slice()
  for (const [index, to] of tos.entries()) {
    const place = filled[to] ?? 0
    incoming[place] = froms[index] ?? 0
    filled[to] = place + 1
  }
  const leads = Uint8Array.from(over, Number)
  const queue = over.flatMap((isIt, state) => (isIt ? [state] : []))
  for (let state = queue.pop(); state !== undefined; state = queue.pop())
    for (let place = starts[state] ?? 0; place < (starts[state + 1] ?? 0); place++) {
      const from = incoming[place] ?? 0
      if (leads[from]) continue
      leads[from] = 1
      queue.push(from)
    }
  const stuck = leads.indexOf(0)
  return stuck < 0 ? undefined : stuck
}
