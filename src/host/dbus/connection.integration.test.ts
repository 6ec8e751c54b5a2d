import { describe, expect, test } from 'vitest'
import { startFakeBus } from '../../../test/kit/bus/fake-bus.ts'
import { createVirtualClock } from '../../../test/kit/virtual-clock.ts'
import { connectSystemBus, type SystemBus } from './connection.ts'
import { BusError, isOutcomeUnknown, NoReplyError, NotConnectedError } from './errors.ts'
import { encodeMessage } from './wire.ts'

const thing = { destination: 'org.example', path: '/org/example', interface: 'org.example.Thing' }

async function failure(promise: Promise<unknown>): Promise<unknown> {
  return await promise.then(
    () => expect.unreachable('should have failed'),
    (error: unknown) => error,
  )
}

async function connectFakeBus() {
  const server = await startFakeBus()
  const clock = createVirtualClock()
  const bus: SystemBus = await connectSystemBus({ clock, sockets: { bus: server.socketPath, systemd: '' } })
  return {
    server,
    clock,
    bus,
    /** Why a call fails that the server got `timeoutMs` ago. */
    async overdue(member: string, timeoutMs: number): Promise<unknown> {
      const error = failure(bus.call({ ...thing, member }, { timeoutMs }))
      await server.until(() => server.calledMembers().includes(member))
      await clock.advance(timeoutMs)
      return await error
    },
    async [Symbol.asyncDispose]() {
      bus.close()
      await server.stop()
    },
  }
}

describe('calls', () => {
  test('a call returns the values of its reply', async () => {
    await using setup = await connectFakeBus()
    setup.server.answers('Add', ({ message }) => ({ signature: 'i', body: [(message.body[0] as number) + 1] }))
    expect(await setup.bus.call({ ...thing, member: 'Add', signature: 'i', body: [41] })).toEqual([42])
  })

  test('replies that overtake each other reach their own calls', async () => {
    await using setup = await connectFakeBus()
    const pendingReplies: (() => void)[] = []
    setup.server.answers('Echo', ({ message, client }) => {
      pendingReplies.unshift(() =>
        client.send({ type: 2, replySerial: message.serial, signature: 's', body: message.body }),
      )
      if (pendingReplies.length === 3) for (const send of pendingReplies) send()
      return 'silent'
    })
    const echo = (text: string) => setup.bus.call({ ...thing, member: 'Echo', signature: 's', body: [text] })
    expect(await Promise.all([echo('a'), echo('b'), echo('c')])).toEqual([['a'], ['b'], ['c']])
  })

  test('an error reply rejects the call with the name the bus gave, and its outcome is known', async () => {
    await using setup = await connectFakeBus()
    setup.server.answers('Do', { error: 'org.example.Refused', text: 'not today' })
    const error = await failure(setup.bus.call({ ...thing, member: 'Do' }))
    expect(error).toBeInstanceOf(BusError)
    expect(error).toMatchObject({ name: 'org.example.Refused', message: 'not today' })
    expect(isOutcomeUnknown(error)).toBe(false)
  })

  test('a call has an unknown outcome when the service left the bus during it', async () => {
    await using setup = await connectFakeBus()
    setup.server.answers('Do', { error: 'org.freedesktop.DBus.Error.NoReply', text: 'recipient disconnected' })
    expect(isOutcomeUnknown(await failure(setup.bus.call({ ...thing, member: 'Do' })))).toBe(true)
  })

  test('a call without an answer times out with an unknown outcome, and the connection continues', async () => {
    await using setup = await connectFakeBus()
    setup.server.answers('Do', 'silent')
    setup.server.answers('Other', {})
    const error = await setup.overdue('Do', 20)
    expect(error).toMatchObject({ name: 'NoReplyError', reason: 'timeout', message: 'Do: no answer within 20 ms' })
    expect(isOutcomeUnknown(error)).toBe(true)
    expect(await setup.bus.call({ ...thing, member: 'Other' })).toEqual([])
  })

  test('an aborted call rejects, and a call aborted before it is sent is not sent', async () => {
    await using setup = await connectFakeBus()
    setup.server.answers('Do', 'silent')
    const abortController = new AbortController()
    const pending = failure(setup.bus.call({ ...thing, member: 'Do' }, { signal: abortController.signal }))
    await setup.server.until(() => setup.server.calledMembers().includes('Do'))
    abortController.abort(new Error('enough'))
    expect(await pending).toMatchObject({ reason: 'aborted' })
    await expect(setup.bus.call({ ...thing, member: 'Do' }, { signal: abortController.signal })).rejects.toThrow(
      'enough',
    )
    expect(setup.server.calledMembers()).toEqual(['Do'])
  })

  test('a call whose values do not fit its signature rejects and is not sent', async () => {
    await using setup = await connectFakeBus()
    await expect(setup.bus.call({ ...thing, member: 'Do', signature: 's', body: [7] })).rejects.toThrow(
      'Expected string',
    )
    expect(setup.server.calledMembers()).toEqual([])
  })
})

