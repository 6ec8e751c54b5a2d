/** Alerts and dashboard of the chart ask only for series, labels and values that the catalogue has. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { fleetMetrics } from '../src/schemas/catalogue/fleet-metrics.ts'
import { metrics } from '../src/schemas/catalogue/metrics.ts'
import { dashboard, edits } from './dashboard/dashboard.ts'

type Row = { readonly labels: Readonly<Record<string, readonly string[] | string>> }
const rows: Readonly<Record<string, Row>> = { ...metrics, ...fleetMetrics }
/** Prometheus adds them when it scrapes. */
const placeLabels: Readonly<Record<string, readonly string[] | string>> = { instance: '', node: '' }

const { groups } = parse(readFileSync(join(import.meta.dirname, '../chart/monitoring/alerts.yaml'), 'utf8')) as {
  readonly groups: readonly { readonly rules: readonly { readonly alert: string; readonly expr: string }[] }[]
}
const queries = [
  [edits.name, edits.expr] as const,
  ...groups.flatMap(({ rules }) => rules.map(({ alert, expr }) => [alert, expr] as const)),
  ...(dashboard().panels ?? []).flatMap((panel) =>
    panel.type === 'row' || !('targets' in panel)
      ? []
      : (panel.targets ?? []).map(({ expr }) => [panel.title ?? '', String(expr)] as const),
  ),
]

/** What a query asks for and the catalogue does not have. */
function unknownNames(expr: string): string[] {
  const selectors = [...expr.matchAll(/\b(skyhookd?_\w+)(?:\{([^}]*)\})?/g)].filter(
    ([, name = '']) => name !== 'skyhook_name',
  )
  const known = selectors.flatMap(([, name = '']) => Object.entries(rows[name]?.labels ?? {}))
  const labels = new Map([...Object.entries(placeLabels), ...known])
  const grouped = [...expr.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, names = '']) => names.split(/, */))
  const matched = selectors.flatMap(([, , matchers = '']) =>
    [...matchers.matchAll(/(\w+)=~?"([^"]*)"/g)].map(([, label = '', text = '']) => ({ label, text })),
  )
  return [
    ...selectors.map(([, name = '']) => name).filter((name) => rows[name] === undefined),
    ...[...grouped, ...matched.map(({ label }) => label)].filter((label) => !labels.has(label)),
    ...matched.flatMap(({ label, text }) => {
      const values = labels.get(label)
      return typeof values === 'string' || values === undefined
        ? []
        : text.split('|').filter((value) => !values.includes(value))
    }),
  ]
}

test.each(queries)('%s asks for what the catalogue has: %s', (_, expr) => {
  expect(expr).toMatch(/\bskyhookd?_/)
  expect(unknownNames(expr)).toEqual([])
})

test('a misspelt series, label and value are found', () => {
  expect(unknownNames('sum by (phse) (skyhook_statuses{skyhook_name="a"}) + skyhook_status{status="eroring"}')).toEqual(
    ['skyhook_statuses', 'phse', 'eroring'],
  )
})
