/** The deliberate bugs, each of which some fleet shows. */
import { batchBugs } from './batch-bugs.ts'
import { clusterBugs } from './cluster-bugs.ts'
import { knownDefects } from './known-defects.ts'
import type { FleetMutant } from './mutant.ts'
import { slotBugs } from './slot-bugs.ts'
import { stageBugs } from './stage-bugs.ts'

export const mutants: readonly FleetMutant[] = [
  ...knownDefects,
  ...slotBugs,
  ...stageBugs,
  ...clusterBugs,
  ...batchBugs,
]
