/**
 * One connection to the host's system bus, or to systemd itself where the host has none.
 *
 * Nothing waits forever: every call has a timeout, everything pending is rejected when the connection ends, and bytes
 * that are not D-Bus end the connection instead of the process. The header of a message decides whether its body is
 * read: answers to pending calls and signals of expected senders only (docs/design/decisions/steps-as-units.md).
 */
import { existsSync } from 'node:fs'
import { connect as connectSocket } from 'node:net'
import type { Clock } from '../../schemas/clock.ts'
import { failpoint } from '../fs/failpoint.ts'
import { BusError, NoReplyError, type NoReplyReason, NotConnectedError } from './errors.ts'
import { createMessageReader, type MessageHeader, type MessageReaderOptions, type ReceivedMessage } from './framing.ts'
import type { BusCall, BusSignal, SignalMatch } from './messages.ts'
import { busDriver, createPeerSubscriptions, createSubscriptions } from './subscriptions.ts'
import { authenticationRequest, decodeBody, encodeMessage, messageType, readAuthentication } from './wire.ts'

export type BusCallOptions = { readonly timeoutMs?: number; readonly signal?: AbortSignal | undefined }

export type SystemBus = {
  /**
   * The other end is systemd itself: calls of any destination go to it, without a bus. No other service can be called,
   * and there are no bus names. systemd then keeps no references to units (AddRef, RefUnit), since it counts them by
   * name.
   */
  readonly isPeer: boolean
  /** Resolves, never rejects, with the reason once the connection has ended. */
  readonly closed: Promise<Error>
  /**
   * Calls a method and returns the values of its reply. Rejects with BusError for an error reply, NoReplyError when the
   * outcome is unknown, NotConnectedError or the codec's error when nothing was sent. Calls are carried out in the
   * order in which they are made, answers may overtake each other.
   */
  call(call: BusCall, options?: BusCallOptions): Promise<readonly unknown[]>
  /**
   * Subscribes; takes effect before every later call. Any local user may send any signal to any connection: the
   * listener gets only those that the owner of the name `sender` sent, and the ones of the bus itself.
   */
  onSignal(match: SignalMatch, listener: (signal: BusSignal) => void): () => void
  /** Ends the connection; pending calls are rejected. */
  close(): void
}

const defaultConnectTimeoutMs = 5_000

/** Methods that change nothing, or nothing that outlives this connection. All others have an effect and a failpoint. */
const effectFreeMethods =
  /^(?:Hello|Ping|AddMatch|RemoveMatch|GetNameOwner|Subscribe|RefUnit|UnrefUnit|Get|GetAll|ListUnitsByNames|ListUnitsByPatterns|ListInhibitors)$/

/** On a host without a bus, calls to services other than systemd fail like calls to an absent service on a bus. */
const peerName = 'org.freedesktop.systemd1'
const serviceUnknown = 'org.freedesktop.DBus.Error.ServiceUnknown'

export type ConnectOptions = {
  readonly clock: Clock
  readonly sockets: BusSockets
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
}

/**
 * Connects to the bus, or to systemd where there is none, authenticates and receives a first answer, within
 * `timeoutMs`.
 */
