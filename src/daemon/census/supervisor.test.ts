import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { censusSettings } from '../../../test/kit/objects/census-objects.ts'
import { createVirtualClock, type VirtualClock } from '../../../test/kit/virtual-clock.ts'
import { readCensusLine, readCensusSettings, type CensusLine } from '../../census/model/messages.ts'
import type { FleetSeries } from '../../schemas/catalogue/fleet-metrics.ts'
import { createCensusSupervisor, type CensusSupervisor } from './supervisor.ts'

/** A census that the test controls. */
type Played = {
  says(line: object): void
  exit(how: string): void
  /** The calls of the agent. */
  readonly met: string[]
}

let clock: VirtualClock
let term: AbortController
let lines: CensusLine[]
let exits: string[]
let unfit: string[]
let started: Played[]
let supervisor: CensusSupervisor
let uncountedMs: number

beforeEach(() => {
  clock = createVirtualClock()
  term = new AbortController()
  lines = []
  exits = []
  unfit = []
  started = []
  uncountedMs = Infinity
  supervisor = createCensusSupervisor({
    settings: () => censusSettings,
    start() {
      const output = new PassThrough()
      const exited = Promise.withResolvers<string>()
      const met: string[] = []
      started.push({
        met,
        says: (line) => void output.write(`${JSON.stringify(line)}\n`),
        exit: (how) => void output.end(() => exited.resolve(how)),
      })
      return {
        pid: started.length,
        output,
        exited: exited.promise,
        send: (line) => void met.push(line),
        closeInput: () => void met.push('end of input'),
        kill: () => void met.push('kill'),
      }
    },
    clock,
    onLine: (line) => void lines.push(line),
    onExit: (how) => void exits.push(how),
    uncountedMs: () => uncountedMs,
    onUnfit: (ms, why) => void unfit.push(`${ms / 60_000} min: ${why}`),
  })
})
/** Lets the census that was started last count for this time. */
async function counts(forMs: number): Promise<void> {
  for (let passedMs = 0; passedMs < forMs; passedMs += heartbeatMs) {
    await clock.advance(heartbeatMs)
    started.at(-1)?.says({ kind: 'heartbeat', uncountedMs: 0 })
  }
  await clock.advance(0)
}
const heartbeatMs = 10_000

afterEach(() => term.abort(new Error('test is over')))

test('a census gets its settings, and is killed two seconds after its term unless it ends', async () => {
  const kept = supervisor.supervise(term.signal)
  started[0]?.says({ kind: 'heartbeat', agents: 7 })
  await clock.advance(0)
  expect([lines, supervisor.pid()]).toMatchObject([[{ kind: 'heartbeat', agents: 7 }], 1])
  term.abort(new Error('the term is over'))
  await clock.advance(1_999)
  expect(started[0]?.met).toEqual([JSON.stringify(censusSettings), 'end of input'])
  await clock.advance(1)
  expect(started[0]?.met.at(-1)).toBe('kill')
  started[0]?.exit('it was ended by SIGKILL')
  await kept
  expect([supervisor.pid(), exits, clock.pendingTimers]).toEqual([undefined, [], 0])
})

test('a census that dies is started again, and its second death within ten minutes is a crash loop', async () => {
  const kept = supervisor.supervise(term.signal)
  started[0]?.exit('it ended with code 3')
  await clock.advance(999)
  expect([exits, unfit, started.length]).toEqual([['it ended with code 3'], [], 1])
  await counts(9 * 60_000)
  expect(started).toHaveLength(2)
  started[1]?.exit('it ended with code 3')
  await clock.advance(0)
  expect(unfit).toEqual([
    '30 min: the census exited twice within ten minutes, the last time because it ended with code 3',
  ])
  term.abort(new Error('stands back'))
  await kept
})

test('deaths far apart are not a crash loop, and those of an earlier term count', async () => {
  const once = async (): Promise<void> => {
    const one = new AbortController()
    const kept = supervisor.supervise(one.signal)
    started.at(-1)?.exit('it was ended by SIGKILL')
    await clock.advance(0)
    one.abort(new Error('the term is over'))
    await kept
  }
  await once()
  await clock.advance(10 * 60_000)
  await once()
  expect(unfit).toEqual([])
  await clock.advance(9 * 60_000)
  await once()
  expect(unfit).toHaveLength(1)
  expect(exits).toEqual(Array.from({ length: 3 }, () => 'it was ended by SIGKILL'))
})

