/**
 * `make cover`: which lines of the files that a change touches no unit test reaches. The change is what differs from
 * the branch `main`, on `main` itself the last commit, each with the working tree. It only reports, and never fails.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { type FileCoverage, isCovered, uncoveredRanges } from './cover/ranges.ts'

const usage = `usage: node build/cover.ts [FILE...] | --all

  FILE    these files instead of those that the change touches
  --all   every file of src and build, by all unit tests: minutes
`

const repository = join(import.meta.dirname, '..')

function git(...parameters: readonly string[]): string {
  return execFileSync('git', parameters, { cwd: repository, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
}

/** The commit before the change. */
function baseOf(): string {
  const head = git('rev-parse', 'HEAD').trim()
  for (const main of ['main', 'origin/main']) {
    try {
      const base = git('merge-base', main, 'HEAD').trim()
      if (base !== head) return base
    } catch {
      // a clone without it
    }
  }
  return 'HEAD~1'
}

function changedFiles(): string[] {
  const tracked = git('diff', '--name-only', '--diff-filter=d', baseOf())
  const added = git('ls-files', '--others', '--exclude-standard')
  return [...new Set(`${tracked}${added}`.split('\n'))].filter((file) => isCovered(file) && existsSync(file))
}

/** By path from the root. */
function coverageOf(files: readonly string[] | 'all'): Map<string, FileCoverage> {
  const folder = mkdtempSync(join(tmpdir(), 'cover-'))
  try {
    const included = files === 'all' ? ['src/**/*.ts', 'build/**/*.ts'] : files
    const tests = files === 'all' ? ['run'] : ['related', '--run', ...files]
    const { status } = spawnSync(
      process.execPath,
      [
        'node_modules/vitest/vitest.mjs',
        ...tests,
        '--project',
        'unit',
        '--passWithNoTests',
        '--coverage.enabled',
        '--coverage.reportOnFailure',
        '--coverage.reporter=json',
        `--coverage.reportsDirectory=${folder}`,
        ...included.map((file) => `--coverage.include=${file}`),
      ],
      { cwd: repository, stdio: 'ignore' },
    )
    if (status !== 0)
      console.log('some tests failed (make check shows them): what they would have reached may be missing below')
    const report = join(folder, 'coverage-final.json')
    if (!existsSync(report)) throw new Error('vitest made no report: does make check pass?')
    const found = JSON.parse(readFileSync(report, 'utf8')) as Record<string, FileCoverage>
    return new Map(Object.entries(found).map(([path, coverage]) => [relative(repository, path), coverage]))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function main(): number {
  process.chdir(repository)
  const options = { all: { type: 'boolean' }, help: { type: 'boolean' } } as const
  const { values, positionals } = parseArgs({ options, allowPositionals: true })
  if (values.help === true) {
    console.log(usage)
    return 0
  }
  const files = values.all === true ? 'all' : positionals.length > 0 ? positionals : changedFiles()
  if (files.length === 0) {
    console.log(`no source in src or build has changed since ${git('rev-parse', '--short', baseOf()).trim()}`)
    return 0
  }
  const coverage = [...coverageOf(files)].filter(([file]) => isCovered(file)).toSorted(([a], [b]) => (a < b ? -1 : 1))
  const lines = coverage.flatMap(([file, one]) => uncoveredRanges(one).map((range) => `${file}:${range}`))
  for (const line of lines) console.log(line)
  console.log(`${coverage.length} files, ${lines.length} places that no unit test reaches`)
  return 0
}

process.exitCode = main()
