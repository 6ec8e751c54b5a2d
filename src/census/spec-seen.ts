/** Whether all nodes report that they follow a spec. Pure. */
import type { SpecVersion } from '../schemas/annotations.ts'
import type { NodeFact } from './node-facts.ts'

/**
 * Each node became complete by this spec or by a later one of the same Skyhook. False where a node does not report it:
 * its agent is older, or it was complete before the edit and had nothing to write. False without nodes.
 */
export const haveAllCompleted = (nodes: readonly Pick<NodeFact, 'completedBy'>[], spec: SpecVersion): boolean =>
  nodes.length > 0 &&
  nodes.every(({ completedBy }) => completedBy?.uid === spec.uid && completedBy.generation >= spec.generation)
