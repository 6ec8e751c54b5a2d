/** Each query of the dashboard on recorded series: Prometheus answers what the recorded history says. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dashboard, edits } from '../../build/dashboard/dashboard.ts'
import { fleetMetrics } from '../../src/schemas/catalogue/fleet-metrics.ts'
import { differences } from './compare.ts'
import { type Moment, momentsOf } from './history.ts'
import { panelTruths } from './panel-truth.ts'
import { type QueryResult, type Server, servePrometheus } from './prometheus-server.ts'
import { formatOpenMetrics, type Recording } from './recording.ts'
import { sources } from './recordings.ts'
import { mistakes } from './wrong-queries.ts'

type Target = { readonly refId: string; readonly expr: string }
const queries = (dashboard().panels ?? []).flatMap((panel) =>
  ((panel as { readonly targets?: readonly Target[] }).targets ?? []).map(({ refId, expr }) => ({
    query: `${panel.title} ${refId}`,
    expr,
  })),
)
const ofChosen = 'skyhook_name=~"$skyhook"'
/** What Grafana puts in place of the variable if someone chose all Skyhooks. */
const all = '.+'

/** A server of its own: stopped and removed by `remove`. */
async function serve(recording: Recording) {
  const folder = mkdtempSync(join(tmpdir(), 'skyhookd-dashboard-'))
  const server: Server = await servePrometheus(folder, formatOpenMetrics(recording), recording.intervalMs)
  const { scrapesAtMs, intervalMs } = recording
  const [startMs = 0] = scrapesAtMs
  const range = { startMs, endMs: scrapesAtMs.at(-1) ?? startMs, stepMs: intervalMs }
  return {
    ask: (expr: string, chosen = all): Promise<readonly QueryResult[]> =>
      server.queryRange(expr.replaceAll('$skyhook', chosen), range),
    async remove() {
      await server.stop()
      rmSync(folder, { recursive: true })
    },
  }
}

/** All differences from the history, in words, with the minute of the recording. */
function differencesOf(
  query: string,
  results: readonly QueryResult[],
  { scrapesAtMs }: Recording,
  moments: readonly Moment[],
): readonly string[] {
  const truth = panelTruths[query]
  if (truth === undefined) throw new Error(`test/monitoring/panel-truth.ts does not say what ${query} has to show`)
  return scrapesAtMs.flatMap((atMs) =>
    differences(truth, results, moments, atMs).map(
      (text) => `minute ${((atMs - (scrapesAtMs[0] ?? 0)) / 60_000).toFixed(1)}: ${text}`,
    ),
  )
}

test('the history is compared with each query of the dashboard, and with no other', () => {
  const names = queries.map(({ query }) => query)
  expect(Object.keys(panelTruths)).toEqual(names)
  expect(Object.keys(mistakes)).toEqual(names)
})

describe.each(sources().filter(({ zero }) => zero !== undefined))('$title', ({ load, zero = [] }) => {
  let recording: Recording
  let moments: readonly Moment[]
  let prometheus: Awaited<ReturnType<typeof serve>>
  beforeAll(async () => {
    recording = await load()
    moments = momentsOf(recording.history)
    prometheus = await serve(recording)
  }, 600_000)
  afterAll(() => prometheus.remove())

  test.each(queries)('$query of the dashboard shows what the history says', async ({ query, expr }) => {
    const results = await prometheus.ask(expr)
    expect(differencesOf(query, results, recording, moments)).toEqual([])
    const shown = results.flatMap(({ values }) => [...values.values()])
    const positive = shown.filter((value) => value > 0).length
    if (zero.includes(query)) expect(positive).toBe(0)
    else expect(positive).toBeGreaterThanOrEqual(3)
  })

  test.each(zero.length === 0 ? queries : [])(
    'a mistake in $query of the dashboard is found',
    async ({ query, expr }) => {
      const [right = '', wrong = ''] = mistakes[query] ?? []
      expect(expr).toContain(right)
      const results = await prometheus.ask(expr.replace(right, wrong))
      expect(differencesOf(query, results, recording, moments)).not.toEqual([])
    },
  )

  test('values of another time than asked for are found', async () => {
    const results = await prometheus.ask(
      'sum by (status) (max by (skyhook_name, status) (skyhook_node_status_count offset 2m))',
    )
    expect(differencesOf('Nodes by status A', results, recording, moments)).not.toEqual([])
  })

  describe.each(queries.filter(({ expr }) => expr.includes(ofChosen)))('with chosen Skyhooks', ({ query, expr }) => {
    const isChosen = /^(looping|stopped)$/
    const chosen = 'looping|stopped'
    const withChosen = (moment: Moment): Moment => ({
      ...moment,
      skyhooks: new Map([...moment.skyhooks].filter(([name]) => isChosen.test(name))),
    })

    test(`${query} of the dashboard shows these alone`, async () => {
      const results = await prometheus.ask(expr, chosen)
      expect(differencesOf(query, results, recording, moments.map(withChosen))).toEqual([])
    })

    test(`${query} of the dashboard is found if it shows all of them`, async () => {
      const results = await prometheus.ask(expr)
      const found = differencesOf(query, results, recording, moments.map(withChosen))
      const endMs = recording.scrapesAtMs.at(-1) ?? 0
      const truthOf = (moment: Moment) => [...(panelTruths[query]?.valuesAt(moment, endMs) ?? [])]
      // a share that is 0 of some may be 0 of all
      const isSame = moments.every((moment) => isDeepStrictEqual(truthOf(moment), truthOf(withChosen(moment))))
      if (isSame)
        expect({ query, zero, found }).toEqual({
          query: 'Nodes complete A',
          zero: expect.arrayContaining([query]) as unknown,
          found: [],
        })
      else expect(found).not.toEqual([])
    })
  })
})

