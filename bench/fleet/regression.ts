/**
 * Whether a fleet costs more than the committed figures say. Counts alone are compared: a busy machine changes all
 * times, and not by the same factor. How long a rollout takes is tested on virtual time (test/fleet/waiting).
 */
import type { FleetResult } from './result.ts'

/**
 * Requests per node of one kind that a run may have beyond the committed ones: those of the census are divided among
 * few nodes. One more request in each rollout adds 1.
 */
const tolerance = 0.4

/**
 * Kinds with a tolerance of their own. A node writes what it is doing only if that lasts; candidates look at the
 * election from time to time.
 */
const ownTolerances: Readonly<Record<string, number>> = {
  'patch nodes': 1.9,
  'get election': Infinity,
  'update election': Infinity,
}

/** What is worse than committed, in sentences; empty if nothing is. `nodes`: how many both have. */
export function regressionsOf({ rollout }: FleetResult, committed: FleetResult, nodes: number): string[] {
  const found: string[] = []
  const before = committed.rollout.requestsByVerb
  // the agent lists and watches again, and says so
  const afterEndedWatches = (2 * endedWatches(rollout.warnings)) / nodes
  for (const [what, count] of Object.entries(rollout.requestsByVerb)) {
    const expected = before[what] ?? 0
    const more = (ownTolerances[what] ?? tolerance) + afterEndedWatches
    if (count > expected + more)
      found.push(`each node sends ${count} requests "${what}", at most ${expected} + ${more} are committed`)
  }
  if (rollout.tooManyRequests > 0)
    found.push(`${rollout.tooManyRequests} requests were answered with 429, expected none`)
  if ((rollout.budget?.violations ?? 0) > 0) found.push(`the budget was violated: ${JSON.stringify(rollout.budget)}`)
  return found
}

/** The API server ends the watches of clients that do not read in time. */
const endedWatches = (warnings: Readonly<Record<string, number>>): number =>
  Object.entries(warnings).reduce((sum, [what, count]) => sum + (what.includes('ended the watch') ? count : 0), 0)
