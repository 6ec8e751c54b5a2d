/** Each alert of the chart on recorded series: it fires while the recorded history says so, and only then. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { type AlertTruth, alertTruths, type Span, troubleSpans } from './alert-truth.ts'
import { formatLabels, type Labels } from '../kit/objects/exposition.ts'
import { momentsOf } from './history.ts'
import { promtool } from './prometheus.ts'
import type { Recording } from './recording.ts'
import { sources } from './recordings.ts'
import { type AlertState, type Expectation, ruleTest } from './rule-test.ts'

const ruleFile = join(import.meta.dirname, '../../chart/monitoring/alerts.yaml')
type Rule = { readonly alert: string; readonly expr: string }
const { groups } = parse(readFileSync(ruleFile, 'utf8')) as {
  readonly groups: readonly { readonly rules: readonly Rule[] }[]
}
const rules = groups.flatMap((group) => group.rules)
/** Between a change of an object and the evaluation that sees it: census, scrape and evaluation. */
const slackIntervals = 3
/** Of each state that a recording is said to have; a trouble that is over soon is pending for two scrapes. */
const minExpectations = { inactive: 3, pending: 2, firing: 3 } as const
let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'skyhookd-alerts-'))
  copyFileSync(ruleFile, join(folder, 'alerts.yaml'))
})
afterAll(() => rmSync(folder, { recursive: true }))

/** What the history says about the alert at each scrape, where it leaves no doubt. */
function expectationsOf(alert: string, { scrapesAtMs, intervalMs, history }: Recording): readonly Expectation[] {
  const truth = alertTruths[alert]
  if (truth === undefined) throw new Error(`test/monitoring/alert-truth.ts does not say when ${alert} has to fire`)
  const slackMs = slackIntervals * intervalMs
  const spans = troubleSpans(truth, momentsOf(history), scrapesAtMs)
  const expectation = (atMs: number, among: readonly Span[], only?: Labels): readonly Expectation[] => {
    const around = among.filter(
      ({ fromMs, toMs }) => atMs >= fromMs - slackMs && atMs <= toMs + truth.lingerMs + slackMs,
    )
    const active: { labels: Labels; state: AlertState }[] = []
    for (const span of around) {
      const state = stateAt(span, truth, atMs, slackMs)
      if (state === undefined) return []
      active.push({ labels: span.labels, state })
    }
    return [{ alert, atMs, active, ...(only && { only }) }]
  }
  // those in doubt about one Skyhook need not be about another one
  const bySubject = Map.groupBy(spans, ({ labels }) => formatLabels(labels))
  return scrapesAtMs.flatMap((atMs) => [
    ...expectation(atMs, spans),
    ...[...bySubject.values()].flatMap((own) => expectation(atMs, own, own[0]?.labels)),
  ])
}

/** Undefined: within the slack around a change. */
function stateAt(
  { fromMs, toMs }: Span,
  { delayMs }: AlertTruth,
  atMs: number,
  slackMs: number,
): AlertState | undefined {
  if (atMs < fromMs + slackMs || atMs > toMs) return undefined
  if (atMs >= fromMs + delayMs + slackMs) return 'firing'
  return atMs < fromMs + delayMs - slackMs ? 'pending' : undefined
}

const hasState =
  (state: AlertState | 'inactive') =>
  ({ active, only }: Expectation): boolean =>
    state === 'inactive' ? active.length === 0 && only === undefined : active.some((one) => one.state === state)

test('promtool accepts the rules and their templates', async () => {
  await expect(promtool(folder, 'check', 'rules', 'alerts.yaml')).resolves.toContain(`${rules.length} rules found`)
})

test('each alert fires in a recording', () => {
  expect(new Set(sources().flatMap(({ firing }) => firing))).toEqual(new Set(rules.map(({ alert }) => alert)))
})

describe.each(sources())('$title', ({ load, firing, pending }) => {
  let recording: Recording
  beforeAll(async () => {
    recording = await load()
  }, 600_000)

  const testRule = (name: string, { expr }: Rule, expectations: readonly Expectation[]): Promise<string> => {
    const names = new Set(expr.match(/\bskyhookd?_\w+/g))
    writeFileSync(join(folder, name), ruleTest(recording, { ruleFile: 'alerts.yaml', names, expectations }))
    return promtool(folder, 'test', 'rules', name)
  }

  test.each(rules)('$alert is active while its trouble lasts, and only then', async (rule) => {
    const expectations = expectationsOf(rule.alert, recording)
    const states = [
      'inactive' as const,
      ...(firing.includes(rule.alert) ? ['firing' as const] : []),
      ...(pending.includes(rule.alert) ? ['pending' as const] : []),
    ]
    const counts = states.map(
      (state) => [state, new Set(expectations.filter(hasState(state)).map(({ atMs }) => atMs)).size] as const,
    )
    for (const [state, count] of counts) expect(count, state).toBeGreaterThanOrEqual(minExpectations[state])
    if (!firing.includes(rule.alert)) expect(expectations.some(hasState('firing'))).toBe(false)
    await expect(testRule(`${rule.alert}.yaml`, rule, expectations)).resolves.toContain('SUCCESS')
  })

  test.each(rules.filter(({ alert }) => firing.includes(alert) || pending.includes(alert)))(
    '$alert is found if it is not active when expected',
    async (rule) => {
      const expectations = expectationsOf(rule.alert, recording).map((one) => ({ ...one, active: [] }))
      await expect(testRule('wrong.yaml', rule, expectations)).rejects.toThrow('FAILED')
    },
  )
})
