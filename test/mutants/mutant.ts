/** A deliberate bug of the product, and the tiers of tests that must catch it. */
import type { Plan } from '../kit/fleet/plan.ts'

/** A text that the file contains exactly once, and what stands there instead. `file` is relative to the repository. */
export type Edit = { readonly file: string; readonly search: string; readonly replace: string }

export type Mutant = {
  /** The mistake, for people. */
  readonly name: string
  /** Those in one file follow each other. */
  readonly edits: readonly Edit[]
  /** Each of them must. */
  readonly caughtBy: readonly Catch[]
}

export type Catch = UnitCatch | ModelCatch | FleetCatch
export type Tier = Catch['tier']

/** One of these files has a test that fails. */
export type UnitCatch = { readonly tier: 'unit'; readonly tests: readonly string[] }

/** A search of test/model finds it. */
export type ModelCatch = {
  readonly tier: 'model'
  readonly test: string
  /** Begins the title of the test. */
  readonly title: string
  /** The violation that it finds. */
  readonly says: RegExp
}

/** A simulated fleet breaks a rule. */
export type FleetCatch = {
  readonly tier: 'fleet'
  readonly rule: string
  /** Of the smallest plan that showed it, in `plans`. */
  readonly plan: string
  /** It shows in runs whose Skyhooks have DeploymentPolicies, or in those whose policies get another name. */
  readonly policies?: 'given' | 'renamed'
  /** False for plans without what the bug needs to show: the search for a seed leaves them out. */
  readonly mayShow?: (plan: Plan) => boolean
}

/** `file`: below src. */
export const edit = (file: string, search: string, replace: string): Edit => ({ file: `src/${file}`, search, replace })

/** `tests`: below src. */
export const unit = (...tests: readonly string[]): UnitCatch => ({
  tier: 'unit',
  tests: tests.map((test) => `src/${test}`),
})

/** Makes bugs of one text in one file, which unit tests catch. `file` and `tests`: below src. */
export const inFile =
  (file: string, ...tests: readonly string[]) =>
  (name: string, search: string, replace: string): Mutant => ({
    name,
    edits: [edit(file, search, replace)],
    caughtBy: [unit(...tests)],
  })

const searchOf =
  (test: string, title: string) =>
  (says: RegExp): ModelCatch => ({ tier: 'model', test: `test/model/${test}.test.ts`, title, says })

export const randomLives = searchOf('random-lives', 'a node keeps all invariants through random events')
export const forgetfulLives = searchOf('random-lives', 'a node keeps all invariants where its Node is registered again')
export const corrections = searchOf('corrections', 'a spec whose steps succeed leads from every failing state')
export const planCases = searchOf('plan/plan', 'a node does what its plan foretold')
export const specChanges = searchOf('spec-changes', 'a change to')
/** `fleet`: a key of `searches` in test/model/fleet/fleet.test.ts. */
export const smallFleet = (fleet: string, says: RegExp): ModelCatch => searchOf('fleet/fleet', `${fleet}: `)(says)

export const fleet = (
  rule: string,
  plan: string,
  shows: Pick<FleetCatch, 'policies' | 'mayShow'> = {},
): FleetCatch => ({ tier: 'fleet', rule, plan, ...shows })

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
