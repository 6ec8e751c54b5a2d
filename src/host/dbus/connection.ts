/**
 * One connection to the host's system bus.
 *
 * Nothing waits forever: every call has a timeout, everything pending is rejected when the connection ends, and bytes
 * that are not D-Bus end the connection instead of the process.
 */
import { connect as connectSocket } from 'node:net'
import type { Clock } from '../../schemas/clock.ts'
import { BusError, NoReplyError, NotConnectedError } from './errors.ts'
import { failpoint } from '../fs/failpoint.ts'
import {
  authenticationRequest,
  type BusMessage,
  createMessageReader,
  encodeMessage,
  messageType,
  readAuthentication,
} from './wire.ts'

export type BusCall = {
  readonly destination: string
  readonly path: string
  readonly interface: string
  readonly member: string
  readonly signature?: string
  readonly body?: readonly unknown[]
}

export type BusCallOptions = { readonly timeoutMs?: number; readonly signal?: AbortSignal | undefined }

/** Which signals to ask the bus for. `sender` may be a well-known name; the signals carry its unique one. */
export type SignalMatch = {
  readonly sender: string
  readonly interface: string
  readonly member: string
  readonly path?: string
  readonly arg0?: string
}

export type BusSignal = { readonly sender: string; readonly path: string; readonly body: readonly unknown[] }

export type SystemBus = {
  /** Resolves, never rejects, with the reason once the connection has ended. */
  readonly closed: Promise<Error>
  /**
   * Calls a method and returns the values of its reply. Rejects with BusError for an error reply, NoReplyError when the
   * outcome is unknown, NotConnectedError or the codec's error when nothing was sent. Calls are carried out in the
   * order in which they are made, answers may overtake each other.
   */
  call(call: BusCall, options?: BusCallOptions): Promise<readonly unknown[]>
  /**
   * Subscribes; takes effect before every later call. Any local user may send any signal to any
   * connection: a listener that believes what a signal says compares its sender.
   */
  onSignal(match: SignalMatch, listener: (signal: BusSignal) => void): () => void
  /** Ends the connection; what is pending is rejected. */
  close(): void
}

const defaultCallTimeoutMs = 25_000 // what libdbus and sd-bus use
const defaultConnectTimeoutMs = 5_000

/**
 * Methods that change nothing, or nothing that outlives this connection. Every other one has an effect and a failpoint.
 */
const effectFreeMethods =
  /^(?:Hello|AddMatch|RemoveMatch|GetNameOwner|Subscribe|RefUnit|UnrefUnit|Get|GetAll|ListUnitsByNames|ListInhibitors)$/

export const busDriver = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
} as const

export type ConnectOptions = {
  readonly clock: Clock
  readonly socketPath: string
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** Connects, authenticates and says Hello, all within `timeoutMs`. */
export async function connectSystemBus(options: ConnectOptions): Promise<SystemBus> {
  const { clock, socketPath, timeoutMs = defaultConnectTimeoutMs, signal } = options
  signal?.throwIfAborted()
  const socket = connectSocket(socketPath)
  const pendingCalls = createPendingCalls(clock)
  const subscriptions = createSubscriptions()
  const closed = Promise.withResolvers<Error>()
  let endReason: Error | undefined

  function end(reason: Error): void {
    if (endReason) return
    endReason = reason
    socket.destroy()
    pendingCalls.rejectAll(reason)
    subscriptions.clear()
    closed.resolve(reason)
  }

  async function call(request: BusCall, options: BusCallOptions = {}): Promise<readonly unknown[]> {
    options.signal?.throwIfAborted()
    if (endReason)
      throw new NotConnectedError(`not connected to the system bus: ${endReason.message}`, { cause: endReason })
    const values = await pendingCalls.send(request, options, (bytes) => socket.write(bytes))
    if (!effectFreeMethods.test(request.member)) failpoint(`bus:${request.member}`)
    return values
  }

  function onSignal(match: SignalMatch, listener: (signal: BusSignal) => void): () => void {
    const remove = subscriptions.add(match, listener)
    const rule = matchRule(match)
    // Not awaited: the bus works in order, so the rule holds for whatever is called next. Without it we would be deaf.
    call({ ...busDriver, member: 'AddMatch', signature: 's', body: [rule] }).catch((error: unknown) =>
      end(new Error(`cannot subscribe to ${match.member}`, { cause: error })),
    )
    return () => {
      if (!remove() || endReason) return
      // it ends with the connection anyway
      call({ ...busDriver, member: 'RemoveMatch', signature: 's', body: [rule] }).catch(() => {})
    }
  }

  const readChunk = createStreamReader()
  socket.on('data', (chunk: Buffer) => {
    let messages: readonly BusMessage[]
    try {
      messages = readChunk(chunk)
    } catch (error) {
      return end(error as Error)
    }
    for (const message of messages) {
      if (endReason) return
      if (message.type === messageType.signal) subscriptions.deliver(message)
      else pendingCalls.settle(message)
    }
  })
  socket.on('error', end)
  socket.on('close', () => end(new Error('the bus closed the connection')))
  socket.write(authenticationRequest(process.getuid?.() ?? 0))
  const onAbort = () => end(new Error('aborted while connecting', { cause: signal?.reason }))
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    // goes out with the authentication: one round trip for both
    await call({ ...busDriver, member: 'Hello' }, { timeoutMs })
  } catch (error) {
    signal?.throwIfAborted()
    const reason = endReason ?? (error as Error)
    end(reason)
    throw new NotConnectedError(`cannot connect to the system bus at ${socketPath}: ${reason.message}`, {
      cause: reason,
    })
  } finally {
    signal?.removeEventListener('abort', onAbort)
  }
  return { closed: closed.promise, call, onSignal, close: () => end(new Error('closed by the agent')) }
}

