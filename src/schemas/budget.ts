/** Budgets: how many nodes may be out at once, from objects and settings. Pure. */
import { isObject } from './json.ts'
import type { InterruptionBudget, SkyhookSpec } from './skyhook.ts'

/** Of a Skyhook, or of a compartment of a DeploymentPolicy. Without count and percent there is no limit. */
export type Budget = {
  readonly count?: number | undefined
  readonly percent?: number | undefined
  readonly maxCount?: number | undefined
}

/** A budget in an object, where `null` means the same as absent. */
export const readBudget = (budget: InterruptionBudget | Budget | null | undefined): Budget => {
  const { count, percent, maxCount } = budget ?? {}
  return {
    ...(typeof count === 'number' && { count }),
    ...(typeof percent === 'number' && { percent }),
    ...(maxCount !== undefined && { maxCount }),
  }
}

type BudgetFields = Pick<SkyhookSpec, 'interruptionBudget' | 'deploymentPolicy'>

const hasLimit = ({ count, percent }: Budget): boolean => count !== undefined || percent !== undefined

/**
 * Whether the default of the chart counts for the Skyhook. `interruptionBudget: {}` means the same as absent: the
 * Skyhook operator stores it in each object that it writes.
 */
export const takesDefaultBudget = ({ interruptionBudget, deploymentPolicy }: BudgetFields): boolean =>
  !deploymentPolicy && !hasLimit(readBudget(interruptionBudget))

/** The budget that counts for a Skyhook. A DeploymentPolicy has its own budgets and ignores the default. */
export const budgetOf = (spec: BudgetFields | undefined, defaultBudget: Budget): Budget =>
  takesDefaultBudget(spec ?? {}) ? defaultBudget : readBudget(spec?.interruptionBudget)

/** `defaults.interruptionBudget` of the settings; absent and `{}` mean no limit. Throws one sentence that names it. */
export function readDefaultBudget(defaults: unknown): Budget {
  const refuse = (why: string): never => {
    throw new Error(`defaults.interruptionBudget ${why}`)
  }
  const value = isObject(defaults) ? defaults['interruptionBudget'] : defaults
  if (value === undefined || value === null) return {}
  if (!isObject(value)) return refuse(`must be an object, not ${JSON.stringify(value)}`)
  const stray = Object.keys(value).find((key) => !['count', 'percent', 'maxCount'].includes(key))
  if (stray !== undefined) return refuse(`has no field ${stray}: set count or percent`)
  const numberOf = (key: 'count' | 'percent' | 'maxCount', least: number, most: number): number | undefined => {
    const found = value[key]
    if (found === undefined || found === null) return undefined
    if (typeof found === 'number' && Number.isInteger(found) && found >= least && found <= most) return found
    return refuse(`has ${key} ${JSON.stringify(found)}: it must be a whole number from ${least} to ${most}`)
  }
  const budget = {
    count: numberOf('count', 0, maxInt32),
    percent: numberOf('percent', 0, 100),
    maxCount: numberOf('maxCount', 1, maxInt32),
  }
  if (budget.count !== undefined && budget.percent !== undefined)
    return refuse('has count and percent: keep one of them')
  if (budget.maxCount !== undefined && budget.percent === undefined)
    return refuse('has maxCount without percent, which it caps')
  return readBudget(budget)
}

const maxInt32 = 2 ** 31 - 1
