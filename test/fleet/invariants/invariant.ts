/** A rule that every run of a simulated fleet keeps, judged from what happened and not from what agents say. */
import type { FleetEvent, WorldView } from '../run/world-view.ts'

export type Invariant = {
  /** Prints in counts and traces, such as `budget`. */
  readonly name: string
  /** Called once per run, before anything happens in it. `violate` ends the run after the current event. */
  readonly watch: (world: WorldView, violate: (message: string) => void) => InvariantWatch
}

/** `atMs`: virtual time. */
export type InvariantWatch = {
  on?(event: FleetEvent, atMs: number): void
  /** Each virtual second. */
  tick?(atMs: number): void
  /** What is left to do, although the cluster shows nothing: the run goes on, for the rules to judge it. */
  pending?(): string | undefined
  /** Once, when the run is over without a violation. No virtual time passes meanwhile. */
  end?(atMs: number): void | Promise<void>
  /** How often the rule had something to judge, so that a rule that never applies shows. */
  readonly checks: () => number
}
