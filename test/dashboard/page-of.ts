/** The dashboard of a fleet, in a browser that has opened its link. */
import { expect, onTestFinished } from 'vitest'
import type { Browser, Page } from 'puppeteer-core'
import { dashboard } from '../../src/cli/commands/dashboard.ts'
import { systemClock } from '../../src/daemon/platform/system-clock.ts'
import type { KubeTransport } from '../../src/kube/transport.ts'
import { type CommandContext, commandContext } from '../kit/tool/command-context.ts'
import { openPage, startBrowser } from './browser.ts'
import { type Fleet, publishRollout, startFleet } from './fleet.ts'

export type DashboardPage = {
  readonly page: Page
  readonly url: string
  /** Ctrl-C. Returns the exit code. */
  readonly end: () => Promise<number>
  /** Clicks once the element is in view and stays in its place: the page moves what is below a table that opens. */
  readonly click: (selector: string) => Promise<void>
  /** Waits until the element shows the text; throws with what it shows instead. */
  readonly shows: (selector: string, text: string | RegExp, withinMs?: number) => Promise<void>
}

/** Runs the command as a person does; it ends with the test. The test fails for errors of the page. */
export async function openDashboard(browser: Browser, transport: KubeTransport): Promise<DashboardPage> {
  const ending = new AbortController()
  const started = commandContext({ transport, clock: systemClock, signal: ending.signal })
  return await openStarted(browser, started, ending, {})
}

/** The same for an archive: `file`. There is no kubeconfig, and no cluster. */
export async function openArchive(browser: Browser, file: string): Promise<DashboardPage> {
  const ending = new AbortController()
  const transport = {} as KubeTransport
  const { context, stdout, stderr } = commandContext({ transport, clock: systemClock, signal: ending.signal })
  const connect = () => Promise.reject(new Error('a kubeconfig was read'))
  return await openStarted(browser, { context: { ...context, connect }, stdout, stderr }, ending, { from: file })
}

async function openStarted(
  browser: Browser,
  { context, stdout }: CommandContext,
  ending: AbortController,
  flags: { readonly from?: string },
): Promise<DashboardPage> {
  const run = dashboard.run(context, { arguments: {}, flags: { ...flags, port: 0 } })
  const end = async (): Promise<number> => {
    ending.abort(new DOMException('ctrl-C', 'AbortError'))
    return await run
  }
  onTestFinished(async () => void (await end()))
  await expect.poll(stdout, { timeout: 60_000 }).toMatch(/^http:.*\n$/)
  return await startPage(browser, stdout().trim(), end)
}

/** Opens the link of a dashboard. `end`: ctrl-C. */
export async function startPage(browser: Browser, url: string, end: () => Promise<number>): Promise<DashboardPage> {
  const { page, problems } = await openPage(browser)
  await page.goto(url, { waitUntil: 'load' })
  // the browser reports each answer that is an error, which tests cause on purpose
  onTestFinished(() => expect(problems.filter((text) => !text.startsWith('Failed to load resource'))).toEqual([]))
  const textOf = async (selector: string): Promise<string> =>
    await page.$eval(selector, (found) => found.textContent ?? '').catch(() => '')
  return {
    page,
    url,
    end,
    click: async (selector) => await page.locator(selector).setTimeout(60_000).click(),
    shows: async (selector, text, withinMs = 30_000) =>
      await expect.poll(async () => await textOf(selector), { timeout: withinMs, interval: 50 }).toMatch(text),
  }
}

type RolloutOptions = {
  /** What the tool asks, in place of the API server itself. */
  readonly transportOf?: (fleet: Fleet) => KubeTransport
  readonly labelsOf?: Parameters<typeof startFleet>[1]
}

/** The dashboard of a rollout in its middle, on this many nodes. */
export async function openRollout(
  count: number,
  { transportOf = ({ transport }) => transport, labelsOf }: RolloutOptions = {},
): Promise<DashboardPage & { readonly fleet: Fleet }> {
  const fleet = await startFleet(count, labelsOf)
  await publishRollout(fleet, count)
  const shown = await openDashboard(await startBrowser(), transportOf(fleet))
  await shown.shows('#progress-text', `${count * 0.4} of ${count}`, 60_000)
  return { ...shown, fleet }
}

/** The node whose square or row has the focus, or the id of another element. */
export const focused = async (page: Page): Promise<string> =>
  await page.evaluate(() => {
    const found = document.activeElement as HTMLElement
    return found.dataset['node'] ?? found.id
  })

/** What a square says of a node. */
export const squareLabel = async (page: Page, node: string): Promise<string | undefined> =>
  await page
    .$eval(`#grid [data-node="${node}"]`, (found) => found.getAttribute('aria-label') ?? '')
    .catch(() => undefined)
