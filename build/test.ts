/**
 * Runs the static checks, the unit tests and the tests on real parts, then says where the time went. The last line is
 * `N passed, N failed`. Needs root: it creates and removes network namespaces, systemd hosts and kubelets.
 *
 * Tests on hosts wait for them most of the time. So four lanes run side by side: tests on hosts, campaigns on hosts,
 * tests on API servers, and with the lowest priority what only computes.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { headCommit } from './test/git.ts'
import { collectResults } from './test/results.ts'
import { samplesOf } from './test/samples.ts'
import { changedSearches, thorough } from './test/searches.ts'

/** `make prove` has all of what these are samples of. */
const samples = samplesOf(headCommit())

/** Sandboxes of end-to-end tests at the same time: more keep two processors busy enough for false alarms. */
const hostWorkers = 2

const folder = mkdtempSync(join(tmpdir(), 'skyhookd-test-'))
const boots = join(folder, 'boots')
process.env['SANDBOX_BOOTS'] = boots
const { lane, fail, summary } = collectResults(folder)

/** Shown as it runs: it is the longest. */
async function onHosts(): Promise<void> {
  const { tests } = lane({ isFollowed: true })
  await tests(['hosts', 'conformance'], { parameters: [`--maxWorkers=${hostWorkers}`] })
}

async function campaigns(): Promise<void> {
  const { check, campaign } = lane()
  // What a newcomer runs first.
  await check('demo on three hosts', [process.execPath, 'demo/demo.ts'], { SANDBOX: 'demo' })
  await check('removal of the demo', ['bin/sandbox', 'down'], { SANDBOX: 'demo' })
  for (const sample of [...samples.crashPoints, ...samples.chaos]) await campaign(...sample)
}

async function onApiServers(): Promise<void> {
  const { tests } = lane({ nice: 5 })
  await tests('cluster')
  await tests('oldest')
}

async function computations(): Promise<void> {
  const { check, tests, campaign } = lane({ nice: 19 })
  await check('format', ['biome', 'format', '.'])
  await check('types', ['tsc', '--noEmit'])
  await check('types of the dashboard', ['tsc', '--noEmit', '-p', 'test/dashboard'])
  await check('lint', ['oxlint', '--type-aware', '--deny-warnings'])
  await check('unused code', ['knip', '--no-progress'])
  await check('unused code of the product', ['knip', '--no-progress', '--production'])
  await check('docs and comments', [process.execPath, 'build/checks/main.ts'])
  await tests(['unit', 'integration'], { env: thorough })
  for (const project of ['tool', 'monitoring', 'dashboard', 'release']) await tests(project)
  const searches = await changedSearches()
  for (const file of searches.known) console.log(`known: ${file} (unchanged since it passed)`)
  if (searches.run.length > 0) searches.markPassed(await tests('search', { env: thorough, parameters: searches.run }))
  if (samples.searches) await tests('search', samples.searches)
  for (const sample of [...samples.mutants, ...samples.fleets]) await campaign(...sample)
}

async function realParts(): Promise<void> {
  // What these install comes from its folder, not from the checkout.
  await lane().check('release of the working tree', [process.execPath, 'test/release/working-tree.ts', folder])
  process.env['SKYHOOKD_RELEASE'] = join(folder, 'release')
  await Promise.all([onHosts(), campaigns(), onApiServers()])
}

const computed = computations()
if (process.getuid?.() === 0) await realParts()
else fail('tests on real parts need root for network namespaces and systemd hosts: run sudo make test')
await computed
const { text, isGood } = summary(existsSync(boots) ? readFileSync(boots, 'utf8') : '')
rmSync(folder, { recursive: true, force: true })
console.log(text)
process.exitCode = isGood ? 0 : 1
