/** All deliberate bugs, and what is to be tried with them. */
import { batchBugs } from './bugs/batches.ts'
import { daemonBugs } from './bugs/daemon.ts'
import { knownDefects } from './bugs/known-defects.ts'
import { packageBugs } from './bugs/packages.ts'
import { planBugs } from './bugs/plans.ts'
import { slotBugs } from './bugs/slots.ts'
import { stageBugs } from './bugs/stages.ts'
import type { Catch, Mutant } from './mutant.ts'

export const mutants: readonly Mutant[] = [
  ...knownDefects,
  ...slotBugs,
  ...stageBugs,
  ...packageBugs,
  ...planBugs,
  ...daemonBugs,
  ...batchBugs,
]

/** Whether one tier catches the bug. */
export type Trial = { readonly mutant: Mutant; readonly by: Catch }

export const trialsOf = (list: readonly Mutant[]): readonly Trial[] =>
  list.flatMap((mutant) => mutant.caughtBy.map((by) => ({ mutant, by })))

/** The same on each run; no two are the same. */
export const trialId = ({ mutant, by }: Trial): string =>
  by.tier === 'model' ? `${by.tier} ${by.test} ${by.title}: ${mutant.name}` : `${by.tier}: ${mutant.name}`

/** Every so many-th one, from the first on and from `shift` on. */
export const everyNth = <T>(list: readonly T[], step: number, shift: number): T[] =>
  list.filter((_, index) => index % step === 0 || index % step === shift % step)
