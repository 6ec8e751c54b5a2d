/** The dashboard of 1,000 nodes in a real browser, on a simulated API server. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { violationsOf } from './browser.ts'
import { nodeName } from './fleet.ts'
import { focused, openRollout, squareLabel } from './page-of.ts'

const nodes = 1_000

test('axe-core finds nothing on the page of 1,000 nodes, in light and dark, in each of its forms', async () => {
  const { page, click, shows, fleet } = await openRollout(nodes)
  for (const value of ['light', 'dark']) {
    await page.emulateMediaFeatures([
      { name: 'prefers-color-scheme', value },
      { name: 'prefers-reduced-motion', value: 'reduce' },
    ])
    expect(await violationsOf(page), value).toEqual([])
  }
  await fleet.tell(nodeName(404), 'StepFailed', 'Skyhook tuning: apply of tuned failed')
  await click(`#grid [data-node="${nodeName(404)}"]`)
  await shows('#panel-body', 'Gates')
  await shows('#panel-body', 'Node StepFailed: Skyhook tuning: apply of tuned failed')
  await click('#lanes-details summary')
  await click('#plan summary')
  expect(await violationsOf(page), 'with a node and the plan').toEqual([])
  await click('#show-table')
  expect(await page.$$eval('#table-body tr', (rows) => rows.length)).toBe(nodes)
  expect(await violationsOf(page), 'as a table').toEqual([])
  fleet.server.stop()
  await shows('#banner', 'does not answer')
  expect(await violationsOf(page), 'without the API server').toEqual([])
  await page.emulateMediaFeatures([
    { name: 'prefers-color-scheme', value: 'light' },
    { name: 'prefers-reduced-motion', value: 'reduce' },
  ])
  expect(await violationsOf(page), 'in light without the API server').toEqual([])
})

test('squares, counts and lanes of 1,000 nodes change within two seconds of their nodes', async () => {
  const { page, fleet, shows } = await openRollout(nodes)
  const delays: number[] = []
  for (let number = 405; number < 415; number++) {
    const node = nodeName(number)
    expect(await squareLabel(page, node)).toContain('WaitingForSlot')
    const startMs = performance.now()
    await fleet.publish(node, 'complete')
    await expect.poll(() => squareLabel(page, node), { interval: 20, timeout: 10_000 }).toBe(`${node}: complete`)
    delays.push(performance.now() - startMs)
  }
  expect(Math.max(...delays)).toBeLessThan(2_000)
  await shows('#progress-text', '410 of 1000', 2_000)
  await fleet.giveBack(2)
  await shows('#lanes .lane:nth-child(3)', 'free', 2_000)
  await fleet.takeSlot(nodeName(500), 2, 'draining')
  await shows('#lanes .lane:nth-child(3)', `${nodeName(500)} draining`, 2_000)
  expect(
    await page.$$eval('#lanes .lane:nth-child(3) .span', (spans) => spans.map(({ textContent }) => textContent)),
  ).toEqual([nodeName(403), `${nodeName(500)} draining`])
})

test('the page says so when the API server is gone, and follows it when it is back', async () => {
  const { page, fleet, shows } = await openRollout(100)
  await shows('#age', /^live, last answer \ds ago$/)
  fleet.server.stop()
  await shows('#banner', /^The API server does not answer since \d\d:\d\d:\d\d: what is shown is of then/, 10_000)
  await shows('#age', /^old, last answer/)
  expect(await squareLabel(page, nodeName(45))).toContain('waiting')
  fleet.server.start()
  await fleet.publish(nodeName(45), 'complete')
  await shows('#banner', /^$/, 30_000)
  await shows('#age', /^live/)
  await expect.poll(() => squareLabel(page, nodeName(45)), { timeout: 10_000 }).toBe(`${nodeName(45)}: complete`)
})

test('the page says so when the tool has ended', async () => {
  const { end, shows } = await openRollout(20)
  expect(await end()).toBe(0)
  await shows('#banner', /^kubectl skyhook dashboard does not answer since/, 15_000)
})

test('the link works once, its cookie is hidden from scripts, and nothing leaves the machine', async () => {
  const { page, url, shows } = await openRollout(20)
  const asked = new Set<string>()
  page.on('request', (request) => void asked.add(new URL(request.url()).origin))
  expect(page.url()).not.toContain('token')
  expect(await page.evaluate(() => document.cookie)).toBe('')
  await page.reload()
  await shows('#progress-text', '8 of 20')
  expect([...asked].filter((origin) => origin !== 'null')).toEqual([new URL(url).origin])
  const stranger = await (await page.browser().createBrowserContext()).newPage()
  for (const address of [url, ...['.', 'api/events', '/', '/api/events'].map((path) => new URL(path, url).href)])
    expect((await stranger.goto(address))?.status()).toBe(401)
})

test('a page of another port gets nothing, though the browser sends the cookie, and its server gets no cookie', async () => {
  const { page, url } = await openRollout(20)
  // another port is another origin and the same site: SameSite lets the cookie through, the dashboard refuses
  const cookies: (string | undefined)[] = []
  const elsewhere = createServer(({ headers }, response) => {
    cookies.push(headers.cookie)
    response.end('<link rel=icon href=data:,><p>elsewhere')
  })
  await new Promise<void>((resolve) => void elsewhere.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void elsewhere.close())
  const other = await page.browser().newPage()
  await other.goto(`http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/`)
  const asked = new Set<string>()
  const statuses = new Map<string, number>()
  const network = await other.createCDPSession()
  await network.send('Network.enable')
  // the other page's own load may still be reported
  network.on('Network.requestWillBeSent', ({ requestId, request }) => {
    if (request.url.startsWith(new URL('/', url).href)) asked.add(requestId)
  })
  // also of answers that the browser keeps from the page
  network.on('Network.responseReceivedExtraInfo', ({ requestId, statusCode }) => {
    statuses.set(requestId, statusCode)
  })
  const answers = await other.evaluate(async (base) => {
    const found: string[] = []
    for (const path of ['', 'api/events', 'api/manifest?skyhook=tuning'])
      for (const mode of ['cors', 'no-cors'] as const) {
        const asked = fetch(`${base}${path}`, { credentials: 'include', mode })
        found.push(
          await asked.then(
            async (answer) => await answer.text(),
            () => '',
          ),
        )
      }
    return found
  }, new URL('.', url).href)
  expect(new Set(cookies)).toEqual(new Set([undefined]))
  expect(answers).toEqual(Array.from({ length: 6 }, () => ''))
  expect(asked.size).toBe(6)
  await expect.poll(() => [...asked].map((id) => statuses.get(id))).toEqual(Array.from({ length: 6 }, () => 403))
})

test('the keyboard goes through the grid, opens a node and comes back', async () => {
  const { page, shows } = await openRollout(200)
  expect(await page.$$eval('#grid [tabindex="0"]', (found) => found.length)).toBe(1)
  await page.focus('#filter')
  await page.keyboard.press('Tab')
  expect(await focused(page)).toBe(nodeName(1))
  await page.keyboard.press('ArrowRight')
  await page.keyboard.press('ArrowRight')
  expect(await focused(page)).toBe(nodeName(3))
  await page.keyboard.press('ArrowDown')
  const below = await focused(page)
  expect(below > nodeName(10)).toBe(true)
  await page.keyboard.press('ArrowUp')
  expect(await focused(page)).toBe(nodeName(3))
  await page.keyboard.press('End')
  expect(await focused(page)).toBe(nodeName(200))
  await page.keyboard.press('Home')
  await page.keyboard.press('Enter')
  await shows('#panel-title', `Node ${nodeName(1)}`)
  expect(await focused(page)).toBe('panel-title')
  await shows('#panel-body', 'Complete.')
  await page.keyboard.press('Escape')
  expect(await focused(page)).toBe(nodeName(1))
  expect(await page.$eval('#panel', (panel) => (panel as HTMLElement).hidden)).toBe(true)
})

test('the table says what the grid says, and the filter counts for both', async () => {
  const { page, click, shows } = await openRollout(200)
  await page.type('#filter', 'ImagePull')
  await shows('#shown', '3 of 200 nodes')
  const squares = await page.$$eval('#grid li:not([hidden]) button', (found) =>
    found.map(({ dataset }) => `${dataset['node']} ${dataset['status']}`),
  )
  await click('#show-table')
  const rows = await page.$$eval('#table-body tr', (found) =>
    found.map((row) => `${row.cells[0]?.textContent} ${row.cells[1]?.textContent}`),
  )
  expect(rows).toEqual(squares)
  expect(rows).toEqual([100, 150, 200].map((number) => `${nodeName(number)} blocked`))
})

test('a row of the table that moves keeps the focus, also in a browser that cannot move elements', async () => {
  const { page, click, fleet } = await openRollout(20)
  await page.evaluate(() => delete (Element.prototype as { moveBefore?: unknown }).moveBefore)
  await click('#show-table')
  await click('#table-head th:nth-child(2) button') // by state
  await page.focus(`#table-body [data-node="${nodeName(15)}"]`)
  await fleet.publish(nodeName(15), 'complete')
  await page.waitForSelector(`#table-body tr:nth-child(9) [data-node="${nodeName(15)}"]`)
  expect(await focused(page)).toBe(nodeName(15))
})

test('states differ by a sign and a word, and nothing moves for those who do not want it', async () => {
  const { page } = await openRollout(200)
  const signs = await page.evaluate(() => {
    const found = new Map<string, string>()
    for (const square of document.querySelectorAll<HTMLElement>('#grid .square'))
      found.set(square.dataset['status'] ?? '', getComputedStyle(square, '::before').content)
    return [...found]
  })
  expect(signs.length).toBeGreaterThan(5)
  expect(new Set(signs.map(([, sign]) => sign)).size).toBe(signs.length)
  const duration = async (): Promise<string> =>
    await page.$eval('#grid .square', (square) => getComputedStyle(square).transitionDuration)
  expect(await duration()).not.toBe('0s')
  await page.emulateMediaFeatures([{ name: 'prefers-reduced-motion', value: 'reduce' }])
  expect(await duration()).toBe('0s')
})

test('a click on a node shows its Events with their ages, and the output of its steps as they write it', async () => {
  let write: (line: object) => void = () => undefined
  const { page, click, shows, fleet } = await openRollout(20, {
    transportOf: ({ transport }) => ({
      ...transport,
      async stream(path, options) {
        if (!path.endsWith('/skyhookd-9/log')) return await transport.stream(path, options)
        const stream = new ReadableStream<Uint8Array>({
          start: (controller) => {
            // as the API server stamps lines
            write = (line) => controller.enqueue(Buffer.from(`2026-01-01T00:00:00.1Z ${JSON.stringify(line)}\n`))
          },
        })
        return Object.assign(stream, { destroy: () => undefined })
      },
    }),
  })
  await fleet.tell(nodeName(9), 'SkyhookStarted', 'Skyhook tuning started')
  await click(`#grid [data-node="${nodeName(9)}"]`)
  await shows('#panel-body', 'Gates')
  await shows('#panel-body', /Events(?:\d+s|[2-9]m) agoNode SkyhookStarted: Skyhook tuning started$/)
  const time = '2026-01-01T00:00:00Z'
  const line = { time, skyhook: 'tuning', package: 'tuned', mode: 'apply', step: 'apply.sh', stream: 'stdout' }
  write({ ...line, message: 'writing <b>/etc/tuned</b>' })
  write({ ...line, skyhook: 'kernel', message: 'of another Skyhook' })
  await shows('#output', /tuned apply: writing <b>\/etc\/tuned<\/b>\n$/, 2_000)
  write({ ...line, message: 'done' })
  await shows('#output', /done\n$/, 1_000)
  expect(await page.$eval('#output', ({ textContent }) => textContent)).not.toContain('another')
})

test('the page follows the fleet while it plans for many nodes', async () => {
  const { page, click, fleet, shows } = await openRollout(nodes)
  await click('#plan summary')
  await click('#plan-load')
  await shows('#plan-outcome', 'This is tuning')
  await page.$eval('#plan-text', (area) => {
    const text = area as HTMLTextAreaElement
    text.value = text.value.replace('1.2.0', '1.3.0')
  })
  await click('#plan-show')
  await shows('#plan-outcome', 'Planning')
  const outcome = async (): Promise<string | null> =>
    await page.$eval('#plan-outcome', ({ textContent }) => textContent)
  const delays: number[] = []
  for (let number = 405; number < 445 && (await outcome()) === 'Planning …'; number++) {
    const node = nodeName(number)
    const startMs = performance.now()
    await fleet.publish(node, 'complete')
    await expect.poll(() => squareLabel(page, node), { interval: 20, timeout: 60_000 }).toBe(`${node}: complete`)
    delays.push(performance.now() - startMs)
  }
  expect(delays.length).toBeGreaterThan(10)
  expect(Math.max(...delays)).toBeLessThan(2_000)
})

test('words of nodes never become markup', async () => {
  const { page, fleet, shows } = await openRollout(20)
  const message = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
  await fleet.publish(nodeName(12), 'erroring', { reason: 'StepFailed', message })
  await shows('#reasons', message, 5_000)
  expect(await page.$$eval('#reasons img, #reasons script', (found) => found.length)).toBe(0)
})

test('the plan of an edit names what each group of nodes would do, and mistakes', async () => {
  const { page, click, shows } = await openRollout(20)
  await click('#plan summary')
  await click('#plan-load')
  await shows('#plan-outcome', 'This is tuning as it is now')
  const edit = async (from: string, to: string): Promise<void> => {
    await page.$eval(
      '#plan-text',
      (area, before, after) => {
        const text = area as HTMLTextAreaElement
        text.value = text.value.replace(before, after)
      },
      from,
      to,
    )
    await click('#plan-show')
  }
  await edit('version: 1.2.0', 'version: 1.3.0')
  await shows('#plan-outcome', 'Nodes would be disrupted.')
  await shows('#plan-result', /Skyhook tuning would be changed/)
  await shows('#plan-result', /tuned 1\.3\.0/)
  expect(await page.$eval('#plan-result', ({ textContent }) => textContent)).toContain('reboot')
  await edit('packages:', 'pakages:')
  await shows('#plan-outcome', 'It would be refused.')
  await shows('#plan-result', 'pakages')
  await edit('kind: Skyhook', 'kind: Pod')
  await shows('#plan-outcome', 'the text has no Skyhook and no DeploymentPolicy')
})