/** As if the census moved when the spec of a Skyhook was edited: for a minute, no agent has the series. */
function withoutCensusAt(recording: Recording, skyhook: string, editedAtMs: number): Recording {
  const isServed = (atMs: number): boolean => Math.abs(atMs - editedAtMs) > 2 * recording.intervalMs
  const series = recording.series.map((one) => {
    if (one.name !== 'skyhookd_fleet_generation' || one.labels['skyhook_name'] !== skyhook) return one
    const values = one.values.map((value, index) => (isServed(recording.scrapesAtMs[index] ?? 0) ? value : undefined))
    return { ...one, values }
  })
  return { ...recording, series }
}

/** Times at which the API server raised the generation of a Skyhook, by its name. */
function editsOf({ history }: Recording): readonly { readonly skyhook: string; readonly atMs: number }[] {
  const generations = new Map<string, number>()
  return history.flatMap(({ kind, object: { metadata }, atMs }) => {
    if (kind !== 'skyhooks') return []
    const { name, uid, generation = 0 } = metadata
    const before = generations.get(uid)
    generations.set(uid, generation)
    return before !== undefined && generation > before ? [{ skyhook: name, atMs }] : []
  })
}

describe('annotations', () => {
  const edited = 'looping'
  let recording: Recording
  let prometheus: Awaited<ReturnType<typeof serve>>
  beforeAll(async () => {
    const [simulated] = sources()
    if (simulated === undefined) throw new Error('there is no recording')
    recording = await simulated.load()
    const edit = editsOf(recording).find(({ skyhook }) => skyhook === edited)
    prometheus = await serve(withTwoCensuses(withoutCensusAt(recording, edited, edit?.atMs ?? 0)))
  }, 600_000)
  afterAll(() => prometheus.remove())

  /** As Grafana asks: a mark for each value above zero. */
  async function marks(expr: string, chosen?: string) {
    const results = await prometheus.ask(expr.replaceAll('$__interval', `${recording.intervalMs}ms`), chosen)
    return results.flatMap(({ labels, values }) =>
      [...values].filter(([, value]) => value > 0).map(([atMs]) => ({ skyhook: labels['skyhook_name'] ?? '', atMs })),
    )
  }
  const late = ({ skyhook }: { readonly skyhook: string }): number =>
    (skyhook === edited ? 4 : 2) * recording.intervalMs

  test('each edit of a Skyhook is marked once, also if the census moves meanwhile', async () => {
    const made = editsOf(recording)
    const found = await marks(edits.expr)
    expect(found.map(({ skyhook }) => skyhook).toSorted()).toEqual(made.map(({ skyhook }) => skyhook).toSorted())
    for (const { skyhook, atMs } of made) {
      const [mark] = found.filter((one) => one.skyhook === skyhook)
      expect(mark?.atMs).toBeGreaterThanOrEqual(atMs)
      expect(mark?.atMs).toBeLessThanOrEqual(atMs + late({ skyhook }))
    }
  })

  test('only edits of the chosen Skyhooks are marked', async () => {
    expect((await marks(edits.expr, edited)).map(({ skyhook }) => skyhook)).toEqual([edited])
  })

  test.each([
    ['compares with the present', / offset \$__interval/, ''],
    ['knows nothing of the time before a move', /last_over_time\((.*)\[5m\](.*)\)\)/, '$1$2)'],
    ['counts two censuses', /max by \(skyhook_name\)/g, ''],
  ])('a query that %s does not mark each edit once', async (_, right, wrong) => {
    expect(edits.expr).toMatch(right)
    const found = await marks(edits.expr.replace(right, wrong))
    expect(found.length).not.toBe(editsOf(recording).length)
  })
})

/** As if two agents served the series of the fleet all the time, as they may for one scrape when the census moves. */
function withTwoCensuses(recording: Recording): Recording {
  const again = recording.series
    .filter(({ name }) => Object.hasOwn(fleetMetrics, name))
    .map((one) => ({ ...one, labels: { ...one.labels, node: 'another', instance: 'another:9475' } }))
  return { ...recording, series: [...recording.series, ...again] }
}

describe('while two agents serve the series of the fleet', () => {
  let recording: Recording
  let moments: readonly Moment[]
  let prometheus: Awaited<ReturnType<typeof serve>>
  beforeAll(async () => {
    const [simulated] = sources()
    if (simulated === undefined) throw new Error('there is no recording')
    recording = await simulated.load()
    moments = momentsOf(recording.history)
    prometheus = await serve(withTwoCensuses(recording))
  }, 600_000)
  afterAll(() => prometheus.remove())

  test.each(queries)('$query of the dashboard counts nothing twice', async ({ query, expr }) => {
    expect(differencesOf(query, await prometheus.ask(expr), recording, moments)).toEqual([])
  })

  test('a query that counts both is found', async () => {
    const results = await prometheus.ask('sum by (status) (skyhook_node_status_count)')
    expect(differencesOf('Nodes by status A', results, recording, moments)).not.toEqual([])
  })
})
