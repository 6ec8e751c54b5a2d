/** The dashboard of a support archive in a real browser. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Page } from 'puppeteer-core'
import { packBundle } from '../../src/cli/bundle/archive.ts'
import { collectBundle } from '../../src/cli/bundle/collect.ts'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import { startBrowser, violationsOf } from './browser.ts'
import { nodeName, publishRollout, startFleet } from './fleet.ts'
import { openArchive, squareLabel } from './page-of.ts'

const nodes = 200
const passingMs = 3 * 3_600_000

/** The path of an archive of a rollout in its middle; the cluster is gone. */
async function archiveOfRollout(): Promise<string> {
  const fleet = await startFleet(nodes)
  await publishRollout(fleet, nodes)
  const { signal } = new AbortController()
  const request = { namespace: 'skyhook', clock: systemClock, signal, nodes: [], documents: new Map<string, unknown>() }
  const { index, files } = await collectBundle(fleet.transport, request)
  fleet.server.stop()
  const folder = await mkdtemp(join(tmpdir(), 'archive-'))
  onTestFinished(async () => await rm(folder, { recursive: true }))
  const file = join(folder, 'support.tar.gz')
  await writeFile(file, await packBundle({ index, files }))
  return file
}

/** Hours pass in the browser. */
const passHours = async (page: Page): Promise<void> =>
  await page.evaluate((ms) => {
    const now = Date.now.bind(Date)
    Date.now = () => now() + ms
  }, passingMs)

async function color(page: Page, value: 'light' | 'dark'): Promise<void> {
  await page.emulateMediaFeatures([
    { name: 'prefers-color-scheme', value },
    { name: 'prefers-reduced-motion', value: 'reduce' },
  ])
}

/** `make pictures`: the page as the README shows it. */
async function keepPictures(page: Page): Promise<void> {
  const folder = process.env['README_PICTURES']
  if (folder === undefined) return
  for (const value of ['light', 'dark'] as const) {
    await color(page, value)
    await page.screenshot({ path: `${folder}/dashboard-${value}.png`, optimizeForSpeed: false })
  }
}

test('an archive is shown as it was, says that nothing changes, and axe-core finds nothing on its page', async () => {
  const file = await archiveOfRollout()
  const { page, click, shows, end } = await openArchive(await startBrowser(), file)
  await shows('#progress-text', `${nodes * 0.4} of ${nodes}`, 60_000)
  await shows('#archive', /^An archive of \d+ \w+ \d{4} at \d\d:\d\d:\d\d .+: nothing changes\./)
  await shows('#age', /^does not change, (?:\d+s|[2-9]m) old$/)
  await shows('#identity', `Archive${file}Made bykubectl skyhook`)
  expect(await page.$$('#context, #user, #server')).toEqual([])
  expect(await squareLabel(page, nodeName(83))).toBe(`${nodeName(83)}: in progress, has a slot (rebooting)`)
  expect(await squareLabel(page, nodeName(84))).toContain('erroring, has a slot (failed), StepFailed')
  expect(await page.$$eval('#lanes .lane', (found) => found.length)).toBe(5)
  await shows('#lanes .lane:nth-child(3)', `${nodeName(83)} rebooting`)
  await shows('#slots-note', 'Who held a slot when the archive was made')
  // ages are those of the archive: slots and reasons were a minute or two old
  await shows('#facts', /Budget: 4 of 4 in use: node-0081 \(working, (?:\d+s|[2-9]m)\)/)
  await shows('#reasons', /ImagePull 3 nodes failing, for (?:\d+s|[2-9]m)/)
  const axisText = async () => await page.$eval('#lanes .axis', ({ textContent }) => textContent)
  const axis = await axisText()
  await keepPictures(page)
  await passHours(page)
  await shows('#age', /^does not change, 3h\d*m? old$/)
  expect(await axisText()).toBe(axis)
  await color(page, 'light')
  expect(await violationsOf(page), 'in light').toEqual([])

  await click(`#grid [data-node="${nodeName(84)}"]`)
  await shows('#panel-body', 'Gates')
  await shows('#panel-body', `Note: node ${nodeName(84)} reports StepFailed`)
  await shows('#panel-body', 'the bundle has the pods of nodes that were out of service')
  await shows(
    '#output-note',
    `kubectl skyhook logs tuning --node ${nodeName(84)}; on the host: /var/log/skyhook/tuning`,
  )
  await shows('#panel-actions', `kubectl skyhook explain tuning ${nodeName(84)} --from ${file}`)
  await click('#lanes-details summary')
  await click('#plan summary')
  await click('#plan-load')
  await shows('#plan-outcome', 'This is tuning as it is in the archive')
  await page.$eval('#plan-text', (area) => {
    const text = area as HTMLTextAreaElement
    text.value = text.value.replace('version: 1.2.0', 'version: 1.3.0')
  })
  await click('#plan-show')
  await shows('#plan-outcome', 'Nodes would be disrupted.', 60_000)
  await shows('#plan-result', 'the API server was not asked, a support archive has no API server')
  await shows('#plan-hint', 'no API server is asked')
  for (const value of ['light', 'dark'] as const) {
    await color(page, value)
    expect(await violationsOf(page), `with a node and the plan in ${value}`).toEqual([])
  }
  await shows('#banner', /^$/)

  expect(await end()).toBe(0)
  await shows('#banner', /^kubectl skyhook dashboard does not answer since [\d:]+\. Start it again/, 15_000)
  await shows('#progress-text', `${nodes * 0.4} of ${nodes}`)
})
