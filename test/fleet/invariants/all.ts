/** The rules of a fleet, all of which every run is judged by. */
import type { Invariant } from './invariant.ts'

export const invariants: readonly Invariant[] = []
