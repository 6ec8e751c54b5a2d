import type { Scope } from '../../lease/names.ts'
import type { AcquireOutcome } from '../../lease/slot-creation.ts'
import type { Clock } from '../../schemas/clock.ts'

/**
 * Creations of slots that were not answered: the API server may still carry them out. Until that is over, only the
 * same name is requested again. One that is carried out after that slot was given back shows up in the watch of the own
 * slots, as surplus.
 */
export type UnansweredCreations = {
  readonly indexIn: (scope: Scope) => number | undefined
  enter(scope: Scope, answer: AcquireOutcome): void
}

/** The API server ends a request after this at the latest. */
const maxRequestMs = 60_000

export function createUnansweredCreations(clock: Pick<Clock, 'monotonicMs'>): UnansweredCreations {
  const creations = new Map<string, { readonly index: number; readonly atMs: number }>()
  return {
    indexIn({ hash }) {
      const creation = creations.get(hash)
      if (creation && clock.monotonicMs() - creation.atMs > maxRequestMs) creations.delete(hash)
      return creations.get(hash)?.index
    },
    enter({ hash }, answer) {
      if (answer.outcome === 'unknown' && answer.unansweredIndex !== undefined)
        creations.set(hash, { index: answer.unansweredIndex, atMs: clock.monotonicMs() })
      else if (answer.outcome === 'held' || answer.outcome === 'lost') creations.delete(hash)
    },
  }
}
