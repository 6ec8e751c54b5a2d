import type { Agent, ClientRequest, IncomingMessage, OutgoingHttpHeaders, RequestOptions } from 'node:http'
import type { Socket } from 'node:net'
import { StringDecoder } from 'node:string_decoder'
import { TLSSocket } from 'node:tls'
import { startWatchdog, type Clock } from '../schemas/clock.ts'
import { messageOf } from '../schemas/json.ts'
import { NoResponseError } from './errors.ts'

export type Requester = (options: RequestOptions) => ClientRequest

export type ExchangeRequest = {
  readonly method: string
  readonly hostname: string
  readonly port: string
  /** The path under which the server serves its API; '' for most. */
  readonly basePath: string
  readonly path: string
  readonly agent: Agent
  readonly headers: OutgoingHttpHeaders
}

export type ExchangeLimits = {
  readonly clock: Clock
  readonly signal?: AbortSignal | undefined
  readonly timeoutMs: number
}

/** After this silence the kernel probes for peers that died behind a firewall. */
const tcpKeepAliveMs = 30_000

/**
 * Sends one request and resolves with the response once its headers are there; any HTTP status counts as an answer.
 * Throws `NoResponseError` or the signal's reason, also while the request waits for a connection of the pool. An abort
 * after that destroys the response.
 */
export async function exchange(
  request: Requester,
  options: ExchangeRequest,
  limits: ExchangeLimits & { readonly body: string | undefined },
): Promise<IncomingMessage> {
  try {
    return await exchangeOnce(request, options, limits)
  } catch (error) {
    // The server closed a kept-alive connection just as we took it. A read may be repeated.
    if (error instanceof StaleConnectionError && options.method === 'GET')
      return await exchangeOnce(request, options, limits)
    throw error
  }
}

class StaleConnectionError extends NoResponseError {}

async function exchangeOnce(
  request: Requester,
  options: ExchangeRequest,
  limits: ExchangeLimits & { readonly body: string | undefined },
): Promise<IncomingMessage> {
  const { clock, signal, timeoutMs, body } = limits
  signal?.throwIfAborted()
  const name = `${options.method} ${options.path.split('?')[0]}`
  return await new Promise<IncomingMessage>((resolve, reject) => {
    const headers =
      body === undefined ? options.headers : { ...options.headers, 'content-length': Buffer.byteLength(body) }
    const outgoing = request({ ...options, path: `${options.basePath}${options.path}`, headers })
    let isConnected = false
    let isWaiting = true
    const giveUp = (why: Error): void => {
      outgoing.destroy(why)
      // Node reports it once the pool has a connection for it, which may be long after.
      if (isWaiting) fail(why)
    }
    const onAbort = (): void => giveUp(new Error('aborted'))
    const expire = (): void => giveUp(new Error(`no response headers within ${timeoutMs} ms`))
    const cancelTimeout = clock.startTimer(timeoutMs, expire)
    const fail = (cause: Error): void => {
      cancelTimeout()
      signal?.removeEventListener('abort', onAbort)
      if (signal?.aborted) return reject(abortReasonOf(signal))
      const isStale =
        outgoing.reusedSocket && 'code' in cause && (cause.code === 'ECONNRESET' || cause.code === 'EPIPE')
      const Failure = isStale ? StaleConnectionError : NoResponseError
      reject(new Failure(`${name}: ${cause.message}`, { mayHaveBeenSent: isConnected, cause }))
    }

    outgoing.on('socket', (socket) => {
      isWaiting = false
      whenConnected(socket, () => {
        isConnected = true
      })
      socket.setKeepAlive(true, tcpKeepAliveMs)
    })
    outgoing.on('response', (response) => {
      cancelTimeout()
      response.once('close', () => signal?.removeEventListener('abort', onAbort))
      // The reader of the body gets it; without a listener it would end the process in a gap between reads.
      response.on('error', () => {})
      resolve(response)
    })
    outgoing.on('error', fail)
    signal?.addEventListener('abort', onAbort, { once: true })
    outgoing.end(body)
  })
}

/** The whole body. Throws `NoResponseError` when it breaks off or stays silent, the signal's reason when aborted. */
export async function readText(
  response: IncomingMessage,
  { clock, signal, timeoutMs }: ExchangeLimits,
): Promise<string> {
  const onSilence = (): void => void response.destroy(new Error(`response body silent for ${timeoutMs} ms`))
  const watchdog = startWatchdog(clock, timeoutMs, onSilence)
  // Piece by piece: one buffer of megabytes beside its text would be twice the memory until V8 collects it.
  const decoder = new StringDecoder('utf8') // a character may be split between two chunks
  let text = ''
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      watchdog.reset()
      text += decoder.write(chunk)
    }
  } catch (cause) {
    signal?.throwIfAborted()
    throw new NoResponseError(`the response ended early: ${messageOf(cause)}`, { mayHaveBeenSent: true, cause })
  } finally {
    watchdog.stop()
  }
  return text + decoder.end()
}

/** No byte of a request leaves before the TCP, and with TLS the TLS handshake. */
function whenConnected(socket: Socket, onConnected: () => void): void {
  if (socket instanceof TLSSocket) {
    if (socket.getProtocol() !== null && !socket.connecting) onConnected()
    else socket.once('secureConnect', onConnected)
  } else if (socket.connecting) socket.once('connect', onConnected)
  else onConnected()
}

const abortReasonOf = (signal: AbortSignal): Error =>
  signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason))
