import { afterEach, beforeEach, expect, test } from 'vitest'
import { createHostFiles, type HostFiles } from '../../../../test/kit/files/host-files.ts'
import { connectSystemd } from '../../../../test/kit/host/systemd-connection.ts'
import type { VirtualClock } from '../../../../test/kit/virtual-clock.ts'
import type { HostRoot } from '../../../host/fs/host-root.ts'
import type { StepHost } from '../../../host/step/files.ts'
import type { StepOfLine } from '../../../schemas/step-log.ts'
import type { Log } from '../../telemetry/log.ts'
import { createStepOutput, type StepOutput } from './output.ts'

const of: StepOfLine = {
  skyhook: 's',
  package: 'p',
  version: '1.0.0',
  mode: 'apply',
  step: 'run.sh',
  stepId: 'x',
  attempt: 1,
}
const secret = 'geheim-1'
const logLimitBytes = 2 << 20

let files: HostFiles
let clock: VirtualClock
let reads = 0
let host: StepHost
let lines: { readonly fields: Readonly<Record<string, unknown>>; readonly message: string }[]
let output: StepOutput

beforeEach(() => {
  const systemd = connectSystemd()
  clock = systemd.clock
  files = createHostFiles(clock)
  reads = 0
  lines = []
  const { root } = files
  const readFrom: HostRoot['readFrom'] = (path, offset, bytes) => (reads++, root.readFrom(path, offset, bytes))
  host = { units: systemd.units, root: { ...root, readFrom } }
  const note = { files: { stdout: '/out.log', stderr: '/err.log' }, secrets: [secret] }
  files.write('/run/skyhook/x.note', JSON.stringify(note))
  for (const name of ['/out.log', '/err.log']) files.write(name, '')
  output = startAgent()
})
afterEach(async () => await output.close())

function startAgent(): StepOutput {
  const own = lines
  const record = (fields: object, message: string): void => void own.push({ fields: { ...fields }, message })
  const log: Log = { debug: record, info: record, warn: record, error: record }
  return createStepOutput({ host, clock, log, logLimitBytes })
}
const write = (text: string, file = '/out.log'): void => files.write(file, files.read(file) + text)
const messages = (): string[] => lines.map(({ message }) => message)

/** The next read of the output of running steps. */
const look = async (): Promise<void> => await clock.advance(500)

test('output of a running step is printed within half a second, with the step and the stream', async () => {
  output.follow(of)
  write('one\n')
  write('two\n', '/err.log')
  await look()
  expect(lines).toEqual([
    { fields: { ...of, stream: 'stdout' }, message: 'one' },
    { fields: { ...of, stream: 'stderr' }, message: 'two' },
  ])
})

test('what was printed while a step ran is not printed at its end', async () => {
  output.follow(of)
  write('one\ntwo')
  await look()
  write(' three\nfour\n')
  await output.finish(of)
  await output.finish(of)
  expect(messages()).toEqual(['one', 'two three', 'four'])
})

test('a step that ended before it was looked at is printed at its end', async () => {
  write('one\n')
  write('two', '/err.log')
  await output.finish(of)
  expect(messages()).toEqual(['one', 'two'])
})

test('a secret that is written in two pieces is masked', async () => {
  output.follow(of)
  write(`a ${secret.slice(0, 3)}`)
  await look()
  write(`${secret.slice(3)} b\n`)
  await look()
  expect(messages()).toEqual(['a *** b'])
})

test('an agent that is started meanwhile continues where the one before it stopped', async () => {
  output.follow(of)
  write(`one\ntwo ${secret.slice(0, 3)}`)
  await look()
  await output.close()
  write(`${secret.slice(3)}\nthree\n`)
  output = startAgent()
  output.follow(of)
  await look()
  write('four\n')
  await output.finish(of)
  expect(messages()).toEqual(['one', 'two ***', 'three', 'four'])
})

test('an agent that is stopped while it prints notes how far it came before it is gone', async () => {
  const printed = Promise.withResolvers<void>()
  const disk = Promise.withResolvers<void>()
  const { root } = files
  const writeFile: HostRoot['writeFile'] = async (...note) => {
    printed.resolve()
    await disk.promise
    await root.writeFile(...note)
  }
  host = { ...host, root: { ...host.root, writeFile } }
  output = startAgent()
  output.follow(of)
  write('one\n')
  void look()
  await printed.promise
  let isClosed = false
  const closed = output.close().then(() => (isClosed = true))
  await new Promise((resolve) => setImmediate(resolve))
  expect(isClosed).toBe(false)
  disk.resolve()
  await closed
  output = startAgent()
  await output.finish(of)
  expect(messages()).toEqual(['one'])
})

test('a note of an earlier agent that is damaged costs repeated lines only', async () => {
  files.write('/run/skyhook/x.printed', '{"stdout":{"off')
  write('one\n')
  await output.finish(of)
  expect(messages()).toEqual(['one'])
})

