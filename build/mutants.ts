/**
 * The mutants of build/daemon-mutants.ts, one at a time, in a copy of the tree.
 * `node build/mutants.ts [--only NAME | --every N | --in PATH]` prints which were caught and fails when one survives.
 * `--in lease/`: those of the files below src/lease.
 */
import { spawnSync } from 'node:child_process'
import { mutants } from './daemon-mutants.ts'
import { copyTree, type Mutant, replacementOf } from './mutant-tree.ts'

/** Copied for the tests to run in; dependencies are linked. */
const copied = [
  'src',
  'test/support',
  'test/fleet/api-server',
  'build/test/projects.ts',
  'package.json',
  'tsconfig.json',
  'vitest.config.ts',
]

/** Runs the tests of each mutant in a copy of the tree; returns the names of those that passed them. */
function survivors(selected: readonly Mutant[], onResult: (mutant: Mutant, isCaught: boolean) => void): string[] {
  const tree = copyTree(copied)
  const isPassed = (tests: Iterable<string>): boolean => {
    const files = [...tests].map((file) => `src/${file}`)
    const args = [
      'node_modules/vitest/vitest.mjs',
      'run',
      '--project',
      'unit',
      '--project',
      'integration',
      '--bail=1',
      '--maxWorkers=1',
      ...files,
    ]
    // A bug can make a test spin for ever. timeout(1) kills the whole process group, workers included; that is a catch.
    const command = ['--signal=KILL', '60', process.execPath, ...args]
    return spawnSync('timeout', command, { cwd: tree.path, stdio: 'ignore' }).status === 0
  }
  try {
    if (!isPassed(new Set(selected.flatMap(({ tests }) => tests)))) throw new Error('the tests fail without a mutant')
    const survived = selected.filter((mutant) => {
      const takeOut = tree.put(mutant.name, [replacementOf(mutant)])
      const isCaught = !isPassed(mutant.tests)
      takeOut()
      onResult(mutant, isCaught)
      return !isCaught
    })
    return survived.map(({ name }) => name)
  } finally {
    tree.remove()
  }
}

if (import.meta.main) {
  const [flag, value] = process.argv.slice(2)
  const selected = mutants.filter(
    ({ name, file }, index) =>
      flag === undefined ||
      (flag === '--only' && name === value) ||
      (flag === '--in' && file.startsWith(value ?? '')) ||
      (flag === '--every' && index % Number(value) === 0),
  )
  const survived = survivors(selected, ({ name, file }, isCaught) =>
    process.stdout.write(`${isCaught ? 'caught  ' : 'SURVIVED'} ${file}: ${name}\n`),
  )
  process.stdout.write(`${selected.length - survived.length} of ${selected.length} caught\n`)
  process.exitCode = survived.length > 0 || selected.length === 0 ? 1 : 0
}
