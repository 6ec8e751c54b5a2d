import { expect, test } from 'vitest'
import { eventsPath, merge, type Sample, sampleServer } from '../../../test/kit/api-server/sample-server.ts'
import type { Fault } from '../../../test/kit/api-server/faults.ts'
import { commandLine, type Ended } from '../../../test/kit/tool/command-line.ts'

const minuteMs = 60_000

async function send({ admin, clock }: Sample, name: string): Promise<void> {
  const time = new Date(clock.wallMs()).toISOString()
  const body = {
    metadata: { name, namespace: 'default' },
    involvedObject: { kind: 'Node', name: 'n1' },
    source: { component: 'skyhookd' },
    reason: 'Started',
    message: name,
    lastTimestamp: time,
    type: 'Normal',
  }
  await admin.json('POST', eventsPath, { body })
}

/** `kubectl skyhook events --watch` on virtual time, after one Event. `end` is ctrl-C. */
async function watching() {
  const sample = sampleServer()
  const { clock, connect } = sample
  await send(sample, 'first')
  const ctrlC = new AbortController()
  const client = connect({ name: 'person' })
  const tool = commandLine({ clock, client })
  const ended = tool.run('events -w -o json', { signal: ctrlC.signal })
  await clock.advance(1_000)
  return {
    sample,
    client,
    ended,
    end: async (): Promise<Ended> => {
      ctrlC.abort()
      return await ended
    },
  }
}

/** The messages of the Events that were printed, in order. */
const messagesOf = ({ stdout }: Ended): readonly string[] =>
  [...stdout.matchAll(/"message": ?"(\w+)"/g)].map(([, message = '']) => message)

test('events --watch continues through ten minutes in which there is no Event and the API server sends nothing', async () => {
  const { sample, end } = await watching()
  await sample.clock.advance(10 * minuteMs)
  await send(sample, 'second')
  await sample.clock.advance(minuteMs)
  const ended = await end()
  expect(ended).toMatchObject({ code: 130, stderr: '' })
  expect(messagesOf(ended)).toEqual(['first', 'second'])
})

test.each<[string, Fault]>([
  ['breaks', { kind: 'cut-watch', afterMs: 2_000, how: 'break' }],
  ['ends inside an Event', { kind: 'cut-watch', afterMs: 2_000, how: 'tear' }],
  ['ends in good order', { kind: 'cut-watch', afterMs: 2_000, how: 'end' }],
  ['ends with 410', { kind: 'expire-watch', afterMs: 2_000 }],
  ['is refused for a moment', { kind: 'refuse', code: 503 }],
  ['is not answered', { kind: 'lose-request' }],
])('events --watch shows each Event once when a watch %s', async (_, fault) => {
  const { sample, end } = await watching()
  const { clock, server } = sample
  // the current watches end, and the next two have the fault
  server.faults.rules = [{ name: 'watch', fault, matches: ({ verb }) => verb === 'watch', times: 2 }]
  await clock.advance(6 * minuteMs)
  expect(server.faults.hits.get('watch')).toBe(2)
  for (const name of ['second', 'third']) {
    await send(sample, name)
    await clock.advance(3_000)
  }
  await clock.advance(10 * minuteMs)
  const ended = await end()
  expect(ended.code).toBe(130)
  expect(messagesOf(ended)).toEqual(['first', 'second', 'third'])
})

test('events --watch says that nothing comes while the API server is away, and continues afterwards', async () => {
  const { sample, end } = await watching()
  const { clock, server } = sample
  server.faults.rules = [{ name: 'away', fault: { kind: 'refuse-connection' } }]
  await clock.advance(12 * minuteMs)
  server.faults.rules = []
  await send(sample, 'second')
  await clock.advance(minuteMs)
  const ended = await end()
  expect(ended.code).toBe(130)
  expect(ended.stderr.match(/cannot watch Events of skyhookd, retrying: .+\n/g)).toHaveLength(1)
  expect(messagesOf(ended)).toEqual(['first', 'second'])
})

test('events --watch shows an Event again if its count rose while the watch was broken', async () => {
  const { sample, end } = await watching()
  const { clock, server, admin } = sample
  server.faults.rules = [
    { name: 'away', fault: { kind: 'refuse', code: 503 }, matches: ({ client }) => client !== 'admin' },
  ]
  await clock.advance(2 * minuteMs)
  await admin.json('PATCH', `${eventsPath}/first`, { body: { count: 2 }, contentType: merge })
  await send(sample, 'second')
  server.faults.rules = []
  await clock.advance(minuteMs)
  expect(messagesOf(await end())).toEqual(['first', 'first', 'second'])
})

test('events --watch notices a dead connection that nobody closed', async () => {
  const { sample, client, end } = await watching()
  const { clock } = sample
  client.cut()
  await send(sample, 'second')
  await clock.advance(2 * minuteMs)
  client.heal('reset')
  await clock.advance(minuteMs)
  expect(messagesOf(await end())).toEqual(['first', 'second'])
})

test('events --watch ends when reading is no longer allowed', async () => {
  const { sample, ended } = await watching()
  const { clock, server } = sample
  server.faults.rules = [{ name: 'forbidden', fault: { kind: 'refuse', code: 403, reason: 'Forbidden' } }]
  await clock.advance(2 * minuteMs)
  expect((await ended).code).toBe(4)
})
