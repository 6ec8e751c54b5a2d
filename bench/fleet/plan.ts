/** What one measurement of a fleet does, as its command line says it. */
import { defaultCompartment, type DeploymentPolicySpec } from '../../src/schemas/deployment-policy.ts'
import type { Interrupt, InterruptionBudget, PackageSpec, SkyhookSpec } from '../../src/schemas/skyhook.ts'

export type FleetPlan = {
  readonly nodes: number
  /** `none`, a count, or a percentage: `1`, `10%`. */
  readonly budget: string
  /** Exponential: a DeploymentPolicy with batches of 1, 2, 4 … nodes, up to the budget. */
  readonly strategy: 'none' | 'exponential'
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
export const planName = ({ nodes, budget, strategy, interrupt, skyhooks }: FleetPlan): string =>
  [
    `fleet-${nodes}`,
    budget.replace('%', 'percent'),
    interrupt,
    ...(strategy === 'none' ? [] : [strategy]),
    ...(skyhooks > 1 ? [`${skyhooks}-skyhooks`] : []),
  ].join('-')

/** How many nodes may be out at once; undefined: any number. */
export function limitOf({ nodes, budget }: Pick<FleetPlan, 'nodes' | 'budget'>): number | undefined {
  if (budget === 'none') return undefined
  if (budget.endsWith('%')) return Math.max(1, Math.floor((nodes * Number(budget.slice(0, -1))) / 100))
  return Number(budget)
}

/** How many times nodes have to wait for others, and once more: what the ideal time is a multiple of. */
export function turnsOf(plan: Pick<FleetPlan, 'nodes' | 'budget' | 'strategy'>): number {
  const limit = limitOf(plan)
  if (limit === undefined) return 1
  if (plan.strategy === 'none') return Math.ceil(plan.nodes / limit)
  let turns = 0
  for (let done = 0, size = 1; done < plan.nodes; size *= 2, turns++) done += Math.min(size, limit)
  return turns
}

/** Throws for a text that is not a budget. */
export function budgetOf(text: string): InterruptionBudget | undefined {
  if (text === 'none') return undefined
  const [, number, percent] = /^([1-9]\d*)(%?)$/.exec(text) ?? []
  if (number === undefined) throw new Error(`--budget must be none, a count or a percentage, got ${text}`)
  return percent === '%' ? { percent: Number(number) } : { count: Number(number) }
}

export const policyName = 'batches'

/** The DeploymentPolicy of a plan with batches. */
export function policyOf({ budget, strategy }: FleetPlan): DeploymentPolicySpec | undefined {
  if (strategy === 'none') return undefined
  return { default: { budget: budgetOf(budget) ?? { percent: 100 }, strategy: { exponential: {} } } }
}

/** The compartment whose slots count. */
export const compartmentOf = ({ strategy }: FleetPlan): string => (strategy === 'none' ? '' : defaultCompartment)

/** One package with one value of configuration, as the operator was measured with. */
export function specOf(plan: FleetPlan, pool: Readonly<Record<string, string>>): SkyhookSpec {
  const interruptionBudget = plan.strategy === 'none' ? budgetOf(plan.budget) : undefined
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
    ...(plan.strategy !== 'none' && { deploymentPolicy: policyName }),
    packages: { tuned },
  }
}

/** The stages that the package has steps for, and the last of its steps. */
export const stagesOf = ({ interrupt }: Pick<FleetPlan, 'interrupt'>): readonly string[] =>
  interrupt === 'service' ? ['apply', 'config', 'post-interrupt'] : ['apply', 'config']

export const lastModeOf = (plan: Pick<FleetPlan, 'interrupt'>): string => `${stagesOf(plan).at(-1)}-check`
