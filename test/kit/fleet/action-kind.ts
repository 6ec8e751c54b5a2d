/** What every fault and every edit of a simulated fleet is made of. */
import type { SkyhookSpec } from '../../../src/schemas/skyhook.ts'
import type { Chance } from './chance.ts'
import type { Phase } from './phase.ts'
import type { PlannedAction } from './plan.ts'
import type { World, WorldHost } from './world.ts'

export type Detail = NonNullable<PlannedAction['detail']>

/** What an action is about. */
export type Target = {
  readonly world: World
  readonly host: WorldHost
  /** Name of the Skyhook. */
  readonly skyhook: string
  readonly detail: Detail
}

export type ActionKind = {
  /** It lasts so long, in ms; absent: it is over at once. */
  readonly lastsMs?: readonly [from: number, to: number]
  /** What else is chosen when a run is planned. */
  readonly draw?: (chance: Chance) => Detail
  /**
   * Carries it out. Returns how it ends, if it lasts, or `skipped` where there is nothing that it could be done to.
   * What it returns is called once.
   */
  readonly start: (target: Target) => (() => void) | 'skipped' | undefined | void
  /** Name of the host that it hits, whatever node the plan names; undefined while there is none. */
  readonly victim?: (world: World) => string | undefined
  /** Phases that it cannot be met in, with the reason. */
  readonly impossible?: Readonly<Partial<Record<Phase, string>>>
}

/** The spec as it is now; undefined while the Skyhook does not exist. */
export function specOf({ world, skyhook }: Pick<Target, 'world' | 'skyhook'>): SkyhookSpec | undefined {
  const object = world.server.object('skyhooks', undefined, skyhook)
  return object?.metadata.deletionTimestamp === undefined ? (object?.['spec'] as SkyhookSpec | undefined) : undefined
}