test('endless output is printed in samples, and each gap is said', async () => {
  output.follow(of)
  write('line\n'.repeat(100_000))
  await look()
  const shown = messages().length
  expect(lines[0]).toEqual({
    fields: { ...of, stream: 'stdout', skippedBytes: 500_000 - 128 * 1024, log: '/out.log' },
    message: 'output skipped',
  })
  expect(shown).toBeLessThan(6_000)
  write('later\n'.repeat(10))
  await look()
  expect(messages()).toHaveLength(shown)
})

test('a silence is followed by the newest output', async () => {
  output.follow(of)
  write('line\n'.repeat(1_000))
  await look()
  write(`${'more\n'.repeat(10_000)}newest\n`)
  for (let looks = 0; looks < 10; looks++) await look()
  expect(messages().slice(1_000)).toContain('output skipped')
  expect(messages().at(-1)).toBe('newest')
})

test('the end of a step is printed regardless of earlier output', async () => {
  output.follow(of)
  write('line\n'.repeat(1_000))
  await look()
  write('it broke\n')
  await look()
  await output.finish(of)
  expect(messages().at(-1)).toBe('it broke')
})

test('at its end at most a thousand lines of a stream are printed, and that is said', async () => {
  write(`${'line\n'.repeat(5_000)}last\n`)
  await output.finish(of)
  expect([lines.length, lines[0]?.fields['log'], messages()[0], messages().at(-1)]).toEqual([
    1_001,
    '/out.log',
    'output truncated, showing the tail',
    'last',
  ])
})

test('at its end a megabyte is not read as a whole', async () => {
  write(`${'x'.repeat(1_000)}\n`.repeat(1_000))
  await output.finish(of)
  expect([messages()[0], lines.length > 50, lines.length < 70, reads < 12]).toEqual([
    'output truncated, showing the tail',
    true,
    true,
    true,
  ])
})

test('a file that was emptied is read from its start', async () => {
  output.follow(of)
  write('one two three\n')
  await look()
  files.write('/out.log', 'new\n')
  await look()
  expect(messages()).toEqual(['one two three', 'new'])
})

test('a step of which nobody knows where it writes prints nothing', async () => {
  files.remove('/run/skyhook/x.note')
  output.follow(of)
  await look()
  await output.finish(of)
  expect([lines, reads]).toEqual([[], 0])
})

test('a log that cannot be read is reported once', async () => {
  files.remove('/out.log')
  files.makeFolder('/out.log')
  output.follow(of)
  await look()
  await look()
  expect(messages()).toEqual(['output of a running step is unreadable'])
})

test('output that is unreadable is looked at every five seconds, and printed once it is readable', async () => {
  files.remove('/out.log')
  files.makeFolder('/out.log')
  output.follow(of)
  await look()
  const before = reads
  for (let count = 0; count < 20; count++) await look()
  expect(reads - before).toBeLessThanOrEqual(4)
  files.remove('/out.log')
  files.write('/out.log', 'mended\n')
  for (let count = 0; count < 12; count++) await look()
  expect(messages()).toContain('mended')
})

test('an agent looks at nothing while no step runs', async () => {
  output.follow(of)
  expect(clock.pendingTimers).toBe(1)
  output.forget('x')
  expect(clock.pendingTimers).toBe(0)
})

test('how far a step was printed is kept beside its secrets, and readable by root only', async () => {
  output.follow(of)
  write('one\n')
  await look()
  expect(files.read('/run/skyhook/x.printed')).toBe('{"stdout":{"offset":4},"stderr":{"offset":0}}')
  expect(files.modeOf('/run/skyhook/x.printed')).toBe(0o600)
})

test('a log that becomes too large loses its middle, and the rest is printed once', async () => {
  output.follow(of)
  let written = ''
  for (let round = 0; round < 12; round++) {
    const more = Array.from({ length: 40_000 }, (_, line) => `line ${round}-${line}\n`).join('')
    written += more
    write(more)
    await look()
    expect(files.read('/out.log').length).toBeLessThanOrEqual(logLimitBytes)
  }
  const shown = messages().filter((line) => line.startsWith('line '))
  expect(new Set(shown).size).toBe(shown.length)
  write('the end\n')
  await output.finish(of)
  const log = files.read('/out.log')
  expect(log.startsWith(written.slice(0, 400_000))).toBe(true)
  expect(log.match(/--- skyhookd left out \d+ bytes ---/g)).toHaveLength(1)
  expect(log.endsWith('line 11-39999\nthe end\n')).toBe(true)
  expect(messages().at(-1)).toBe('the end')
})

test('a log that grew while no agent ran is cut at its end', async () => {
  write('x'.repeat(3 * logLimitBytes))
  await output.finish(of)
  expect(files.read('/out.log').length).toBeLessThan(logLimitBytes)
})
