/**
 * Runs the static checks, the unit tests and the tests on real parts, then says where the time went. The last line is
 * `N passed, N failed`. Needs root: it creates and removes network namespaces, systemd hosts and kubelets.
 *
 * What needs nothing real comes first: a mistake shows within two minutes. Then come tests on hosts, then campaigns on
 * hosts beside tests on API servers and of the tool. Beside all of these, with the lowest priority, run searches and
 * campaigns on virtual time, which cannot notice it.
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

const folder = mkdtempSync(join(tmpdir(), 'skyhookd-test-'))
const boots = join(folder, 'boots')
process.env['SANDBOX_BOOTS'] = boots
const { lane, fail, summary } = collectResults(folder)

/** Shown as it runs: it is the longest. */
async function onHosts(): Promise<void> {
  const { tests } = lane({ isFollowed: true })
  await tests(['hosts', 'conformance'])
}

async function campaigns(): Promise<void> {
  const { check, campaign } = lane()
  // What a newcomer runs first.
  await check('demo on three hosts', [process.execPath, 'demo/demo.ts'], { SANDBOX: 'demo' })
  await check('removal of the demo', ['bin/sandbox', 'down'], { SANDBOX: 'demo' })
  for (const sample of [...samples.crashPoints, ...samples.chaos]) await campaign(...sample)
  await campaign('test/machine/campaign.ts', '--sample')
}

const onApiServers = ['cluster', 'oldest']
const onTool = ['tool', 'monitoring', 'dashboard', 'release']

async function oneAfterAnother(projects: readonly string[]): Promise<void> {
  const { tests } = lane()
  for (const project of projects) await tests(project)
}

async function staticChecks(): Promise<void> {
  await lane().check('static checks', ['bash', join(import.meta.dirname, 'check.sh'), '--static'])
}

async function onVirtualTime(): Promise<void> {
  const { tests, campaign } = lane({ nice: 19 })
  const searches = await changedSearches()
  for (const file of searches.known) console.log(`known: ${file} (unchanged since it passed)`)
  if (searches.run.length > 0)
    searches.markPassed(await tests(['model', 'search'], { env: thorough, parameters: searches.run }))
  for (const sample of [...samples.searches, ...samples.mutants, ...samples.fleets]) await campaign(...sample)
}

async function realParts(): Promise<void> {
  // What these install comes from its folder, not from the checkout.
  await lane().check('release of the working tree', [process.execPath, 'test/kit/pages/working-tree.ts', folder])
  process.env['SKYHOOKD_RELEASE'] = join(folder, 'release')
  await onHosts()
  await Promise.all([campaigns(), oneAfterAnother([...onApiServers, ...onTool])])
}

await Promise.all([staticChecks(), lane().tests(['unit', 'integration'], { parameters: ['--maxWorkers=2'] })])
const computed = onVirtualTime()
if (process.getuid?.() === 0) await realParts()
else {
  fail('tests on real parts need root, for namespaces and systemd hosts: run sudo make test')
  await oneAfterAnother(onTool)
}
await computed
const { text, isGood } = summary(existsSync(boots) ? readFileSync(boots, 'utf8') : '')
rmSync(folder, { recursive: true, force: true })
console.log(text)
process.exitCode = isGood ? 0 : 1
