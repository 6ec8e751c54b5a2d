/**
 * Runs the static checks, the unit tests and the tests on real parts. The last line is `N passed, N failed`. Needs
 * root: it creates and removes network namespaces, systemd hosts and kubelets.
 *
 * Tests on real parts wait for hosts half of their time. What only computes runs beside them with the lowest priority.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { headCommit } from './test/commit.ts'
import { collectResults } from './test/results.ts'
import { samplesOf } from './test/samples.ts'
import { changedSearches, thorough } from './test/searches.ts'

/** `make prove` has all of what these are samples of. */
const samples = samplesOf(headCommit())
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
  const searches = await changedSearches()
  for (const file of searches.known) console.log(`known: ${file} (unchanged since it passed)`)
  if (searches.run.length > 0) searches.markPassed(await tests('search', thorough, searches.run))
  if (samples.searches) await tests('search', samples.searches.env, samples.searches.parameters)
  for (const sample of [...samples.mutants, ...samples.fleets]) await campaign(...sample)
}

async function realParts(): Promise<void> {
  const { check, tests, campaign } = foreground
  // What these install comes from its folder, not from the checkout.
  await check('release of the working tree', [process.execPath, 'test/release/working-tree.ts', folder])
  process.env['SKYHOOKD_RELEASE'] = join(folder, 'release')
  await tests('real')
  await tests('oldest')
  await tests('conformance')
  await tests('release')
  // What a newcomer runs first.
  await check('demo on three hosts', [process.execPath, 'demo/demo.ts'], { SANDBOX: 'demo' })
  await check('removal of the demo', ['bin/sandbox', 'down'], { SANDBOX: 'demo' })
  for (const sample of [...samples.chaos, ...samples.crashPoints]) await campaign(...sample)
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
