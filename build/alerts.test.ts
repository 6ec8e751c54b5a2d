/** The alerts of the chart beside their runbook, docs/usage/alerts.md. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { parse } from 'yaml'

const root = join(import.meta.dirname, '..')
const runbook = 'docs/usage/alerts.md'

type Rule = {
  readonly alert: string
  readonly expr: string
  readonly labels: Readonly<Record<string, string>>
  readonly annotations: Readonly<Record<string, string>>
}

const { groups } = parse(readFileSync(join(root, 'chart', 'monitoring', 'alerts.yaml'), 'utf8')) as {
  readonly groups: readonly { readonly rules: readonly Rule[] }[]
}
const rules = groups.flatMap((group) => group.rules)
const headings = [...readFileSync(join(root, runbook), 'utf8').matchAll(/^## (.+)$/gm)].map(([, title = '']) => title)

test('the runbook has an entry for each alert, and no other one', () => {
  expect(headings.toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted())
})

test.each(rules.map((rule) => [rule.alert, rule] as const))('%s names its entry in the runbook', (alert, rule) => {
  expect(rule.annotations['runbook']).toBe(`section ${alert} of ${runbook}`)
})

test.each(rules.map((rule) => [rule.alert, rule] as const))(
  '%s says what has happened, and how bad it is',
  (_, rule) => {
    expect(Object.keys(rule.annotations).toSorted()).toEqual(['description', 'runbook', 'summary'])
    expect(rule.labels).toEqual({ severity: 'warning' })
  },
)