/** Calls that wait for their reply. Each has a timeout. */
function createPendingCalls(clock: Clock) {
  const pendingCalls = new Map<number, PromiseWithResolvers<readonly unknown[]>>()
  let lastSerial = 0
  return {
    async send(
      request: BusCall,
      { timeoutMs = defaultCallTimeoutMs, signal }: BusCallOptions,
      write: (bytes: Buffer) => void,
    ): Promise<readonly unknown[]> {
      lastSerial = lastSerial >= 0xffff_ffff ? 1 : lastSerial + 1
      const serial = lastSerial
      const bytes = encodeMessage({ ...request, body: request.body ?? [], serial })
      const answer = Promise.withResolvers<readonly unknown[]>()
      const giveUp = (reason: 'timeout' | 'aborted', message: string, cause?: unknown) => {
        pendingCalls.delete(serial)
        answer.reject(new NoReplyError(reason, `${request.member}: ${message}`, { cause }))
      }
      const cancelTimer = clock.startTimer(timeoutMs, () => giveUp('timeout', `no answer within ${timeoutMs} ms`))
      const onAbort = () => giveUp('aborted', 'aborted before the answer', signal?.reason)
      signal?.addEventListener('abort', onAbort, { once: true })
      pendingCalls.set(serial, answer)
      write(bytes)
      try {
        return await answer.promise
      } finally {
        cancelTimer()
        signal?.removeEventListener('abort', onAbort)
      }
    },
    settle(message: BusMessage): void {
      const call = pendingCalls.get(message.replySerial ?? 0)
      if (!call) return // answered after its timeout
      pendingCalls.delete(message.replySerial ?? 0)
      if (message.type === messageType.methodReturn) call.resolve(message.body)
      else call.reject(toBusError(message))
    },
    rejectAll(cause: Error): void {
      const message = `the connection to the system bus ended: ${cause.message}`
      for (const call of pendingCalls.values()) call.reject(new NoReplyError('connection-lost', message, { cause }))
      pendingCalls.clear()
    },
  }
}

function createSubscriptions() {
  const subscriptions = new Set<{ match: SignalMatch; listener: (signal: BusSignal) => void }>()
  return {
    /** Returns what removes the listener, and whether it was still there. */
    add(match: SignalMatch, listener: (signal: BusSignal) => void): () => boolean {
      const subscription = { match, listener }
      subscriptions.add(subscription)
      return () => subscriptions.delete(subscription)
    },
    deliver(message: BusMessage): void {
      const signal = { sender: message.sender ?? '', path: message.path ?? '', body: message.body }
      for (const { match, listener } of subscriptions) {
        if (match.member !== message.member || match.interface !== message.interface) continue
        if (match.path !== undefined && match.path !== message.path) continue
        if (match.arg0 !== undefined && match.arg0 !== message.body[0]) continue
        listener(signal)
      }
    },
    clear: () => subscriptions.clear(),
  }
}

function toBusError({ errorName, body: [text] }: BusMessage): BusError {
  return new BusError(errorName ?? 'org.freedesktop.DBus.Error.Failed', typeof text === 'string' ? text : '')
}

/** Takes in chunks: first the answer to the authentication, then messages. */
function createStreamReader(): (chunk: Buffer) => readonly BusMessage[] {
  const read = createMessageReader()
  let authenticationReply: Buffer | undefined = Buffer.alloc(0)
  return (chunk) => {
    if (!authenticationReply) return read(chunk)
    authenticationReply = Buffer.concat([authenticationReply, chunk])
    const rest = readAuthentication(authenticationReply)
    if (!rest) return []
    authenticationReply = undefined
    return rest.length > 0 ? read(rest) : []
  }
}

function matchRule(match: SignalMatch): string {
  const parts = { type: 'signal', ...match }
  return Object.entries(parts)
    .map(([key, value]) => `${key}='${value.replaceAll("'", "'\\''")}'`)
    .join(',')
}
