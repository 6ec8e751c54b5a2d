/** The dashboard during a rollout on real hosts: the tool as a person starts it, and a real browser. */
import { execFile, spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { nodeNames, uniqueName, useCluster } from '../kit/cluster/cluster.ts'
import { isCompleteOn } from '../kit/cluster/node-availability.ts'
import { manifest, shellscript } from '../kit/cluster/skyhooks.ts'
import { startBrowser, violationsOf } from './browser.ts'
import { type DashboardPage, squareLabel, startPage } from './page-of.ts'

const cluster = useCluster()
const repository = join(import.meta.dirname, '..', '..')

/** Runs `kubectl skyhook dashboard` from its sources and opens its link. */
async function openTool(...flags: readonly string[]): Promise<DashboardPage> {
  const argv = [join(repository, 'src/cli/main.ts'), 'dashboard', ...flags]
  const child = spawn(process.execPath, argv, {
    env: { ...process.env, KUBECONFIG: cluster.kubeconfig },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = new Promise<number>((resolve) => child.once('close', (code) => resolve(code ?? -1)))
  const end = async (): Promise<number> => {
    child.kill('SIGINT')
    return await ended
  }
  onTestFinished(async () => void (await end()))
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  await expect.poll(() => stdout, { timeout: 60_000 }).toMatch(/^http:.*\n$/)
  return await startPage(await startBrowser(), stdout.trim(), end)
}

test('squares follow a rollout within two seconds, and the page says when the API server hangs', async () => {
  const name = uniqueName('shown')
  onTestFinished(async () => await cluster.remove(name))
  const work = shellscript(cluster.registry, { apply: 'echo tuning the host; sleep 4', apply_check: 'true' })
  await cluster.apply(manifest(name, { interruptionBudget: { count: 0 }, packages: { work } }), ...nodeNames)
  const { page, click, shows, end } = await openTool()
  await shows('#rollout-title', `Rollout of ${name}`)
  await shows('#user', /\w/)
  await shows('#age', /^live/)
  await cluster.edit(name, { interruptionBudget: { count: 1 } }) // the page shows only what it has seen
  const delays: number[] = []
  const seen = new Set<string>()
  for (let count = 0; count < nodeNames.length; count++) {
    const next = (view: Parameters<typeof isCompleteOn>[0]) =>
      nodeNames.find((node) => !seen.has(node) && isCompleteOn(view, name, [node]))
    await cluster.history.eventually('another node is complete', (view) => next(view) !== undefined, 120_000)
    const node = next(cluster.history.now) ?? ''
    seen.add(node)
    const startMs = performance.now()
    await expect.poll(() => squareLabel(page, node), { interval: 20, timeout: 20_000 }).toMatch(`${node}: complete`)
    delays.push(performance.now() - startMs)
    if (count > 0) continue
    await click(`#grid [data-node="${node}"]`)
    await shows('#panel-body', 'Complete.')
    await shows('#output', 'tuning the host', 20_000)
    mkdirSync(join(repository, 'dist'), { recursive: true })
    await page.screenshot({ path: join(repository, 'dist/dashboard.png') })
  }
  console.log(`squares changed ${delays.map((ms) => `${Math.round(ms)} ms`).join(', ')} after their nodes`)
  expect(Math.max(...delays)).toBeLessThan(2_000)
  await shows('#progress-text', '3 of 3 nodes complete')
  const held = await page.$$eval('#lanes .span', (spans) => spans.map((span) => (span as HTMLElement).dataset['node']))
  expect(new Set(held)).toEqual(new Set(nodeNames))
  expect(held.length).toBe(nodeNames.length)
  expect(await violationsOf(page)).toEqual([])

  // it takes connections and says nothing: no connection breaks, and the recording of the cluster stays whole
  onTestFinished(async () => void (await cluster.sandbox.run(['resume', 'apiserver'])))
  await cluster.sandbox.must(['pause', 'apiserver'])
  await shows('#banner', 'The API server does not answer since', 15_000)
  await cluster.sandbox.must(['resume', 'apiserver'])
  await shows('#banner', /^$/, 60_000)
  expect(await end()).toBe(0)
})

test('a viewer sees squares and slots, and what the caller may not read is unknown on the page', async () => {
  const kubectl = async (argv: readonly string[]): Promise<string> => await cluster.sandbox.kubectl(argv)
  const [binding, role] = [uniqueName('viewer'), 'skyhook-viewer-role']
  const template = ['template', 'skyhookd', join(repository, 'chart'), '-n', 'skyhook']
  const people = ['-s', 'templates/people-roles.yaml', '--set', 'rbac.createSkyhookViewerRole=true']
  const env = { ...process.env, ...cluster.sandbox.env() }
  const { stdout: roles } = await promisify(execFile)('helm', [...template, ...people], { env })
  await cluster.sandbox.kubectl(['apply', '-f', '-'], roles)
  onTestFinished(async () => void (await cluster.sandbox.kubectl(['delete', '-f', '-'], roles)))
  await kubectl(['create', 'clusterrolebinding', binding, `--clusterrole=${role}`, '--user=vera', '--user=otto'])
  onTestFinished(async () => void (await kubectl(['delete', 'clusterrolebinding', binding])))
  await kubectl(['-n', 'skyhook', 'create', 'rolebinding', binding, `--role=${role}`, '--user=vera'])
  onTestFinished(async () => void (await kubectl(['-n', 'skyhook', 'delete', 'rolebinding', binding])))
  const name = uniqueName('hidden')
  onTestFinished(async () => await cluster.remove(name))
  const work = shellscript(cluster.registry, { apply: 'true' })
  await cluster.apply(manifest(name, { interruptionBudget: { count: 1 }, packages: { work } }), ...nodeNames)

  const viewer = await openTool('--as', 'vera')
  await viewer.shows('#user', 'vera')
  await viewer.shows('#rollout-title', `Rollout of ${name}`)
  await viewer.shows('#progress-text', '3 of 3 nodes complete', 60_000)
  await viewer.shows('#facts', /Budget: \d of 1 in use/)
  await viewer.click('#grid [data-node="node-1"]')
  await viewer.shows('#panel-body', 'Complete.')
  expect(await viewer.page.$$eval('#grid li', (found) => found.length)).toBe(nodeNames.length)
  await viewer.end()

  const other = await openTool('--as', 'otto', '-n', 'skyhook')
  await other.shows('#rollout-title', `Rollout of ${name}`)
  await other.shows('#facts', 'unknown, you may not read Leases')
  await other.shows('#slots-note', 'Slots are unknown: you may not read Leases')
  await other.shows('#banner', /^$/)
})