export async function connectSystemBus(options: ConnectOptions): Promise<SystemBus> {
  const { clock, sockets, timeoutMs = defaultConnectTimeoutMs, signal } = options
  signal?.throwIfAborted()
  const { path: socketPath, isPeer } = chooseSocket(sockets, existsSync)
  const socket = connectSocket(socketPath)
  const pendingCalls = createPendingCalls(clock)
  const subscriptions = isPeer
    ? createPeerSubscriptions(peerName)
    : createSubscriptions({
        call: (request, onAnswer) => send(request, {}, onAnswer),
        onDeaf: end, // a connection without signals is useless
      })
  const closed = Promise.withResolvers<Error>()
  let endReason: Error | undefined
  /** Unlike a bus, systemd does not read data that arrives together with the authentication until more data arrives. */
  let unsent: Buffer[] | undefined = isPeer ? [] : undefined

  function end(reason: Error): void {
    if (endReason) return
    endReason = reason
    socket.destroy()
    pendingCalls.rejectAll(reason)
    subscriptions.clear()
    closed.resolve(reason)
  }

  async function send(
    request: BusCall,
    options: BusCallOptions,
    onAnswer?: (values: readonly unknown[]) => void,
  ): Promise<readonly unknown[]> {
    options.signal?.throwIfAborted()
    const isForOthers = isPeer && request.destination !== peerName
    // chosen while the bus was away, or before a package installed one
    if (isForOthers && !chooseSocket(sockets, existsSync).isPeer) end(new Error('the host has a system bus now'))
    if (endReason)
      throw new NotConnectedError(`not connected to the system bus: ${endReason.message}`, { cause: endReason })
    const { member, body = [], destination } = request
    if (isForOthers) throw new BusError(serviceUnknown, `the host has no system bus, which ${destination} needs`)
    return await pendingCalls.send({ member, ...options, onAnswer }, (serial) => {
      const bytes = encodeMessage({ ...request, body, serial })
      if (unsent) unsent.push(bytes)
      else socket.write(bytes)
    })
  }

  async function call(request: BusCall, options: BusCallOptions = {}): Promise<readonly unknown[]> {
    const values = await send(request, options)
    if (!effectFreeMethods.test(request.member)) failpoint(`bus:${request.member}`)
    return values
  }

  function onAuthenticated(): void {
    for (const bytes of unsent ?? []) socket.write(bytes)
    unsent = undefined
  }

  const readChunk = createStreamReader(onAuthenticated, {
    isExpected: (header) => !endReason && (pendingCalls.isExpected(header) || subscriptions.isExpected(header)),
    onMessage(message) {
      if (message.header.type === messageType.signal) subscriptions.deliver(message)
      else pendingCalls.settle(message)
    },
  })
  socket.on('data', (chunk: Buffer) => {
    try {
      readChunk(chunk)
    } catch (error) {
      end(error as Error)
    }
  })
  socket.on('error', end)
  socket.on('close', () => end(new Error('the bus closed the connection')))
  socket.write(authenticationRequest(process.getuid?.() ?? 0))
  const onAbort = () => end(new Error('aborted while connecting', { cause: signal?.reason }))
  signal?.addEventListener('abort', onAbort, { once: true })
  try {
    // goes out to a bus with the authentication: one round trip for both
    await call(isPeer ? ping : { ...busDriver, member: 'Hello' }, { timeoutMs })
  } catch (error) {
    signal?.throwIfAborted()
    const reason = endReason ?? (error as Error)
    end(reason)
    const what = isPeer ? 'no system bus, and no systemd' : 'cannot connect to the system bus'
    throw new NotConnectedError(`${what} at ${socketPath}: ${reason.message}`, { cause: reason })
  } finally {
    signal?.removeEventListener('abort', onAbort)
  }
  return {
    isPeer,
    closed: closed.promise,
    call,
    onSignal: (match, listener) => subscriptions.add(match, listener),
    close: () => end(new Error('closed by the agent')),
  }
}

/** systemd answers it on each of its objects. */
const ping: BusCall = {
  destination: peerName,
  path: '/org/freedesktop/systemd1',
  interface: 'org.freedesktop.DBus.Peer',
  member: 'Ping',
}

/** Takes in chunks: first the answer to the authentication, then messages. */
function createStreamReader(onAuthenticated: () => void, options: MessageReaderOptions): (chunk: Buffer) => void {
  const read = createMessageReader(options)
  let authenticationReply: Buffer | undefined = Buffer.alloc(0)
  return (chunk) => {
    if (!authenticationReply) return read(chunk)
    authenticationReply = Buffer.concat([authenticationReply, chunk])
    const rest = readAuthentication(authenticationReply)
    if (!rest) return
    authenticationReply = undefined
    onAuthenticated()
    read(rest)
  }
}

const defaultCallTimeoutMs = 25_000 // what libdbus and sd-bus use
/** The largest answer to what the agent asks is all of a unit's properties: 50 KiB, and the step's arguments. */
const maxAnswerBytes = 4 * 1024 * 1024

type PendingCallOptions = {
  readonly member: string
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Called before anything after the answer in the stream is read. */
  readonly onAnswer?: ((values: readonly unknown[]) => void) | undefined
}

