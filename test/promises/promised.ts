/** A rule, judged from what happened and not from what agents say. */
import type { WorldView } from '../kit/fleet/world-view.ts'
import type { Fact, World } from './facts.ts'

/** One that every world can show. */
export type Promised<W = World> = {
  /** Prints in counts and traces, such as `budget`. */
  readonly name: string
  /**
   * Called once per run, before anything happens in it. A violation ends a simulated run after the current fact.
   * `atMs`: of one that came earlier.
   */
  readonly watch: (world: W, violate: (message: string, atMs?: number) => void) => Watch
}

/** One that only a simulated fleet shows. */
export type Invariant = Promised<WorldView>

/** `atMs`: of one clock for the whole run. */
export type Watch = {
  on?(fact: Fact, atMs: number): void
  /** Each second. */
  tick?(atMs: number): void
  /** What is left to do, although the cluster shows nothing: the run goes on, for the rules to judge it. */
  pending?(): string | undefined
  /** Once, when the run is over without a violation. No virtual time passes meanwhile. */
  end?(atMs: number): void | Promise<void>
  /** How often the rule had something to judge, so that a rule that never applies shows. */
  readonly checks: () => number
}
