/** The agent's side with small programs in the census's place. */
import { PassThrough } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { readCensusLine, readCensusSettings, type CensusLine, type CensusSettings } from '../../census/messages.ts'
import type { FleetSeries } from '../../schemas/catalogue/fleet-metrics.ts'
import { startCensusProcess } from '../platform/census-process.ts'
import { systemClock } from '../platform/system-clock.ts'
import { createCensusSupervisor, type CensusSupervisor } from './supervisor.ts'

const settings: CensusSettings = {
  v: 1,
  version: '1',
  nodeName: 'n1',
  podName: 'p1',
  namespace: 'skyhook',
  agentPodSelector: 'a=b',
  defaultBudget: {},
}
const heartbeat = (nodes: number): string => JSON.stringify({ kind: 'heartbeat', nodes, skyhooks: 0, rssBytes: 1 })
/** Says how many nodes after it has read its settings, then runs until its stdin ends. */
const wellBehaved =
  `process.stdin.once('data', (d) => console.log(${JSON.stringify(heartbeat(7))} + '\\nno line ` +
  `of ours\\n' + JSON.stringify({kind:'log',level:'info',message:JSON.parse(d).nodeName,fields:{}})))` +
  `.on('end', () => process.exit(0))`

let term: AbortController
let lines: CensusLine[]
let exits: string[]
let crashLoops: string[]
let nowMs: number

beforeEach(() => {
  term = new AbortController()
  lines = []
  exits = []
  crashLoops = []
  nowMs = 0
})
afterEach(() => term.abort(new Error('test is over')))

function supervisorOf(program: string): CensusSupervisor {
  return createCensusSupervisor({
    settings,
    start: () => startCensusProcess([process.execPath, '-e', program]),
    clock: { ...systemClock, monotonicMs: () => nowMs },
    onLine: (line) => void lines.push(line),
    onExit: (how) => void exits.push(how),
    onCrashLoop: (ms, why) => void crashLoops.push(`${ms / 60_000} min: ${why}`),
  })
}
const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('a census gets its settings, is heard line by line, and ends with its term', async () => {
  const supervisor = supervisorOf(wellBehaved)
  const kept = supervisor.supervise(term.signal)
  await vi.waitFor(() => expect(lines).toHaveLength(2), { timeout: 5_000 })
  expect(lines).toMatchObject([
    { kind: 'heartbeat', nodes: 7 },
    { kind: 'log', message: 'n1' },
  ])
  const pid = supervisor.pid() as number
  term.abort(new Error('the term is over'))
  await kept
  expect(isRunning(pid)).toBe(false)
  expect(supervisor.pid()).toBeUndefined()
  expect(exits).toEqual([])
})

test('a census that does not end is killed', async () => {
  const supervisor = supervisorOf(`console.log(${JSON.stringify(heartbeat(1))}); setInterval(() => {}, 1000)`)
  const kept = supervisor.supervise(term.signal)
  await vi.waitFor(() => expect(lines).toHaveLength(1), { timeout: 5_000 })
  const pid = supervisor.pid() as number
  term.abort(new Error('the term is over'))
  await kept
  expect(isRunning(pid)).toBe(false)
})

test('a census that dies is started again, and its second death within ten minutes is a crash loop', async () => {
  const kept = supervisorOf(`console.log(${JSON.stringify(heartbeat(1))}); process.exit(3)`).supervise(term.signal)
  await vi.waitFor(() => expect(exits).toHaveLength(1), { timeout: 5_000 })
  expect([exits, crashLoops]).toEqual([['it ended with code 3'], []])
  nowMs = 9 * 60_000
  await vi.waitFor(
    () =>
      expect(crashLoops).toEqual([
        '30 min: the census exited twice within ten minutes, the last time because it ended with code 3',
      ]),
    { timeout: 5_000 },
  )
  term.abort(new Error('stands back'))
  await kept
})

test('deaths far apart are no crash loop, and those of an earlier term count', async () => {
  const supervisor = supervisorOf('process.kill(process.pid, "SIGKILL")')
  const once = async (): Promise<void> => {
    const one = new AbortController()
    const before = exits.length
    const kept = supervisor.supervise(one.signal)
    await vi.waitFor(() => expect(exits.length).toBeGreaterThan(before), { timeout: 5_000 })
    one.abort(new Error('the term is over'))
    await kept
  }
  await once()
  nowMs += 10 * 60_000
  await once()
  expect(crashLoops).toEqual([])
  nowMs += 9 * 60_000
  await once()
  expect(crashLoops).toHaveLength(1)
  expect(exits).toEqual(Array.from({ length: 3 }, () => 'it was ended by SIGKILL'))
})

test('what a census counted is there until it exits, and one that is still ending adds nothing to the next', async () => {
  const started: { readonly output: PassThrough; readonly exit: () => void }[] = []
  const supervisor = createCensusSupervisor({
    settings,
    start() {
      const output = new PassThrough()
      const exited = Promise.withResolvers<string>()
      started.push({ output, exit: () => void output.end(() => exited.resolve('it ended with code 0')) })
      return {
        pid: started.length,
        output,
        exited: exited.promise,
        send: () => undefined,
        closeInput: () => undefined,
        kill: () => undefined,
      }
    },
    clock: systemClock,
    onLine: (line) => void lines.push(line),
    onExit: (how) => void exits.push(how),
    onCrashLoop: () => {},
  })
  const says = (at: number, subject: string, series?: FleetSeries): void =>
    void started[at]?.output.write(`${JSON.stringify({ kind: 'series', subject, series })}\n`)
  const of = (skyhook: string): FleetSeries => ({ skyhook_node_target_count: [[[skyhook], 1]] })
  const eventually = async (series: readonly FleetSeries[]): Promise<void> =>
    await vi.waitFor(() => expect(supervisor.series()).toEqual(series))

  const first = new AbortController()
  const firstKept = supervisor.supervise(first.signal)
  says(0, 'old', of('old'))
  await eventually([of('old')])
  first.abort(new Error('the term is over'))
  const kept = supervisor.supervise(term.signal)
  says(1, 'gone', of('gone'))
  says(1, 'new', of('new'))
  says(1, 'gone')
  says(0, 'late', of('late'))
  await eventually([of('new')])
  started[0]?.exit()
  await firstKept
  expect(supervisor.series()).toEqual([of('new')])
  term.abort(new Error('the term is over'))
  started[1]?.exit()
  await kept
  expect(supervisor.series()).toEqual([])
  expect(lines).toEqual([])
})

test('a program that cannot be started counts as a death', async () => {
  const supervisor = createCensusSupervisor({
    settings,
    start: () => startCensusProcess(['/no/such/program']),
    clock: systemClock,
    onLine: () => {},
    onExit: (how) => void exits.push(how),
    onCrashLoop: () => {},
  })
  const kept = supervisor.supervise(term.signal)
  await vi.waitFor(() => expect(exits[0]).toContain('ENOENT'), { timeout: 5_000 })
  term.abort(new Error('enough'))
  await kept
})

test('a term that is over before it begins starts nothing', async () => {
  term.abort(new Error('over'))
  await supervisorOf(wellBehaved).supervise(term.signal)
  await sleep(50)
  expect(lines).toEqual([])
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
    expect(readCensusSettings(JSON.stringify(settings))).toEqual(settings)
  })

  test.each(['', '{', 'null', '7', '{"kind":"other"}', '(node:1) Warning: x'])(
    '%j is no line of the census',
    (line) => {
      expect(readCensusLine(line)).toBeUndefined()
    },
  )
})
