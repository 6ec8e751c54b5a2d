import type { Scope } from '../../lease/names.ts'
import type { AcquireOutcome } from '../../lease/slot-creation.ts'
import type { Clock } from '../../schemas/clock.ts'

/**
 * Creations of slots without an answer: the API server may still execute them. While that is possible, the node
 * requests only the same name again. If a creation is executed after that slot was released, the watch of the own slots
 * shows a surplus slot.
 */
export type UnansweredCreations = {
  readonly indexIn: (scope: Scope) => number | undefined
  /** When the doubt in this scope ends; Infinity if there is none. */
  readonly endsInMs: (scope: Scope) => number
  enter(scope: Scope, answer: AcquireOutcome): void
}

type Creation = { readonly index: number; readonly endsAtMs: number }

/** The API server ends a request after at most this time. */
const maxRequestMs = 60_000

export function createUnansweredCreations(clock: Pick<Clock, 'monotonicMs'>): UnansweredCreations {
  const creations = new Map<string, Creation>()

  function creationIn({ hash }: Scope): Creation | undefined {
    const creation = creations.get(hash)
    if (creation === undefined || clock.monotonicMs() < creation.endsAtMs) return creation
    creations.delete(hash)
    return undefined
  }

  return {
    indexIn: (scope) => creationIn(scope)?.index,
    endsInMs: (scope) => (creationIn(scope)?.endsAtMs ?? Infinity) - clock.monotonicMs(),
    enter({ hash }, answer) {
      if (answer.outcome === 'unknown' && answer.unansweredIndex !== undefined)
        creations.set(hash, { index: answer.unansweredIndex, endsAtMs: clock.monotonicMs() + maxRequestMs })
      else if (answer.outcome === 'held' || answer.outcome === 'lost') creations.delete(hash)
    },
  }
}
