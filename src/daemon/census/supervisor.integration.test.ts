/** The agent's side with small programs in place of the census. */
import { beforeEach, expect, test } from 'vitest'
import { censusSettings } from '../../../test/kit/objects/census-objects.ts'
import { createVirtualClock, type VirtualClock } from '../../../test/kit/virtual-clock.ts'
import type { CensusLine } from '../../census/model/messages.ts'
import { startCensusProcess } from '../platform/census-process.ts'
import { createCensusSupervisor } from './supervisor.ts'

const heartbeat = (agents: number): string => JSON.stringify({ kind: 'heartbeat', agents })
/** Prints a number of nodes after it has read its settings, then runs until its stdin ends. */
const wellBehaved =
  `process.stdin.once('data', (d) => console.log(${JSON.stringify(heartbeat(7))} + '\\nno line ` +
  `of ours\\n' + JSON.stringify({kind:'log',level:'info',message:JSON.parse(d).nodeName,fields:{}})))` +
  `.on('end', () => process.exit(0))`

let clock: VirtualClock
let term: AbortController
let lines: CensusLine[]

beforeEach(() => {
  clock = createVirtualClock()
  term = new AbortController()
  lines = []
})

/** A supervisor whose census is that command, and promises of its callbacks. */
function supervise(command: readonly [string, ...string[]], lineCount = Infinity) {
  const heard = Promise.withResolvers<void>()
  const exited = Promise.withResolvers<string>()
  const supervisor = createCensusSupervisor({
    settings: () => censusSettings,
    start: () => startCensusProcess(command),
    clock,
    onLine(line) {
      lines.push(line)
      if (lines.length === lineCount) heard.resolve()
    },
    onExit: exited.resolve,
    uncountedMs: () => 0,
    onUnfit: () => {},
  })
  return { supervisor, kept: supervisor.supervise(term.signal), heard: heard.promise, exited: exited.promise }
}

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('a census gets its settings, is heard line by line, and ends with its term', async () => {
  const { supervisor, kept, heard } = supervise([process.execPath, '-e', wellBehaved], 2)
  await heard
  expect(lines).toMatchObject([
    { kind: 'heartbeat', agents: 7 },
    { kind: 'log', message: 'n1' },
  ])
  const pid = supervisor.pid() as number
  term.abort(new Error('the term is over'))
  await kept
  expect(isRunning(pid)).toBe(false)
  expect(supervisor.pid()).toBeUndefined()
})

test('a census that does not end is killed', async () => {
  const stubborn = `console.log(${JSON.stringify(heartbeat(1))}); setInterval(() => {}, 1000)`
  const { supervisor, kept, heard } = supervise([process.execPath, '-e', stubborn], 1)
  await heard
  const pid = supervisor.pid() as number
  term.abort(new Error('the term is over'))
  await clock.advance(2_000)
  await kept
  expect(isRunning(pid)).toBe(false)
})

test.each<[string, [string, ...string[]], string]>([
  ['ends', [process.execPath, '-e', 'process.exit(3)'], 'it ended with code 3'],
  ['is killed', [process.execPath, '-e', 'process.kill(process.pid, "SIGKILL")'], 'it was ended by SIGKILL'],
  ['cannot be started', ['/no/such/program'], 'ENOENT'],
])('a census that %s by itself has exited', async (_, command, how) => {
  const { kept, exited } = supervise(command)
  expect(await exited).toContain(how)
  term.abort(new Error('enough'))
  await kept
})
