/** What one measurement of a fleet does, as its command line says it. */
import type { Interrupt, InterruptionBudget, PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'

export type FleetPlan = {
  readonly nodes: number
  /** `none`, a count, or a percentage: `1`, `10%`. */
  readonly budget: string
  /** Whether the package restarts a service, which drains its node and asks for a slot. */
  readonly interrupt: 'none' | 'service'
  /** Each selects all nodes. */
  readonly skyhooks: number
  /** How long each step of a package takes, in ms. */
  readonly stepMs: number
  /** Processes that the agents are divided among. */
  readonly workers: number
  /** How long the complete fleet is measured, in seconds; 0: not at all. */
  readonly idleSeconds: number
  /** Whether all agents are killed and started again at the end. */
  readonly restart: boolean
}

export const poolLabel = 'example.com/pool'
/** On one node only: what a rollout takes there alone is the measure of the others. */
export const aloneLabel = 'example.com/alone'

export const service = 'web.service'

/** The name of a measurement, which is that of its file. */
export const planName = ({ nodes, budget, interrupt, skyhooks }: FleetPlan): string =>
  [`fleet-${nodes}`, budget.replace('%', 'percent'), interrupt, ...(skyhooks > 1 ? [`${skyhooks}-skyhooks`] : [])].join(
    '-',
  )

/** How many nodes may be out at once; undefined: any number. */
export function limitOf({ nodes, budget }: Pick<FleetPlan, 'nodes' | 'budget'>): number | undefined {
  if (budget === 'none') return undefined
  if (budget.endsWith('%')) return Math.max(1, Math.floor((nodes * Number(budget.slice(0, -1))) / 100))
  return Number(budget)
}

/** Throws for a text that is no budget. */
export function budgetOf(text: string): InterruptionBudget | undefined {
  if (text === 'none') return undefined
  const [, number, percent] = /^([1-9]\d*)(%?)$/.exec(text) ?? []
  if (number === undefined) throw new Error(`--budget must be none, a count or a percentage, got ${text}`)
  return percent === '%' ? { percent: Number(number) } : { count: Number(number) }
}

/** One package with one value of configuration, as the operator was measured with. */
export function specOf(plan: FleetPlan, pool: Readonly<Record<string, string>>): SkyhookSpec {
  const interruptionBudget = budgetOf(plan.budget)
  const restart: Interrupt = { type: 'service', services: [service] }
  const tuned: PackageSpec = {
    version: '1.0.0',
    image: 'registry.test/tuned',
    configMap: { value: 'one' },
    ...(plan.interrupt === 'service' && { interrupt: restart }),
  }
  return {
    nodeSelectors: { matchLabels: pool },
    ...(interruptionBudget && { interruptionBudget }),
    packages: { tuned },
  }
}

/** The stages that the package has steps for, and the last of its steps. */
export const stagesOf = ({ interrupt }: Pick<FleetPlan, 'interrupt'>): readonly string[] =>
  interrupt === 'service' ? ['apply', 'config', 'post-interrupt'] : ['apply', 'config']

export const lastModeOf = (plan: Pick<FleetPlan, 'interrupt'>): string => `${stagesOf(plan).at(-1)}-check`
