import { beforeEach, expect, test } from 'vitest'
import { skyhookWith } from '../../test/kit/objects/census-objects.ts'
import { createVirtualClock, type VirtualClock } from '../../test/kit/virtual-clock.ts'
import type { KubeObject } from '../kube/objects.ts'
import type { FleetSeries } from '../schemas/catalogue/fleet-metrics.ts'
import type { Skyhook } from '../schemas/skyhook.ts'
import { type FleetReporter, startFleetReporter } from './census.ts'
import { clusterSubject, type SeriesLine } from './model/messages.ts'

let clock: VirtualClock
let skyhooks: Map<string, Skyhook & KubeObject>
let isTrusted: boolean
let lines: SeriesLine[]
let reporter: FleetReporter

const seriesOf = (nodes: number): FleetSeries => ({ skyhook_node_target_count: [[['demo'], nodes]] })

beforeEach(() => {
  clock = createVirtualClock(undefined, { settleTurns: 0 })
  skyhooks = new Map([['demo', skyhookWith() as Skyhook & KubeObject]])
  isTrusted = true
  lines = []
  const view = { nodes: new Map(), skyhooks, isTrusted: () => isTrusted }
  reporter = startFleetReporter(view, { clock, emit: (line) => void lines.push(line) })
})

test('a burst of counts is sent once, with the last of them', async () => {
  for (let nodes = 1; nodes <= 20; nodes++) {
    reporter.counted('demo', seriesOf(nodes))
    await clock.advance(20)
  }
  await clock.advance(1_000)
  expect(lines).toEqual([{ kind: 'series', subject: 'demo', series: seriesOf(20) }])
})

test('a count that changes nothing is not sent', async () => {
  for (let round = 0; round < 3; round++) {
    reporter.counted('demo', seriesOf(1))
    await clock.advance(1_000)
  }
  expect(lines).toHaveLength(1)
})

test('the series of a deleted Skyhook are withdrawn, also when its last count comes after its deletion', async () => {
  reporter.counted('demo', seriesOf(1))
  await clock.advance(1_000)
  skyhooks.delete('demo')
  reporter.skyhooksChanged()
  reporter.counted('demo', seriesOf(2))
  await clock.advance(1_000)
  expect(lines.slice(1)).toEqual([{ kind: 'series', subject: 'demo' }])
})

test('series that nobody can confirm for a minute are withdrawn, and sent again once they are counted again', async () => {
  reporter.counted('demo', seriesOf(1))
  reporter.refresh()
  await clock.advance(1_000)
  isTrusted = false
  for (let seconds = 0; seconds < 50; seconds += 10) {
    reporter.refresh()
    await clock.advance(10_000)
  }
  expect(lines.map(({ subject, series }) => [subject, series !== undefined])).toEqual([
    ['demo', true],
    [clusterSubject, true],
  ])
  await clock.advance(10_000)
  reporter.refresh()
  expect(lines.slice(2)).toEqual([
    { kind: 'series', subject: 'demo' },
    { kind: 'series', subject: clusterSubject },
  ])
  isTrusted = true
  reporter.counted('demo', seriesOf(1))
  await clock.advance(1_000)
  expect(lines.at(-1)).toEqual({ kind: 'series', subject: 'demo', series: seriesOf(1) })
})

test('a short break of a watch withdraws nothing', async () => {
  reporter.counted('demo', seriesOf(1))
  for (const trusted of [true, false, true, false, false]) {
    isTrusted = trusted
    reporter.refresh()
    await clock.advance(20_000)
  }
  expect(lines.filter(({ series }) => series === undefined)).toEqual([])
})
