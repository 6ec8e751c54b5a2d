import { createHash } from 'node:crypto'
import { Agent as HttpAgent, type IncomingHttpHeaders, type IncomingMessage, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import type { Readable } from 'node:stream'
import { createSecureContext, type SecureContext } from 'node:tls'
import { type Clock, startInterval } from '../../../schemas/clock.ts'
import { messageOf } from '../../../schemas/json.ts'
import { ImageError, systemCode } from '../errors.ts'

export type RegistryRequest = {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PUT'
  readonly url: URL
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly trust: Trust
  /** A stream may take any time; everything else is subject to the limits below. */
  readonly body?: Buffer | (() => Readable)
  /** The response is large: its pace is limited, not its time. */
  readonly isLarge?: boolean
}

export type RegistryResponse = {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  /** Where the answer came from, after redirects. */
  readonly url: URL
  /** Must be read to its end or destroyed, otherwise the connection stays in use. */
  readonly body: IncomingMessage
}

/**
 * The environment variables of a proxy, as Node's agents read them: HTTPS_PROXY, HTTP_PROXY, NO_PROXY and their
 * lower-case forms.
 */
export type ProxyEnvironment = Readonly<Record<string, string | undefined>>

export type RegistryTransport = {
  /**
   * Sends one request and follows redirects of GET and HEAD. Resolves with a response of any status.
   * @throws ImageError unreachable, tls or bad-response; the signal's reason when aborted
   */
  send(exchange: RegistryRequest, signal: AbortSignal): Promise<RegistryResponse>
  close(): void
}

const maxRedirects = 5 // a storage back end needs one, a proxy before it another
const maxSocketsPerHost = 4
const defaultNoProgressMs = 20_000 // connecting, or between two bytes
/** A registry that has received a blob answers only after it has hashed the blob and moved it to its storage. */
const storingMs = 300_000

/**
 * HTTP/1.1 over Node's own client with keep-alive connections. Close it when the pull is over: nothing else ends idle
 * connections.
 */
export function createRegistryTransport(
  {
    proxy,
    noProgressMs = defaultNoProgressMs,
  }: {
    readonly proxy?: ProxyEnvironment
    readonly noProgressMs?: number
  },
  clock: Clock,
): RegistryTransport {
  const shared = { keepAlive: true, maxSockets: maxSocketsPerHost, ...(proxy && { proxyEnv: { ...proxy } }) }
  const plainAgent = new HttpAgent(shared)
  const secureAgents = new Map<Trust, HttpsAgent>()

  const agentFor = (url: URL, trust: Trust): HttpAgent | HttpsAgent => {
    if (url.protocol === 'http:') return plainAgent
    let agent = secureAgents.get(trust)
    if (agent === undefined) {
      agent = new HttpsAgent({
        ...shared,
        rejectUnauthorized: !trust.skipVerify,
        secureContext: secureContextOf(trust),
      })
      secureAgents.set(trust, agent)
    }
    return agent
  }

  const sendOnce = (
    { method, url, headers, trust, body: payload }: RegistryRequest,
    signal: AbortSignal,
  ): Promise<RegistryResponse> =>
    new Promise((resolve, reject) => {
      const open = url.protocol === 'http:' ? httpRequest : httpsRequest
      let body: IncomingMessage | undefined
      let silenceMs = noProgressMs
      const request = open(url, {
        method,
        headers: toWritableHeaders(headers),
        agent: agentFor(url, trust),
        signal,
        timeout: silenceMs,
      })
      request.on('response', (response) => {
        body = response
        resolve({ status: response.statusCode ?? 0, headers: response.headers, url, body: response })
      })
      request.on('timeout', () =>
        (body ?? request).destroy(new ImageError('unreachable', `${url.host}: silent for ${silenceMs} ms`)),
      )
      request.on('error', (error) => reject(connectionError(error, url, signal)))
      if (typeof payload === 'function') {
        const source = payload()
        source.on('error', (error) => request.destroy(error))
        request.on('finish', () => request.setTimeout((silenceMs = storingMs)))
        request.on('close', () => source.destroy()) // a registry may refuse the request before it has read all of it
        source.pipe(request)
      } else {
        request.end(payload)
      }
    })

  const followRedirects = async (exchange: RegistryRequest, signal: AbortSignal): Promise<RegistryResponse> => {
    let { url, headers } = exchange
    for (let hop = 0; hop <= maxRedirects; hop++) {
      const answer = await sendOnce({ ...exchange, url, headers }, signal)
      const target = redirectTarget(answer, exchange.method)
      if (target === undefined) return answer
      answer.body.resume()
      if (url.protocol === 'https:' && target.protocol !== 'https:') {
        throw new ImageError(
          'bad-response',
          `${url.host}: redirects from https to ${target.origin}, which is not followed`,
        )
      }
      if (target.host !== url.host) headers = stripCredentials(headers)
      url = target
    }
    throw new ImageError('bad-response', `${exchange.url.host}: more than ${maxRedirects} redirects`)
  }

  return {
    async send(exchange, signal) {
      signal.throwIfAborted()
      if (typeof exchange.body === 'function') return await followRedirects(exchange, signal)
      const deadlineMs = clock.monotonicMs() + requestTimeoutMs
      const response = await withinRequestTimeout(clock, exchange.url.host, signal, async (limitedSignal) =>
        followRedirects(exchange, limitedSignal),
      )
      const { body, url } = response
      if (exchange.isLarge === true) limitBodyPace(clock, body, url.host)
      else limitBodyTime(clock, body, url.host, deadlineMs)
      return response
    },
    close() {
      plainAgent.destroy()
      for (const agent of secureAgents.values()) agent.destroy()
    },
  }
}

/**
 * Classifies an error of a connection: `tls`, `unreachable`, or the caller's reason to abort. Returns ImageErrors and
 * errors of the disk unchanged.
 */
export function connectionError(error: unknown, url: URL, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason
  const code = systemCode(error) ?? ''
  if (error instanceof ImageError || isDiskError(error, code)) return error
  const message = isLookup(error) ? `the name does not resolve (${code})` : withoutNodeHint(messageOf(error))
  if (tlsErrorPattern.test(code)) return new ImageError('tls', `${url.host}: ${message} (${code})`, { cause: error })
  return new ImageError('unreachable', `${url.host}: ${message || code}`, { cause: error })
}

/** Node's message has host and code twice. */
const isLookup = (error: unknown): boolean =>
  error instanceof Error && 'syscall' in error && error.syscall === 'getaddrinfo'

/** Node's hint about its start options is useless to people who do not start Node themselves. */
const withoutNodeHint = (message: string): string => message.replace(/; if the root CA is installed locally,.*$/s, '')

const tlsErrorPattern =
  /^(?:ERR_TLS|ERR_SSL|ERR_OSSL|EPROTO|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO|SELF_SIGNED|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH|HOSTNAME_MISMATCH)/

const diskErrorPattern = /^(?:ENOSPC|EDQUOT|EROFS|EIO|EFBIG|EACCES|EPERM|ENOENT|EISDIR|ENOTDIR|EMFILE|ENFILE)$/

/** `connect` fails with EACCES or EPERM behind a firewall: that is not an error of the disk. */
function isDiskError(error: unknown, code: string): boolean {
  const call = error instanceof Error && 'syscall' in error ? error.syscall : undefined
  return diskErrorPattern.test(code) && call !== 'connect' && call !== 'getaddrinfo'
}

function redirectTarget(
  { status, headers, url }: RegistryResponse,
  method: RegistryRequest['method'],
): URL | undefined {
  if (![301, 302, 303, 307, 308].includes(status) || (method !== 'GET' && method !== 'HEAD')) return undefined
  const target = headers.location === undefined ? null : URL.parse(headers.location, url.href)
  if (target === null || !/^https?:$/.test(target.protocol))
    throw new ImageError('bad-response', `${url.host}: redirects without a usable Location`)
  return target
}

/**
 * Headers for one host must not reach another: the login and what an administrator configured for the
 * mirror.
 */
function stripCredentials(headers: RegistryRequest['headers']): RegistryRequest['headers'] {
  const safeHeaders = ['accept', 'range', 'user-agent']
  return Object.fromEntries(Object.entries(headers).filter(([name]) => safeHeaders.includes(name.toLowerCase())))
}

function toWritableHeaders(headers: RegistryRequest['headers']): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === 'string' ? value : [...value]]),
  )
}

