/** What `kubectl skyhook plan` foretells is wrong. */
import { edit, type Mutant, planCases } from '../mutant.ts'

export const planBugs: readonly Mutant[] = [
  {
    name: 'a plan ends with an uninstall, whatever comes after it',
    edits: [edit('cli/reason/plan/carried-out.ts', 'attempts.delete(action.step.id)', 'attempts.get(action.step.id)')],
    caughtBy: [planCases(/not foretold: /)],
  },
  {
    name: 'a plan takes a step that runs for one that never ends',
    edits: [edit('cli/reason/plan/rehearsal.ts', 'round === 0 ? runningStages(next) : []', '[]')],
    caughtBy: [planCases(/not foretold: /)],
  },
  {
    name: 'a plan takes packages that ask for their interrupt for such that do not',
    edits: [edit('cli/reason/plan/carried-out.ts', 'interrupt: asksForInterrupts', 'interrupt: false')],
    caughtBy: [planCases(/not foretold: /)],
  },
  {
    name: 'a plan takes each complete package of a node at work for one whose configuration has changed',
    edits: [edit('cli/reason/explain/published-record.ts', 'inputsHash(one) === hash)', 'inputsHash(one) !== hash)')],
    caughtBy: [planCases(/foretold and not done: /)],
  },
]
