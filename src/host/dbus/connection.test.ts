import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { startFakeBus } from '../../../test/support/fake-bus.ts'
import { connectSystemBus, type SystemBus } from './connection.ts'
import { BusError, isOutcomeUnknown, NoAnswerError, NotConnectedError } from './errors.ts'

const thing = { destination: 'org.example', path: '/org/example', interface: 'org.example.Thing' }

async function failure(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => expect.unreachable('should have failed'),
    (error: unknown) => error,
  )
}

async function connected() {
  const server = await startFakeBus()
  const bus: SystemBus = await connectSystemBus({ socketPath: server.socketPath })
  return {
    server,
    bus,
    async [Symbol.asyncDispose]() {
      bus.close()
      await server.stop()
    },
  }
}

describe('calls', () => {
  test('return the values of the reply', async () => {
    await using both = await connected()
    both.server.answers('Add', ({ message }) => ({ signature: 'i', body: [(message.body[0] as number) + 1] }))
    expect(await both.bus.call({ ...thing, member: 'Add', signature: 'i', body: [41] })).toEqual([42])
  })

  test('are matched to their replies when these overtake each other', async () => {
    await using both = await connected()
    const late: (() => void)[] = []
    both.server.answers('Echo', ({ message, client }) => {
      late.unshift(() => client.send({ type: 2, replySerial: message.serial, signature: 's', body: message.body }))
      if (late.length === 3) for (const send of late) send()
      return 'silent'
    })
    const echo = (text: string) => both.bus.call({ ...thing, member: 'Echo', signature: 's', body: [text] })
    expect(await Promise.all([echo('a'), echo('b'), echo('c')])).toEqual([['a'], ['b'], ['c']])
  })

  test('reject with the error that the bus names, and what was asked did not happen', async () => {
    await using both = await connected()
    both.server.answers('Do', { error: 'org.example.Refused', text: 'not today' })
    const error = await failure(both.bus.call({ ...thing, member: 'Do' }))
    expect(error).toBeInstanceOf(BusError)
    expect(error).toMatchObject({ name: 'org.example.Refused', message: 'not today' })
    expect(isOutcomeUnknown(error)).toBe(false)
  })

  test('are unknown when the bus says that the service went away during the call', async () => {
    await using both = await connected()
    both.server.answers('Do', { error: 'org.freedesktop.DBus.Error.NoReply', text: 'recipient disconnected' })
    expect(isOutcomeUnknown(await failure(both.bus.call({ ...thing, member: 'Do' })))).toBe(true)
  })

  test('are unknown after their timeout, and the connection goes on', async () => {
    await using both = await connected()
    both.server.answers('Do', 'silent')
    both.server.answers('Other', {})
    const error = await failure(both.bus.call({ ...thing, member: 'Do' }, { timeoutMs: 20 }))
    expect(error).toMatchObject({ name: 'NoAnswerError', reason: 'timeout', message: 'Do: no answer within 20 ms' })
    expect(isOutcomeUnknown(error)).toBe(true)
    expect(await both.bus.call({ ...thing, member: 'Other' })).toEqual([])
  })

  test('may be given up; one given up before is not sent', async () => {
    await using both = await connected()
    both.server.answers('Do', 'silent')
    const giveUp = new AbortController()
    const pending = failure(both.bus.call({ ...thing, member: 'Do' }, { signal: giveUp.signal }))
    await expect.poll(() => both.server.calledMembers()).toEqual(['Do'])
    giveUp.abort(new Error('enough'))
    expect(await pending).toMatchObject({ reason: 'aborted' })
    await expect(both.bus.call({ ...thing, member: 'Do' }, { signal: giveUp.signal })).rejects.toThrow('enough')
    expect(both.server.calledMembers()).toEqual(['Do'])
  })

  test('with values that do not fit their signature reject and are not sent', async () => {
    await using both = await connected()
    await expect(both.bus.call({ ...thing, member: 'Do', signature: 's', body: [7] })).rejects.toThrow('Expected string')
    expect(both.server.calledMembers()).toEqual([])
  })
})

