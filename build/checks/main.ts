/** Whether Node.js can load the sources; what docs, comments and the rule for unit tests say, held against them. */
import { decisionPageProblems } from './decision-pages.ts'
import { wrongNames } from './docs.ts'
import { failureModeProblems } from './failure-modes.ts'
import { unloadableFiles } from './loadable.ts'
import { modulePageProblems } from './module-page.ts'
import { missingFiles } from './named-files.ts'
import { securityPageProblems } from './security-page.ts'
import { wordingProblems } from './wording.ts'
import { workingTree } from './working-tree.ts'
import { unitTestProblems } from './unit-tests.ts'

const repository = workingTree()
const problems = [
  ...unloadableFiles(repository),
  ...missingFiles(repository),
  ...wrongNames(repository),
  ...modulePageProblems(repository),
  ...failureModeProblems(repository),
  ...decisionPageProblems(repository),
  ...securityPageProblems(repository),
  ...unitTestProblems(repository),
  ...wordingProblems(repository),
]
for (const problem of problems) console.log(problem)
process.exitCode = problems.length === 0 ? 0 : 1
