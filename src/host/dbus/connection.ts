/**
 * One connection to the host's system bus.
 *
 * Nothing waits for ever: every call has a timeout, everything pending is rejected when the connection ends, and bytes
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

export type BusCallOptions = { readonly timeoutMs?: number; readonly signal?: AbortSignal }

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
   * Subscribes; in effect for everything that is called afterwards. Any local user may send any signal to any
   * connection: a listener that believes what a signal says compares its sender.
   */
  onSignal(match: SignalMatch, listener: (signal: BusSignal) => void): () => void
  /** Ends the connection; what is pending is rejected. */
  close(): void
}

const defaultCallTimeoutMs = 25_000 // what libdbus and sd-bus use
const defaultConnectTimeoutMs = 5_000

/**
 * Methods that change nothing, or nothing that outlives this connection. Every other one is an order, and a crash
 * point.
 */
const effectFreeMethods = new Set(
  `Hello AddMatch RemoveMatch GetNameOwner Subscribe RefUnit UnrefUnit Get GetAll ListUnitsByNames ListInhibitors`.split(
    ' ',
  ),
)

export const busDriver = {
  destination: 'org.freedesktop.DBus',
  path: '/org/freedesktop/DBus',
  interface: 'org.freedesktop.DBus',
} as const

type PendingCall = { readonly resolve: (body: readonly unknown[]) => void; readonly reject: (error: Error) => void }

export type ConnectOptions = {
  readonly clock: Clock
  readonly socketPath: string
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/** Connects, authenticates and says Hello, all within `timeoutMs`. */
export async function connectSystemBus(options: ConnectOptions): Promise<SystemBus> {
  const { clock, socketPath, timeoutMs = defaultConnectTimeoutMs, signal: connectSignal } = options
  connectSignal?.throwIfAborted()
  const socket = connectSocket(socketPath)
  const pendingCalls = new Map<number, PendingCall>()
  const subscriptions = new Set<{ match: SignalMatch; listener: (signal: BusSignal) => void }>()
  const closed = Promise.withResolvers<Error>()
  let endReason: Error | undefined
  let lastSerial = 0

  function end(reason: Error): void {
    if (endReason) return
    endReason = reason
    socket.destroy()
    for (const call of pendingCalls.values()) {
      call.reject(
        new NoReplyError('connection-lost', `the connection to the system bus ended: ${reason.message}`, {
          cause: reason,
        }),
      )
    }
    pendingCalls.clear()
    subscriptions.clear()
    closed.resolve(reason)
  }

  function receive(message: BusMessage): void {
    if (message.type === messageType.signal) return deliver(message)
    const call = pendingCalls.get(message.replySerial ?? 0)
    if (!call) return // answered after its timeout
    pendingCalls.delete(message.replySerial ?? 0)
    if (message.type === messageType.methodReturn) call.resolve(message.body)
    else call.reject(toBusError(message))
  }

  function deliver(message: BusMessage): void {
    const signal = { sender: message.sender ?? '', path: message.path ?? '', body: message.body }
    for (const { match, listener } of subscriptions) {
      if (match.member !== message.member || match.interface !== message.interface) continue
      if (match.path !== undefined && match.path !== message.path) continue
      if (match.arg0 !== undefined && match.arg0 !== message.body[0]) continue
      listener(signal)
    }
  }

  async function call(
    request: BusCall,
    { timeoutMs = defaultCallTimeoutMs, signal }: BusCallOptions = {},
  ): Promise<readonly unknown[]> {
    signal?.throwIfAborted()
    if (endReason)
      throw new NotConnectedError(`not connected to the system bus: ${endReason.message}`, { cause: endReason })
    lastSerial = lastSerial >= 0xffff_ffff ? 1 : lastSerial + 1
    const serial = lastSerial
    const bytes = encodeMessage({ ...request, body: request.body ?? [], serial })
    const answer = Promise.withResolvers<readonly unknown[]>()
    const rejectCall = (reason: 'timeout' | 'aborted', message: string, cause?: unknown) => {
      pendingCalls.delete(serial)
      answer.reject(new NoReplyError(reason, message, { cause }))
    }
    const cancelTimer = clock.startTimer(timeoutMs, () =>
      rejectCall('timeout', `${request.member}: no answer within ${timeoutMs} ms`),
    )
    const onAbort = () => rejectCall('aborted', `${request.member}: given up before the answer`, signal?.reason)
    signal?.addEventListener('abort', onAbort, { once: true })
    pendingCalls.set(serial, answer)
    socket.write(bytes)
    try {
      const values = await answer.promise
      if (!effectFreeMethods.has(request.member)) failpoint(`bus:${request.member}`)
      return values
    } finally {
      cancelTimer()
      signal?.removeEventListener('abort', onAbort)
    }
  }

  function onSignal(match: SignalMatch, listener: (signal: BusSignal) => void): () => void {
    const subscription = { match, listener }
    subscriptions.add(subscription)
    const rule = matchRule(match)
    // Not awaited: the bus works in order, so the rule stands before whatever is called next. Without it we would be
    // deaf.
    call({ ...busDriver, member: 'AddMatch', signature: 's', body: [rule] }).catch((error: unknown) =>
      end(new Error(`cannot subscribe to ${match.member}`, { cause: error })),
    )
    return () => {
      if (!subscriptions.delete(subscription) || endReason) return
      call({ ...busDriver, member: 'RemoveMatch', signature: 's', body: [rule] }).catch(() => {}) // it ends with the connection anyway
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
    for (const message of messages) if (!endReason) receive(message)
  })
  socket.on('error', end)
  socket.on('close', () => end(new Error('the bus closed the connection')))
  socket.write(authenticationRequest(process.getuid?.() ?? 0))
  const onAbort = () => end(new Error('given up while connecting', { cause: connectSignal?.reason }))
  connectSignal?.addEventListener('abort', onAbort, { once: true })
  try {
    await call({ ...busDriver, member: 'Hello' }, { timeoutMs }) // goes out with the authentication: one round trip for both
  } catch (error) {
    connectSignal?.throwIfAborted()
    const reason = endReason ?? (error as Error)
    end(reason)
    throw new NotConnectedError(`cannot connect to the system bus at ${socketPath}: ${reason.message}`, {
      cause: reason,
    })
  } finally {
    connectSignal?.removeEventListener('abort', onAbort)
  }
  return { closed: closed.promise, call, onSignal, close: () => end(new Error('closed by the agent')) }
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