/**
 * Limits the total time of a registry's answer: a registry that sends single bytes never reaches the limit for silence.
 */

/** For one request with its redirects, and with its response unless that can be of any size. */
const requestTimeoutMs = 30_000
/** The minimum pace of a body of any size. */
export const minBytesPerSecond = 10 * 1024
const paceWindowMs = 60_000
const paceSampleMs = 10_000
/** The connection keeps the process alive while there is something to limit. */
const background = { isBackground: true }

/** Runs a request up to the headers of its response, with a signal that aborts when the request takes too long. */
async function withinRequestTimeout<T>(
  clock: Clock,
  host: string,
  signal: AbortSignal,
  request: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController()
  const cancel = clock.startTimer(requestTimeoutMs, () => late.abort(tooLate(host)), background)
  try {
    return await request(AbortSignal.any([signal, late.signal]))
  } finally {
    cancel()
  }
}

/** Destroys a body that is incomplete when the time of its request is over. */
function limitBodyTime(clock: Clock, body: IncomingMessage, host: string, deadlineMs: number): void {
  const cancel = clock.startTimer(deadlineMs - clock.monotonicMs(), () => body.destroy(tooLate(host)), background)
  body.once('close', cancel)
}

/** Destroys a body that arrives at less than 10 KiB/s for a minute. */
function limitBodyPace(clock: Clock, body: IncomingMessage, host: string): void {
  const received = [body.socket.bytesRead]
  const stop = startInterval(
    clock,
    paceSampleMs,
    () => {
      received.push(body.socket.bytesRead)
      if (received.length <= paceWindowMs / paceSampleMs) return
      const [oldest = 0] = received.splice(0, 1)
      const bytes = body.socket.bytesRead - oldest
      if (bytes < (minBytesPerSecond * paceWindowMs) / 1000)
        body.destroy(new ImageError('unreachable', `${host}: only ${bytes} bytes in ${paceWindowMs / 1000} s`))
    },
    background,
  )
  body.once('close', stop)
}

