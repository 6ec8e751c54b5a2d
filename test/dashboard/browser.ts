/** Debian's Chromium without a screen, driven over its DevTools protocol. */
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import axe from 'axe-core'
import { type Browser, launch, type Page } from 'puppeteer-core'
import { onTestFinished } from 'vitest'

const program = '/usr/bin/chromium'
/** Text has to have a form, also on a machine without a screen. */
const packages = ['chromium', 'fonts-dejavu-core']

/** Installs what is missing, as root. @throws Error with what to install */
function requireChromium(): void {
  if (existsSync(program)) return
  const apt = ['-qqy', '-o', 'DPkg::Lock::Timeout=300']
  const install = (): boolean =>
    spawnSync('apt-get', [...apt, 'install', '--no-install-recommends', ...packages], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    }).status === 0
  if (install()) return
  execFileSync('apt-get', [...apt, 'update'], { stdio: 'ignore' })
  if (!install()) throw new Error(`apt-get could not install ${packages.join(' ')}`)
}

/** Ends with the test. */
export async function startBrowser(): Promise<Browser> {
  requireChromium()
  const browser = await launch({
    executablePath: program,
    // root has no sandbox of Chromium; the page is ours. /dev/shm is small in containers
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
    defaultViewport: { width: 1_400, height: 1_000 },
    protocolTimeout: 240_000,
  })
  onTestFinished(async () => await browser.close())
  return browser
}

/** A page whose errors fail the test, as does anything that its policy refuses. */
export async function openPage(browser: Browser): Promise<{ readonly page: Page; readonly problems: string[] }> {
  const page = await browser.newPage()
  const problems: string[] = []
  page.on('pageerror', (error) => problems.push(String(error)))
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text())
  })
  return { page, problems }
}

/** What axe-core finds, in short. Nothing is left out of its rules. */
export async function violationsOf(page: Page): Promise<readonly string[]> {
  await page.evaluate(axe.source)
  const found = await page.evaluate(async () => {
    const { axe } = globalThis as unknown as { axe: { run: () => Promise<AxeResults> } }
    return (await axe.run()).violations.map(
      ({ id, nodes }) => `${id}: ${nodes.length} such as ${nodes[0]?.html ?? ''} ${nodes[0]?.failureSummary ?? ''}`,
    )
  })
  return found
}

type AxeResults = {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary?: string }[]
  }[]
}
