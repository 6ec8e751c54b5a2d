/**
 * Runs the searches whose lives are random with the lives of another seed. Ends with `N passed, N failed`.
 */
import { spawnSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { failuresOf, readReport, reportOptions } from '../../build/test/vitest-report.ts'
import { addOpenSeed, isOpen, type OpenSeed, openSeedsPath } from '../kit/open-seeds.ts'
import { copySourcesBefore, repository } from '../kit/sources-before.ts'

const usage = `usage: node test/model/campaign.ts --seed N [--open] [FILE…]

  --seed N   of the lives
  --open     run a file that fails on the sources before the change, too: of HEAD if the working tree differs, else of
             its parent. A test that fails alike there is added to ${openSeedsPath} and does not count
  FILE       one of the searches; without it all of them
`

const searches = ['corrections', 'hostile', 'plan/plan', 'random-lives', 'reboots', 'waits'].map(
  (name) => `test/model/${name}.test.ts` as const,
)
type Search = Exclude<OpenSeed['of'], 'fleets'>

type Outcome = { readonly passed: number; readonly violations: readonly string[] }

/** Tests that fail, with the first line of why. A file that gives no report fails as one. */
function runSearch(folder: string, file: Search, seed: string): Outcome {
  const output = join(tmpdir(), `search-${process.pid}.json`)
  const parameters = ['run', '--project', 'model', ...reportOptions(output), file]
  const { error, status } = spawnSync('vitest', parameters, {
    cwd: folder,
    env: { ...process.env, SEARCH_SEED: seed },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  try {
    const report = readReport(output)
    if (report === undefined) return { passed: 0, violations: [`no report: ${error?.message ?? `exit ${status}`}`] }
    const violations = failuresOf(report).map(({ fullName, message }) => `${fullName}: ${message.split('\n')[0]}`)
    const isLoaded = status === 0 || violations.length > 0
    return { passed: report.numPassedTests, violations: isLoaded ? violations : ['the file could not be loaded'] }
  } finally {
    rmSync(output, { force: true })
  }
}

type Failure = { readonly file: Search; readonly violation: string }

/** Without those that the change is not to blame for, which the list of open seeds has now. */
function ofTheChange(failures: readonly Failure[], seed: string): readonly Failure[] {
  if (failures.length === 0) return failures
  const before = copySourcesBefore()
  if (before === undefined) {
    console.log('git does not have the sources before the change: each test that fails counts')
    return failures
  }
  const files = [...new Set(failures.map(({ file }) => file))]
  const known = new Map(files.map((file) => [file, runSearch(before.path, file, seed).violations]))
  before.remove()
  return failures.filter(({ file, violation }) => {
    const sameBefore = known.get(file)?.find((one) => one === violation)
    if (!isOpen(violation, sameBefore)) return true
    addOpenSeed({ seed: Number(seed), of: file, rule: violation, about: `fails on ${before.commit.slice(0, 7)}, too` })
    console.log(`open: ${commandOf(file, seed)} fails on ${before.commit.slice(0, 7)}, too: ${violation}`)
    return false
  })
}

const commandOf = (file: string, seed: string): string => `node test/model/campaign.ts --seed ${seed} ${file}`

function main(): number {
  const { values, positionals } = parseArgs({
    options: { seed: { type: 'string' }, open: { type: 'boolean' }, help: { type: 'boolean' } },
    allowPositionals: true,
  })
  if (values.help === true) {
    console.log(usage)
    return 0
  }
  const { seed } = values
  const unknown = positionals.filter((file) => !searches.some((one) => one === file))
  if (seed === undefined || !/^\d+$/.test(seed)) throw new Error('--seed: give a number from 0 on')
  if (unknown.length > 0) throw new Error(`${unknown.join(', ')}: take one of ${searches.join(', ')}`)
  let passed = 0
  const failures: Failure[] = []
  for (const file of searches.filter((one) => positionals.length === 0 || positionals.includes(one))) {
    const outcome = runSearch(repository, file, seed)
    passed += outcome.passed
    failures.push(...outcome.violations.map((violation) => ({ file, violation })))
  }
  const failing = values.open === true ? ofTheChange(failures, seed) : failures
  for (const { file, violation } of failing) console.log(`${violation}\nagain: ${commandOf(file, seed)}`)
  console.log(`${passed} passed, ${failing.length} failed`)
  return failing.length === 0 ? 0 : 1
}

process.exitCode = main()