const tooLate = (host: string): ImageError =>
  new ImageError('unreachable', `${host}: no complete answer within ${requestTimeoutMs / 1000} s`)

/** The authorities that a TLS peer's certificate must come from. */
export type Trust = {
  /** PEM bundles; empty means Node's own roots. */
  readonly ca: readonly string[]
  readonly skipVerify: boolean
  /** The certificates for a peer that requests one; PEM. */
  readonly client?: readonly { readonly cert: string; readonly key: string }[]
}

const contexts = new Map<string, SecureContext>()
const maxContexts = 8 // a host's registries and mirrors; each holds 1.5 MB of parsed authorities

/**
 * The parsed form of a trust, shared by all connections with equal trust. Parsing a distribution's bundle takes 30 ms,
 * and memory that V8 does not count and therefore does not collect in time: with a context per pull, the agent grew by
 * 70 MB over a hundred pulls.
 */
function secureContextOf({ ca, client = [] }: Trust): SecureContext {
  const key = createHash('sha256')
    .update(JSON.stringify([ca, client]))
    .digest('hex')
  const context =
    contexts.get(key) ??
    createSecureContext({
      ...(ca.length > 0 && { ca: [...ca] }),
      ...(client.length > 0 && { cert: client.map(({ cert }) => cert), key: client.map((pair) => pair.key) }),
    })
  contexts.delete(key)
  contexts.set(key, context) // the most recently used is last
  const [oldest] = contexts.keys()
  if (contexts.size > maxContexts && oldest !== undefined) contexts.delete(oldest)
  return context
}
