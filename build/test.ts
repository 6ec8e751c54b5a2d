/**
 * Runs the static checks, the unit tests and the tests on real parts, one after another. The last line is
 * `N passed, N failed`. Needs root: it creates and removes network namespaces, systemd hosts and kubelets.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'

type Report = {
  readonly numPassedTests: number
  readonly numFailedTests: number
  readonly testResults: readonly {
    readonly name: string
    readonly assertionResults: readonly {
      readonly fullName: string
      readonly status: string
      readonly failureMessages?: readonly string[]
    }[]
  }[]
}

/** Of some two thousand, beside those where the agent once failed; four minutes on two processors. */
const faultCases = 12

/** Enough for each kind of fault and edit once; booting and the last rollouts take two more. */
const chaosMinutes = 2

/** Two minutes and a half on two processors; the same ones each time, `make fleet` runs others. */
const fleetSeeds = 800

/** Of the message of each failed test, at the end. */
const messageLines = 6

let passed = 0
let failed = 0
/** Repeated at the end: whoever has only the last lines of a log must know what failed, and why. */
const failures: string[] = []
const folder = mkdtempSync(join(tmpdir(), 'skyhookd-test-'))

function check(name: string, command: readonly [string, ...string[]], env = process.env): void {
  const startedMs = Date.now()
  const [program, ...parameters] = command
  const { status, stdout, stderr } = spawnSync(program, parameters, { encoding: 'utf8', env })
  if (status === 0) passed++
  else {
    failed++
    failures.push(name)
    process.stdout.write(stdout + stderr)
  }
  console.log(`${status === 0 ? 'ok' : 'failed'}: ${name} (${((Date.now() - startedMs) / 1000).toFixed(1)} s)`)
}

/** One vitest project; its counts come from its JSON report, a run without a report counts as one failure. */
function tests(project: string): void {
  const file = join(folder, `${project}.json`)
  const parameters = ['run', '--project', project, '--reporter=default', '--reporter=json', `--outputFile.json=${file}`]
  const env = { SEARCH: 'all', ...process.env }
  const { status } = spawnSync('vitest', parameters, { stdio: ['ignore', 'inherit', 'inherit'], env })
  try {
    const report = JSON.parse(readFileSync(file, 'utf8')) as Report
    passed += report.numPassedTests
    failed += report.numFailedTests
    for (const { name, assertionResults } of report.testResults)
      for (const test of assertionResults)
        if (test.status === 'failed') {
          const why = (test.failureMessages?.[0] ?? '').split('\n').slice(0, messageLines)
          failures.push([`${relative(process.cwd(), name)}: ${test.fullName}`, ...why].join('\n    '))
        }
    if (status !== 0 && report.numFailedTests === 0) {
      failed++ // a file that could not even be loaded
      failures.push(`${project} tests: a file could not be loaded`)
    }
  } catch {
    failed++
    failures.push(`${project} tests gave no report`)
  }
}

/** A program that prints its counts itself. */
function campaign(path: string, ...parameters: readonly string[]): void {
  const command = [join(import.meta.dirname, '..', path), ...parameters]
  const { stdout } = spawnSync(process.execPath, command, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  process.stdout.write(stdout)
  const [, good, bad] = /^(\d+) passed, (\d+) failed$/m.exec(stdout) ?? []
  passed += Number(good ?? 0)
  failed += Number(bad ?? 1) // it ended early
  if (bad !== '0') failures.push(`${path} ${parameters.join(' ')}`)
}

/** What a newcomer runs first. */
function demo(): void {
  const env = { ...process.env, SANDBOX: 'demo' }
  check('demo on three hosts', [process.execPath, 'demo/demo.ts'], env)
  check('removal of the demo', ['bin/sandbox', 'down'], env)
}

check('format', ['biome', 'format', '.'])
check('types', ['tsc', '--noEmit'])
check('types of the dashboard', ['tsc', '--noEmit', '-p', 'test/dashboard'])
check('lint', ['oxlint', '--type-aware', '--deny-warnings'])
check('unused code', ['knip', '--no-progress'])
check('unused code of the product', ['knip', '--no-progress', '--production'])
check('docs and comments', [process.execPath, 'build/checks/main.ts'])
tests('unit')
tests('tool')
tests('monitoring')
tests('dashboard')
// `make mutants` has them all.
check('deliberate bugs of the daemon (a sample)', [process.execPath, 'build/daemon-mutants.ts', '--every', '12'])
campaign('test/fleet/run/campaign.ts', '--seeds', String(fleetSeeds), '--workers', '2')
campaign('test/fleet/mutants/campaign.ts', '--replay')
if (process.getuid?.() === 0) {
  // What these install comes from its folder, not from the checkout.
  check('release of the working tree', [process.execPath, 'test/release/working-tree.ts', folder])
  process.env['SKYHOOKD_RELEASE'] = join(folder, 'release')
  tests('real')
  tests('conformance')
  tests('release')
  demo()
  campaign('test/chaos/campaign.ts', '--minutes', String(chaosMinutes), '--seed', '1')
  // a sample of all failpoints and faults; `make faults` has them all
  campaign('test/faults/campaign.ts', '--runners', '2', '--sample', String(faultCases))
} else {
  failed++
  failures.push('tests on real parts need root for network namespaces and systemd hosts: run sudo make test')
}
rmSync(folder, { recursive: true, force: true })
for (const failure of failures) console.log(`failed: ${failure}`)
console.log(`${passed} passed, ${failed} failed`)
process.exitCode = failed === 0 ? 0 : 1
