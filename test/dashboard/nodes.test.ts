/** Nodes of several zones and Skyhooks in a real browser, and their tables. */
import { expect, test } from 'vitest'
import { violationsOf } from './browser.ts'
import { nodeName } from './fleet.ts'
import { focused, openRollout, squareLabel } from './page-of.ts'

/** Every 40th node has no zone. */
const zoned = (number: number): Readonly<Record<string, string>> =>
  number % 40 === 0 ? {} : { 'topology.kubernetes.io/zone': `eu-west-1${'abc'[number % 3]}` }

test('nodes of several zones are shown by zone, and the filter and the table know zones', async () => {
  const { page, click, shows } = await openRollout(200, { labelsOf: zoned })
  expect(await squareLabel(page, nodeName(1))).toBe(`${nodeName(1)} in zone eu-west-1b: complete`)
  await click('#show-zones')
  const zones = await page.$$eval('#grid h3', (found) => found.map(({ textContent }) => textContent))
  expect(zones).toEqual(['Zone eu-west-1a', 'Zone eu-west-1b', 'Zone eu-west-1c', 'No zone'])
  await shows('#grid .zone:nth-child(2) .legend', /^26 complete1 in progress/)
  await page.focus(`#grid [data-node="${nodeName(199)}"]`) // the last of its zone
  await page.keyboard.press('ArrowRight')
  expect(await focused(page)).toBe(nodeName(2))
  await page.keyboard.press('ArrowUp')
  expect(await page.evaluate(() => document.activeElement?.closest('.zone')?.textContent)).toContain('eu-west-1b')
  for (const value of ['light', 'dark']) {
    await page.emulateMediaFeatures([
      { name: 'prefers-color-scheme', value },
      { name: 'prefers-reduced-motion', value: 'reduce' },
    ])
    expect(await violationsOf(page), value).toEqual([])
  }
  await page.type('#filter', 'eu-west-1a')
  await shows('#shown', '65 of 200 nodes')
  expect(await page.$$eval('#grid h3', (found) => found.length)).toBe(1)
  await click('#show-table')
  await shows('#table-head', /zone/)
  expect(
    await page.$$eval('#table-body td:last-child', (found) => [
      ...new Set(found.map(({ textContent }) => textContent)),
    ]),
  ).toEqual(['eu-west-1a'])
})

test('nodes without zones, or of one zone, are not divided', async () => {
  const none = await openRollout(20)
  expect(await none.page.$$('#show-zones')).toEqual([])
  await none.click('#show-table')
  await none.shows('#table-head', /^node.*slot$/)
  const one = await openRollout(20, { labelsOf: () => ({ 'topology.kubernetes.io/zone': 'only' }) })
  expect(await one.page.$$('#show-zones')).toEqual([])
})

test('the panel of a node has its other Skyhooks, and opens the same node of each', async () => {
  const { page, click, shows, fleet } = await openRollout(20, {
    labelsOf: (number) => (number === 9 ? { kernel: 'rt' } : {}),
  })
  const failing = { reason: 'StepFailed', message: 'package tuned: step apply.sh exited with 1' }
  await fleet.publish(nodeName(9), 'erroring', failing, 'kernel')
  await click(`#grid [data-node="${nodeName(9)}"]`)
  await shows('#panel-others', /kernelerroringStepFailed1 of 1 complete/)
  await click('#panel-others button')
  await shows('#rollout-title', 'Rollout of kernel')
  await shows('#panel-title', `Node ${nodeName(9)}`)
  await shows('#panel-body', `Note: node ${nodeName(9)} reports StepFailed`)
  await shows('#panel-others', /tuning/)
  expect(await focused(page)).toBe('panel-title')
  await page.keyboard.press('Escape')
  expect(await focused(page)).toBe(nodeName(9))
})

test.each([390, 1_440])('tables are whole on a screen of %d pixels, and no word in them is broken', async (width) => {
  const { page, click, shows } = await openRollout(20, { labelsOf: (number) => ({ ...zoned(number), kernel: 'rt' }) })
  await page.setViewport({ width, height: 1_000 })
  await click(`#grid [data-node="${nodeName(9)}"]`)
  await shows('#panel-body', 'Gates')
  await click('#show-table')
  const found = await page.evaluate(() => {
    const tables = [...document.querySelectorAll('table')].filter(({ offsetParent }) => offsetParent !== null)
    const cells = tables.flatMap((table) => [...table.querySelectorAll<HTMLElement>('th, td')])
    const rightOf = (element: Element | null): number => element?.getBoundingClientRect().right ?? 0
    const isBroken = (text: Node, start: number, length: number): boolean => {
      const range = document.createRange()
      range.setStart(text, start)
      range.setEnd(text, start + length)
      return new Set([...range.getClientRects()].map(({ top }) => Math.round(top))).size > 1
    }
    const brokenIn = (text: Node): string[] =>
      [...(text.textContent ?? '').matchAll(/\w+/g)].flatMap((match) =>
        isBroken(text, match.index, match[0].length) ? [match[0]] : [],
      )
    const textsOf = (element: Node): Node[] =>
      [...element.childNodes].flatMap((child) => (child.nodeType === 3 ? [child] : textsOf(child)))
    return {
      tables: tables.length,
      cut: cells.filter((cell) => rightOf(cell) > rightOf(cell.closest('.scroll, aside')) + 1).map((c) => c.innerText),
      broken: cells.flatMap(textsOf).flatMap(brokenIn),
    }
  })
  // of nodes, of slots, of packages and of other Skyhooks
  expect(found).toEqual({ tables: 4, cut: [], broken: [] })
})
