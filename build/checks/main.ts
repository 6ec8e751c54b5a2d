/**
 * Whether Node.js can load the sources; what docs, comments and the rule for unit tests say, held against them.
 * Usage: main.ts [--phrases]   --phrases: only how often each folder has the phrases of build/lint/phrases.ts
 */
import { decisionPageProblems } from './decision-pages.ts'
import { wrongNames } from './docs.ts'
import { failureModeProblems } from './failure-modes.ts'
import { unloadableFiles } from './loadable.ts'
import { modulePageProblems } from './module-page.ts'
import { missingFiles } from './named-files.ts'
import type { Repository } from './repository.ts'
import { securityPageProblems } from './security-page.ts'
import { phraseCounts, wordingProblems } from './wording.ts'
import { workingTree } from './working-tree.ts'
import { unitTestProblems } from './unit-tests.ts'

const problemsOf = (repository: Repository): string[] => [
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

const repository = workingTree()
if (process.argv.includes('--phrases')) for (const line of phraseCounts(repository)) console.log(line)
else {
  const problems = problemsOf(repository)
  for (const problem of problems) console.log(problem)
  process.exitCode = problems.length === 0 ? 0 : 1
}
