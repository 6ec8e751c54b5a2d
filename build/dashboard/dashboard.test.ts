import type { Dashboard, GridPos, Panel } from '@grafana/schema'
import { expect, test } from 'vitest'
import { dashboard } from './dashboard.ts'
import type { TimeSeriesOptions } from './panels.ts'

const panels = dashboard().panels ?? []

test('the panels have ids and titles of their own', () => {
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length)
  expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length)
})

test('no panel covers another one', () => {
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } = missing }) =>
    Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
  )
  expect(new Set(cells).size).toBe(cells.length)
  expect(Math.max(...cells.map((cell) => Number(cell.split(',')[0])))).toBeLessThan(24)
})

test("Grafana's types are more than any: the compiler refuses what Grafana would not understand", () => {
  const wrongs: unknown[] = [
    // @ts-expect-error: the identifier of a panel is a number
    { type: 'timeseries', id: '1' } satisfies Panel,
    // @ts-expect-error: a dashboard needs the version of its schema
    { title: 'skyhookd' } satisfies Dashboard,
    // @ts-expect-error: a misspelt option
    { legend: { showLegnd: true }, tooltip: {} } satisfies TimeSeriesOptions,
  ]
  expect(wrongs).toHaveLength(3)
})

const missing: GridPos = { x: 0, y: 0, w: 0, h: 0 }