describe('a connection that ends', () => {
  test('rejects everything pending at once, and everything after it', async () => {
    await using both = await connected()
    both.server.answers('Do', 'silent')
    const pending = [1, 2, 3].map(() => failure(both.bus.call({ ...thing, member: 'Do' })))
    await expect.poll(() => both.server.calledMembers().length).toBe(3)
    both.server.hangUpAll()
    for (const error of await Promise.all(pending)) expect(error).toMatchObject({ name: 'NoAnswerError', reason: 'connection-lost' })
    expect((await both.bus.gone).message).toBe('the bus closed the connection')
    expect(await failure(both.bus.call({ ...thing, member: 'Do' }))).toBeInstanceOf(NotConnectedError)
  })

  test.each([
    ['in the middle of a message', (bytes: Buffer) => bytes.subarray(0, bytes.length - 5)],
    ['in the middle of a header', (bytes: Buffer) => bytes.subarray(0, 9)],
  ])('%s', async (_, cut) => {
    await using both = await connected()
    both.server.answers('Do', ({ message, client }) => {
      client.sendBytes(cut(whole(message.serial)))
      setTimeout(() => client.hangUp(), 5)
      return 'silent'
    })
    expect(await failure(both.bus.call({ ...thing, member: 'Do' }))).toBeInstanceOf(NoAnswerError)
  })

  test.each([
    ['text', Buffer.from('this is no D-Bus message at all, and long enough')],
    ['a reply whose inside is nonsense', (serial: number) => whole(serial).fill(0xff, 20)],
    ['a reply whose lengths lie', (serial: number) => cutBody(whole(serial))],
  ])('by %s: the process lives on', async (_, bytes) => {
    await using both = await connected()
    both.server.answers('Do', ({ message, client }) => {
      client.sendBytes(typeof bytes === 'function' ? bytes(message.serial) : bytes)
      return 'silent'
    })
    expect(await failure(both.bus.call({ ...thing, member: 'Do' }))).toBeInstanceOf(NoAnswerError)
    await both.bus.gone
  })

  function whole(replySerial: number): Buffer {
    // a method return with the text "hello", by hand: header, field REPLY_SERIAL, field SIGNATURE, body
    const body = Buffer.from('\x05\0\0\0hello\0', 'latin1')
    const fields = Buffer.from('\x05\x01u\0\0\0\0\0\x08\x01g\0\x01s\0\0', 'latin1')
    fields.writeUInt32LE(replySerial, 4)
    const header = Buffer.alloc(16)
    header.write('l\x02\0\x01', 'latin1')
    header.writeUInt32LE(body.length, 4)
    header.writeUInt32LE(99, 8)
    header.writeUInt32LE(15, 12)
    return Buffer.concat([header, fields, body])
  }

  function cutBody(bytes: Buffer): Buffer {
    const copy = Buffer.from(bytes)
    copy.writeUInt32LE(0x0fff_fff0, 12) // fields longer than any message
    return copy
  }
})

describe('connecting', () => {
  test('fails at once without a socket', async () => {
    const error = await failure(connectSystemBus({ socketPath: '/nonexistent/bus' }))
    expect(error).toBeInstanceOf(NotConnectedError)
    expect(String(error)).toContain('ENOENT')
  })

  test('fails when the bus refuses the authentication', async () => {
    await using server = await startFakeBus({ authentication: 'rejected' })
    await expect(connectSystemBus({ socketPath: server.socketPath })).rejects.toThrow('refused the authentication: REJECTED')
  })

  test.each(['authentication', 'Hello'])('fails in time when the bus is silent at the %s', async (where) => {
    await using server = await startFakeBus({ authentication: where === 'authentication' ? 'silent' : 'ok' })
    server.answers('Hello', 'silent')
    await expect(connectSystemBus({ socketPath: server.socketPath, timeoutMs: 30 })).rejects.toThrow('no answer within 30 ms')
  })

  test('can be given up', async () => {
    await using server = await startFakeBus({ authentication: 'silent' })
    await expect(connectSystemBus({ socketPath: server.socketPath, signal: AbortSignal.timeout(20) })).rejects.toThrow('timeout')
  })
})

describe('signals', () => {
  const jobs = { sender: 'org.freedesktop.systemd1', interface: 'org.freedesktop.systemd1.Manager', member: 'JobRemoved' }

  test('come to those who asked for them, until they cancel', async () => {
    await using both = await connected()
    const heard: unknown[] = []
    const cancel = both.bus.onSignal(jobs, ({ sender, body }) => heard.push([sender, ...body]))
    both.bus.onSignal({ ...jobs, member: 'Other' }, () => expect.unreachable('another signal'))
    await expect.poll(() => both.server.calls.filter(({ member }) => member === 'AddMatch').length).toBe(2)
    both.server.signal('JobRemoved', 's', ['one'])
    await expect.poll(() => heard).toEqual([[':1.1', 'one']])
    cancel()
    both.server.signal('JobRemoved', 's', ['two'])
    await delay(20)
    expect(heard).toHaveLength(1)
    expect(both.server.calls.find(({ member }) => member === 'RemoveMatch')?.body).toEqual([
      "type='signal',sender='org.freedesktop.systemd1',interface='org.freedesktop.systemd1.Manager',member='JobRemoved'",
    ])
  })

  test('are asked for before anything that is called afterwards', async () => {
    await using both = await connected()
    both.server.answers('Restart', {})
    both.bus.onSignal(jobs, () => {})
    await both.bus.call({ ...thing, member: 'Restart' })
    const members = both.server.calls.map(({ member }) => member)
    expect(members.indexOf('AddMatch')).toBeLessThan(members.indexOf('Restart'))
  })

  test('that cannot be had end the connection: deaf is worse than gone', async () => {
    await using both = await connected()
    both.server.answers('AddMatch', { error: 'org.freedesktop.DBus.Error.LimitsExceeded' })
    both.bus.onSignal(jobs, () => {})
    expect((await both.bus.gone).message).toBe('cannot subscribe to JobRemoved')
  })
})
