/**
 * The mutants of build/daemon-mutants.ts, one at a time, in a copy of the tree. Ends with `N passed, N failed`: what
 * survives has failed.
 */
import { spawnSync } from 'node:child_process'
import { parseArgs } from 'node:util'
import { openPassed } from './campaigns.ts'
import { everyNth, mutantId, mutants } from './daemon-mutants.ts'
import { copyTree, type Mutant, replacementOf } from './mutant-tree.ts'

const usage = `usage: node build/mutants.ts [--only NAME | --in FOLDER | --every N [--shift N]] [--rest] [--minutes N]

  --only NAME   one bug
  --in FOLDER   those of the files in a folder of src, such as lease/
  --every N     the first one and each N-th from there on; --shift N adds each N-th from another one on
  --rest        leave out those that were caught on these sources before, as a file of the cache says
  --minutes N   start with none after N minutes
`

/** Copied for the tests to run in; dependencies are linked. */
const copied = ['src', 'test', 'crds', 'build/test', 'package.json', 'tsconfig.json', 'vitest.config.ts']

/** Runs the tests of each mutant in a copy of the tree, until `isTimeUp`. */
function judge(
  selected: readonly Mutant[],
  isTimeUp: () => boolean,
  onResult: (mutant: Mutant, isCaught: boolean) => void,
): void {
  const tree = copyTree(copied)
  const isPassed = (tests: Iterable<string>): boolean => {
    const files = [...tests].map((file) => `src/${file}`)
    const projects = ['--project', 'unit', '--project', 'integration']
    const args = ['node_modules/vitest/vitest.mjs', 'run', ...projects, '--bail=1', '--maxWorkers=1', ...files]
    // A bug can make a test spin for ever. timeout(1) kills the whole process group, workers included; that is a catch.
    const command = ['--signal=KILL', '60', process.execPath, ...args]
    return spawnSync('timeout', command, { cwd: tree.path, stdio: 'ignore' }).status === 0
  }
  try {
    if (!isPassed(new Set(selected.flatMap(({ tests }) => tests)))) throw new Error('the tests fail without a mutant')
    for (const mutant of selected) {
      if (isTimeUp()) return
      const takeOut = tree.put(mutant.name, [replacementOf(mutant)])
      const isCaught = !isPassed(mutant.tests)
      takeOut()
      onResult(mutant, isCaught)
    }
  } finally {
    tree.remove()
  }
}

async function main(): Promise<number> {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const options = { only: text, in: text, every: text, shift: text, rest: flag, minutes: text, help: flag } as const
  const { values } = parseArgs({ options })
  if (values.help === true) {
    console.log(usage)
    return 0
  }
  const { only, in: folder = '', every = '1', shift = '0', minutes = 'Infinity' } = values
  const startedMs = Date.now()
  const isTimeUp = (): boolean => Date.now() - startedMs > Number(minutes) * 60_000
  const record = await openPassed('mutants')
  const selected = everyNth(mutants, Number(every), Number(shift)).filter(
    ({ name, file }) => (only === undefined || name === only) && file.startsWith(folder),
  )
  const isKnown = (mutant: Mutant): boolean => values.rest === true && record.has(mutantId(mutant))
  const rest = selected.filter((mutant) => !isKnown(mutant))
  const count = { passed: selected.length - rest.length, failed: 0 }
  if (rest.length > 0)
    judge(rest, isTimeUp, (mutant, isCaught) => {
      count[isCaught ? 'passed' : 'failed']++
      if (isCaught) record.add(mutantId(mutant))
      console.log(`${isCaught ? 'caught  ' : 'SURVIVED'} ${mutantId(mutant)}`)
      if (!isCaught) console.log(`again: node build/mutants.ts --only '${mutant.name}'`)
    })
  console.log(`${count.passed} passed, ${count.failed} failed`)
  return count.failed > 0 || selected.length === 0 ? 1 : 0
}

if (import.meta.main) process.exitCode = await main()
