import type { NodeObserver } from '../../kit/node-simulator/node-state.ts'
import type { HostEvidence } from './host-evidence.ts'

/** What must hold of every effect; written from the outside, by what a person may rely on. */
export type Invariant = (evidence: HostEvidence) => NodeObserver

export class InvariantViolation extends Error {}

export function violate(message: string): never {
  throw new InvariantViolation(message)
}