type PendingCalls = {
  /** Sends under a serial of its own and waits for the answer. */
  send(options: PendingCallOptions, write: (serial: number) => void): Promise<readonly unknown[]>
  /** True for the answer to a pending call. An answer that is too large to be read rejects its call at once. */
  isExpected(header: MessageHeader): boolean
  settle(message: ReceivedMessage): void
  rejectAll(cause: Error): void
}

type PendingCall = {
  readonly resolve: (values: readonly unknown[]) => void
  readonly reject: (error: Error) => void
  readonly giveUp: (reason: NoReplyReason, message: string, cause?: unknown) => void
}

/** Calls that wait for their reply. Each has a timeout. */
function createPendingCalls(clock: Clock): PendingCalls {
  const calls = new Map<number, PendingCall>()
  let lastSerial = 0

  return {
    async send({ member, timeoutMs = defaultCallTimeoutMs, signal, onAnswer }, write) {
      lastSerial = lastSerial >= 0xffff_ffff ? 1 : lastSerial + 1
      const serial = lastSerial
      const answer = Promise.withResolvers<readonly unknown[]>()
      const giveUp: PendingCall['giveUp'] = (reason, message, cause) => {
        calls.delete(serial)
        answer.reject(new NoReplyError(reason, `${member}: ${message}`, { cause }))
      }
      const resolve = (values: readonly unknown[]): void => {
        onAnswer?.(values)
        answer.resolve(values)
      }
      write(serial)
      calls.set(serial, { resolve, reject: answer.reject, giveUp })
      const cancelTimer = clock.startTimer(timeoutMs, () => giveUp('timeout', `no answer within ${timeoutMs} ms`))
      const onAbort = () => giveUp('aborted', 'aborted before the answer', signal?.reason)
      signal?.addEventListener('abort', onAbort, { once: true })
      try {
        return await answer.promise
      } finally {
        cancelTimer()
        signal?.removeEventListener('abort', onAbort)
      }
    },

    isExpected({ type, replySerial = 0, bodyBytes }) {
      if (type !== messageType.methodReturn && type !== messageType.error) return false
      const call = calls.get(replySerial)
      if (call && bodyBytes > maxAnswerBytes)
        call.giveUp('unreadable', `its answer of ${bodyBytes} bytes is larger than ${maxAnswerBytes}`)
      return calls.has(replySerial) // not an answer after the timeout
    },

    settle(message) {
      const { type, replySerial = 0, errorName = 'org.freedesktop.DBus.Error.Failed' } = message.header
      const call = calls.get(replySerial)
      if (!call) return
      let values: readonly unknown[]
      try {
        values = decodeBody(message)
      } catch (error) {
        return call.giveUp('unreadable', `its answer cannot be read`, error)
      }
      calls.delete(replySerial)
      const [text] = values
      if (type === messageType.methodReturn) call.resolve(values)
      else call.reject(new BusError(errorName, typeof text === 'string' ? text : ''))
    },

    rejectAll(cause) {
      const message = `the connection to the system bus ended: ${cause.message}`
      for (const call of calls.values()) call.reject(new NoReplyError('connection-lost', message, { cause }))
      calls.clear()
    },
  }
}

export type BusSockets = {
  /** Of the system bus. */
  readonly bus: string
  /** systemd's own, for root. It needs no bus: systemd speaks D-Bus directly to its clients. */
  readonly systemd: string
}

/** Paths in a host's file system, below its root or its mount point. */
export const hostSockets = (root = ''): BusSockets => ({
  bus: `${root}/run/dbus/system_bus_socket`,
  systemd: `${root}/run/systemd/private`,
})

/**
 * The bus where there is one, even if it does not answer: systemd cannot replace named services such as logind.
 * `exists` says whether a path is there. Decided at each connect: a package may install a bus.
 */
export function chooseSocket(
  { bus, systemd }: BusSockets,
  exists: (path: string) => boolean,
): { readonly path: string; readonly isPeer: boolean } {
  const isPeer = !exists(bus) && exists(systemd)
  return { path: isPeer ? systemd : bus, isPeer }
}