test('a census that falls silent costs the term a minute after its last count, and is killed', async () => {
  const kept = supervisor.supervise(term.signal)
  await counts(120_000)
  await clock.advance(59_999)
  expect(unfit).toEqual([])
  await clock.advance(1)
  expect(unfit).toEqual(['30 min: the census has not counted for 60 s'])
  term.abort(new Error(unfit[0]))
  await clock.advance(2_000)
  expect(started[0]?.met.at(-1)).toBe('kill')
  started[0]?.exit('it was ended by SIGKILL')
  await kept
  expect([clock.pendingTimers, exits, supervisor.countedAtMs()]).toEqual([0, [], undefined])
})

/** A whole term in which the census runs without counting; returns why it ended. */
async function termWithout(seconds: number): Promise<string[]> {
  const one = new AbortController()
  const kept = supervisor.supervise(one.signal)
  for (let passed = 0; passed < seconds; passed += 10) {
    expect(unfit).toEqual([])
    await clock.advance(10_000)
    started.at(-1)?.says({ kind: 'heartbeat' })
  }
  one.abort(new Error('resigned'))
  started.at(-1)?.exit('it ended with code 0')
  await kept
  return unfit.splice(0)
}
const uncountedFor = (seconds: number): string[] => [`30 min: the census has not counted for ${seconds} s`]

test('a census that lives and cannot count costs the term, with twice the time in each next one until it counts', async () => {
  for (const seconds of [60, 120, 240, 480, 960, 960]) expect(await termWithout(seconds)).toEqual(uncountedFor(seconds))
  const counted = new AbortController()
  const kept = supervisor.supervise(counted.signal)
  await counts(10_000)
  expect(supervisor.countedAtMs()).toBe(clock.monotonicMs())
  counted.abort(new Error('over'))
  started.at(-1)?.exit('it ended with code 0')
  await kept
  expect(await termWithout(60)).toEqual(uncountedFor(60))
})

test.each([
  [0, 60],
  [200, 60],
  [400, 100],
  [9_999, 480],
])('a census has a quarter of the time for which nobody has counted, of %d s %d', async (uncounted, seconds) => {
  for (const first of [60, 120, 240]) await termWithout(first)
  uncountedMs = uncounted * 1_000
  expect(await termWithout(seconds)).toEqual(uncountedFor(seconds))
})

test('a census that has not counted for a while costs the term by its own account', async () => {
  const kept = supervisor.supervise(term.signal)
  await counts(60_000)
  const before = clock.monotonicMs()
  await clock.advance(50_000)
  started[0]?.says({ kind: 'heartbeat', uncountedMs: 45_000 })
  await clock.advance(0)
  expect([supervisor.countedAtMs(), unfit]).toEqual([before + 5_000, []])
  await clock.advance(15_000)
  expect(unfit).toEqual(['30 min: the census has not counted for 60 s'])
  term.abort(new Error('resigned'))
  started[0]?.exit('it ended with code 0')
  await kept
})

test('what a census counted is there until it exits, and one that is still ending adds nothing to the next', async () => {
  const says = (at: number, subject: string, series?: FleetSeries): void =>
    started[at]?.says({ kind: 'series', subject, series })
  const of = (skyhook: string): FleetSeries => ({ skyhook_node_target_count: [[[skyhook], 1]] })

  const first = new AbortController()
  const firstKept = supervisor.supervise(first.signal)
  says(0, 'old', of('old'))
  await clock.advance(0)
  expect(supervisor.series()).toEqual([of('old')])
  first.abort(new Error('the term is over'))
  const kept = supervisor.supervise(term.signal)
  says(1, 'gone', of('gone'))
  says(1, 'new', of('new'))
  says(1, 'gone')
  says(0, 'late', of('late'))
  await clock.advance(0)
  expect(supervisor.series()).toEqual([of('new')])
  started[0]?.exit('it ended with code 0')
  await firstKept
  expect(supervisor.series()).toEqual([of('new')])
  term.abort(new Error('the term is over'))
  started[1]?.exit('it ended with code 0')
  await kept
  expect(supervisor.series()).toEqual([])
  expect(lines).toEqual([])
})

test('a term that is over before it starts does nothing', async () => {
  term.abort(new Error('over'))
  await supervisor.supervise(term.signal)
  expect(started).toEqual([])
})

describe('the lines between them', () => {
  test.each([
    ['{', /not valid JSON/],
    ['null', /not valid JSON/],
    ['{"v":2}', /another version/],
    ['{"v":1,"version":"1","nodeName":"n"}', /lack podName/],
  ])('settings %s are refused', (line, message) => {
    expect(() => readCensusSettings(line)).toThrow(message)
  })

  test('settings are read as they were written', () => {
    expect(readCensusSettings(JSON.stringify(censusSettings))).toEqual(censusSettings)
  })

  test.each(['', '{', 'null', '7', '{"kind":"other"}', '(node:1) Warning: x'])(
    '%j is not a line of the census',
    (line) => {
      expect(readCensusLine(line)).toBeUndefined()
    },
  )
})
