/** What stays the same during one search. */
import type { SkyhookView } from '../../../src/stages/model/snapshot.ts'
import type { Transition } from '../breadth-first.ts'
import type { Cores } from './core.ts'
import type { FleetRules } from './rules.ts'
import type { Fleet } from './state.ts'

export const allFaults = [
  'agent killed',
  'answer lost',
  'commit late',
  'Node deleted',
  'slot deleted',
  'cordon by the administrator',
  'control-plane label',
  'selector left',
] as const
export type Fault = (typeof allFaults)[number]

export type World = {
  readonly cores: Cores
  readonly rules: FleetRules
  /** The budget of each generation; it only moves forward. */
  readonly budgets: readonly number[]
  readonly faults: ReadonlySet<Fault>
  /** Of every Node. */
  readonly labels: Readonly<Record<string, string>>
}

export type Step = Transition<Fleet> & {
  /** Nobody else and no rule of the fleet can tell whether it happened: when it does makes no difference. */
  readonly isLocal?: boolean
}

export const budgetOf = ({ budgets }: World, generation: number): number => budgets[generation - 1] ?? 0

/** The Skyhook of a generation, with its budget. */
export function viewOf(world: World, generation: number): SkyhookView {
  const { metadata, spec } = world.cores.view(generation)
  const budget = { count: budgetOf(world, generation) }
  return { metadata, spec: { ...spec, interruptionBudget: budget }, budget, stale: false }
}

export const isPossible = ({ faults }: World, { faultsLeft }: Fleet, fault: Fault): boolean =>
  faultsLeft > 0 && faults.has(fault)

export const afterFault = (fleet: Fleet): Fleet => ({ ...fleet, faultsLeft: fleet.faultsLeft - 1 })
