/**
 * Runs the static checks, the unit tests and the tests on real parts. The last line is `N passed, N failed`. Needs
 * root: it creates and removes network namespaces, systemd hosts and kubelets.
 *
 * Tests on real parts wait for hosts half of their time. What only computes runs beside them with the lowest priority.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { collectResults } from './test/results.ts'

/** Of some two thousand, beside those where the agent once failed; four minutes on two processors. */
const faultCases = 12

/** Enough for each kind of fault and edit once; booting and the last rollouts take two more. */
const chaosMinutes = 2

/**
 * The same ones each time; `make fleet` runs others. Half an hour of the processor time that tests on real parts leave,
 * which take longer than that.
 */
const fleetSeeds = 3_000

/** Searches of tests end when everything was searched (test/support/effort.ts). */
const thorough = { SEARCH: 'all' }

const folder = mkdtempSync(join(tmpdir(), 'skyhookd-test-'))
const { foreground, background, fail, summary } = collectResults(folder)

async function computations(): Promise<void> {
  const { check, tests, campaign } = background
  await check('format', ['biome', 'format', '.'])
  await check('types', ['tsc', '--noEmit'])
  await check('types of the dashboard', ['tsc', '--noEmit', '-p', 'test/dashboard'])
  await check('lint', ['oxlint', '--type-aware', '--deny-warnings'])
  await check('unused code', ['knip', '--no-progress'])
  await check('unused code of the product', ['knip', '--no-progress', '--production'])
  await check('docs and comments', [process.execPath, 'build/checks/main.ts'])
  await tests('search', thorough)
  // `make mutants` has them all.
  await check('deliberate bugs of the daemon (a sample)', [
    process.execPath,
    'build/daemon-mutants.ts',
    '--every',
    '12',
  ])
  await campaign('test/fleet/run/campaign.ts', '--seeds', String(fleetSeeds), '--workers', '2')
  await campaign('test/fleet/mutants/campaign.ts', '--replay')
}

async function realParts(): Promise<void> {
  const { check, tests, campaign } = foreground
  // What these install comes from its folder, not from the checkout.
  await check('release of the working tree', [process.execPath, 'test/release/working-tree.ts', folder])
  process.env['SKYHOOKD_RELEASE'] = join(folder, 'release')
  await tests('hosts')
  await tests('cluster')
  await tests('oldest')
  await tests('conformance')
  await tests('release')
  // What a newcomer runs first.
  await check('demo on three hosts', [process.execPath, 'demo/demo.ts'], { SANDBOX: 'demo' })
  await check('removal of the demo', ['bin/sandbox', 'down'], { SANDBOX: 'demo' })
  await campaign('test/chaos/campaign.ts', '--minutes', String(chaosMinutes), '--seed', '1')
  // A sample of all failpoints and faults; `make faults` has them all.
  await campaign('test/faults/campaign.ts', '--runners', '2', '--sample', String(faultCases))
}

// First and alone: some of these have bounds of time, and a mistake shows early.
for (const project of ['unit', 'integration', 'tool', 'monitoring', 'dashboard'])
  await foreground.tests(project, thorough)
const computed = computations()
if (process.getuid?.() === 0) await realParts()
else fail('tests on real parts need root for network namespaces and systemd hosts: run sudo make test')
await computed
rmSync(folder, { recursive: true, force: true })
const { text, isGood } = summary()
console.log(text)
process.exitCode = isGood ? 0 : 1
