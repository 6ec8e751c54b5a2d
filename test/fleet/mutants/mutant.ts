/** A deliberate bug of the product that a simulated fleet must show. */
import type { Replacement } from '../../../build/mutant-tree.ts'
import type { Plan } from '../../kit/fleet/plan.ts'

export type FleetMutant = {
  /** Also of the file with its plan. */
  readonly name: string
  /** The mistake, for people. */
  readonly bug: string
  /** The rule that sees it. */
  readonly rule: string
  readonly changes: readonly Replacement[]
  /** It shows in runs whose Skyhooks have DeploymentPolicies. */
  readonly hasPolicies?: true
  /** In those whose policies get another name. */
  readonly hasRenames?: true
  /** False for plans without what the bug needs to show: the search leaves them out. */
  readonly mayShow?: (plan: Plan) => boolean
}

/** `file`: below src. */
export const change = (file: string, search: string, replace: string): Replacement => ({
  file: `src/${file}`,
  search,
  replace,
})

/** Of each group of faults and edits the plan has at least one. */
export const has =
  (...groups: readonly (readonly string[])[]) =>
  ({ actions }: Plan): boolean =>
    groups.every((kinds) => actions.some(({ kind }) => kinds.includes(kind)))

export const hasControlPlanes =
  (count: number) =>
  ({ nodes }: Plan): boolean =>
    nodes.filter(({ isControlPlane }) => isControlPlane).length >= count

export const all =
  (...tests: readonly ((plan: Plan) => boolean)[]) =>
  (plan: Plan): boolean =>
    tests.every((test) => test(plan))