describe('a connection that ends', () => {
  test('a connection that ends rejects all pending calls and all later ones', async () => {
    await using setup = await connectFakeBus()
    setup.server.answers('Do', 'silent')
    const pending = [1, 2, 3].map(() => failure(setup.bus.call({ ...thing, member: 'Do' })))
    await setup.server.until(() => setup.server.calledMembers().length === 3)
    setup.server.hangUpAll()
    for (const error of await Promise.all(pending))
      expect(error).toMatchObject({ name: 'NoReplyError', reason: 'connection-lost' })
    expect((await setup.bus.closed).message).toBe('the bus closed the connection')
    expect(await failure(setup.bus.call({ ...thing, member: 'Do' }))).toBeInstanceOf(NotConnectedError)
  })

  test.each([
    ['in the middle of a message', (bytes: Buffer) => bytes.subarray(0, bytes.length - 5)],
    ['in the middle of a header', (bytes: Buffer) => bytes.subarray(0, 9)],
  ])('a connection that is cut rejects its calls: %s', async (_, cut) => {
    await using setup = await connectFakeBus()
    setup.server.answers('Do', ({ message, client }) => {
      client.sendBytes(cut(encodeReply(message.serial)))
      client.hangUp()
      return 'silent'
    })
    expect(await failure(setup.bus.call({ ...thing, member: 'Do' }))).toBeInstanceOf(NoReplyError)
  })

  test.each([
    ['text', Buffer.from('this is not a D-Bus message at all, and long enough')],
    ['a reply whose lengths lie', (serial: number) => cutBody(encodeReply(serial))],
  ])('the process survives %s from the bus', async (_, bytes) => {
    await using setup = await connectFakeBus()
    setup.server.answers('Do', ({ message, client }) => {
      client.sendBytes(typeof bytes === 'function' ? bytes(message.serial) : bytes)
      return 'silent'
    })
    expect(await failure(setup.bus.call({ ...thing, member: 'Do' }))).toBeInstanceOf(NoReplyError)
    await setup.bus.closed
  })

  test('a reply whose content is nonsense does not count as an answer, and the connection continues', async () => {
    await using setup = await connectFakeBus()
    setup.server.answers('Do', ({ message, client }) => {
      client.sendBytes(encodeReply(message.serial).fill(0xff, 20))
      return 'silent'
    })
    setup.server.answers('Other', {})
    const error = await setup.overdue('Do', 20)
    expect(error).toMatchObject({ name: 'NoReplyError', reason: 'timeout' })
    expect(await setup.bus.call({ ...thing, member: 'Other' })).toEqual([])
  })

  test.each([
    ['descriptors', encodeMessageOf('h')],
    ['values that its signature does not have', encodeMessageOf('t')],
    ['five million bytes', encodeMessageOf('ay', 5_000_000)],
  ])('a reply with %s leaves the outcome unknown at once, and the connection continues', async (_, bytesOf) => {
    await using setup = await connectFakeBus()
    setup.server.answers('Do', ({ message, client }) => {
      client.sendBytes(bytesOf(message.serial))
      return 'silent'
    })
    setup.server.answers('Other', {})
    const error = await failure(setup.bus.call({ ...thing, member: 'Do' }))
    expect(error).toMatchObject({ name: 'NoReplyError', reason: 'unreadable' })
    expect(isOutcomeUnknown(error)).toBe(true)
    expect(await setup.bus.call({ ...thing, member: 'Other' })).toEqual([])
  })

  /** A reply of so many bytes whose signature says something else. */
  function encodeMessageOf(signature: string, bytes = 4): (replySerial: number) => Buffer {
    return (replySerial) => {
      const reply = encodeMessage({ type: 2, serial: 9, replySerial, signature: 'ay', body: [Buffer.alloc(0)] })
      reply.writeUInt32LE(bytes, 4)
      const at = reply.indexOf('ay\0')
      reply.write(signature.padEnd(2, 'y'), at)
      return Buffer.concat([reply, Buffer.alloc(bytes - 4)])
    }
  }

  function encodeReply(replySerial: number): Buffer {
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
  const clock = createVirtualClock()

  test('connecting fails at once without a socket', async () => {
    const error = await failure(connectSystemBus({ clock, sockets: { bus: '/nonexistent/bus', systemd: '' } }))
    expect(error).toBeInstanceOf(NotConnectedError)
    expect(String(error)).toContain('ENOENT')
  })

  test('connecting fails when the bus refuses the authentication', async () => {
    await using server = await startFakeBus({ authentication: 'rejected' })
    await expect(connectSystemBus({ clock, sockets: { bus: server.socketPath, systemd: '' } })).rejects.toThrow(
      'refused the authentication: REJECTED',
    )
  })

  test.each(['authentication', 'Hello'])('connecting times out when the bus is silent at the %s', async (where) => {
    await using server = await startFakeBus({ authentication: where === 'authentication' ? 'silent' : 'ok' })
    server.answers('Hello', 'silent')
    const error = failure(connectSystemBus({ clock, sockets: { bus: server.socketPath, systemd: '' }, timeoutMs: 30 }))
    await server.until(() => (where === 'authentication' ? server.clients : server.calls).length === 1)
    await clock.advance(30)
    expect(String(await error)).toContain('no answer within 30 ms')
  })

  test('connecting can be aborted', async () => {
    await using server = await startFakeBus({ authentication: 'silent' })
    const abort = new AbortController()
    const error = failure(
      connectSystemBus({ clock, sockets: { bus: server.socketPath, systemd: '' }, signal: abort.signal }),
    )
    await server.until(() => server.clients.length === 1)
    abort.abort(new Error('enough'))
    expect(String(await error)).toContain('enough')
  })
})

describe('signals', () => {
  const jobs = {
    sender: 'org.freedesktop.systemd1',
    interface: 'org.freedesktop.systemd1.Manager',
    member: 'JobRemoved',
  }

  test('a signal reaches its subscribers until they unsubscribe', async () => {
    await using setup = await connectFakeBus()
    setup.server.answers('Do', {})
    const received: unknown[] = []
    const cancel = setup.bus.onSignal(jobs, ({ sender, body }) => received.push([sender, ...body]))
    setup.bus.onSignal({ ...jobs, member: 'Other' }, () => expect.unreachable('another signal'))
    /** What comes before the answer to a call has arrived with it. */
    const arrived = async (): Promise<unknown> => await setup.bus.call({ ...thing, member: 'Do' })
    await arrived()
    expect(setup.server.calls.filter(({ member }) => member === 'AddMatch')).toHaveLength(3)
    setup.server.signal('JobRemoved', 's', ['one'])
    await arrived()
    expect(received).toEqual([[':1.1', 'one']])
    cancel()
    setup.server.signal('JobRemoved', 's', ['two'])
    await arrived()
    expect(received).toHaveLength(1)
    expect(setup.server.calls.find(({ member }) => member === 'RemoveMatch')?.body).toEqual([
      "type='signal',sender='org.freedesktop.systemd1'," +
        "interface='org.freedesktop.systemd1.Manager',member='JobRemoved'",
    ])
  })

  test('a subscription takes effect before every later call', async () => {
    await using setup = await connectFakeBus()
    setup.server.answers('Restart', {})
    setup.bus.onSignal(jobs, () => {})
    await setup.bus.call({ ...thing, member: 'Restart' })
    const members = setup.server.calls.map(({ member }) => member)
    expect(members.indexOf('AddMatch')).toBeLessThan(members.indexOf('Restart'))
  })

  test('a refused subscription ends the connection: deaf is worse than gone', async () => {
    await using setup = await connectFakeBus()
    setup.server.answers('AddMatch', { error: 'org.freedesktop.DBus.Error.LimitsExceeded' })
    setup.bus.onSignal(jobs, () => {})
    expect((await setup.bus.closed).message).toBe('cannot subscribe to JobRemoved')
  })
})
