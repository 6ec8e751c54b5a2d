import * as http from 'node:http'
import * as https from 'node:https'
import { createSecureContext } from 'node:tls'
import { type Clock, sleep } from '../schemas/clock.ts'
import type { Credentials, Identity } from './credentials.ts'
import { apiErrorFrom, isUnauthorized, NoResponseError } from './errors.ts'
import { type ExchangeLimits, exchange, readText } from './exchange.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
export type Query = Readonly<Record<string, string | number | boolean | undefined>>

export type KubeRequestOptions = {
  readonly query?: Query | undefined
  readonly body?: unknown
  readonly contentType?: PatchType | 'application/json' | undefined
  readonly accept?: string | undefined
  /** Instead of those of the credentials, such as whom to impersonate for this request. */
  readonly headers?: Identity['headers']
  readonly signal?: AbortSignal | undefined
  /** The longest silence: until the response's headers, and then between two pieces of its body. */
  readonly timeoutMs?: number | undefined
  /** The connection pool to use; default `calls`. */
  readonly pool?: 'calls' | 'evictions' | undefined
}

export type PatchType =
  | 'application/merge-patch+json'
  | 'application/strategic-merge-patch+json'
  | 'application/json-patch+json'

export type ByteStream = AsyncIterable<Uint8Array> & { destroy(error?: Error): unknown }

/** One finished exchange, for metrics. `code` 0 = no answer; a watch counts when its headers have come. */
export type CompletedRequest = {
  readonly verb: Method | 'WATCH'
  readonly path: string
  readonly code: number
  readonly durationMs: number
}

/** The agent's access to the API server. Objects pass through as plain JSON. */
export type KubeTransport = {
  /**
   * One request and its JSON answer. Throws `ApiError`, `NoResponseError`, or the signal's reason. Repeats nothing but
   * a 401 and a read whose kept-alive connection had died.
   */
  json<T>(method: Method, path: string, options?: KubeRequestOptions): Promise<T>
  /** Opens a GET with an endless body (a watch) on a connection outside the calls' pool. The caller destroys it. */
  stream(path: string, options?: Omit<KubeRequestOptions, 'body' | 'contentType'>): Promise<ByteStream>
  /** Closes all connections, those in use too. */
  close(): void
}

export type KubeTransportOptions = {
  readonly credentials: Credentials
  readonly version: string
  /** The longest silence of requests that do not set their own; default 30 s. */
  readonly defaultTimeoutMs?: number
  /** The field manager that the server records; default `skyhookd`. */
  readonly program?: string
  readonly clock: Clock
  readonly onRequest?: (request: CompletedRequest) => void
  /** A guard against our own loops, far above what a node ever needs; `false` switches it off. */
  readonly rate?: { readonly perSecond: number; readonly burst: number } | false
}

const initialTimeoutMs = 30_000
/** Enough for the loop's own calls, few enough for 5,000 agents at one API server. */
const maxCallSockets = 8
/** As many as one node evicts at a time; open only during a drain. */
const maxEvictionSockets = 10
/** Go's servers close idle connections after 90 s or more: we do so first, and no write meets a closing connection. */
const idleSocketTimeoutMs = 60_000

/**
 * HTTP/1.1 on kept-alive connections. HTTP/2 is left out on purpose: Node's client has shown unbounded memory under
 * long watches. No compression: answers are small, and the server would not compress them anyway.
 */
export function createKubeTransport(options: KubeTransportOptions): KubeTransport {
  const { credentials, version, program = 'skyhookd', clock, onRequest } = options
  const { rate = { perSecond: 50, burst: 200 }, defaultTimeoutMs = initialTimeoutMs } = options
  const baseUrl = new URL(credentials.server)
  const bucket = rate === false ? undefined : createTokenBucket(rate.perSecond, rate.burst)
  let pools: ConnectionPools | undefined

  const limitsOf = ({ signal, timeoutMs = defaultTimeoutMs }: KubeRequestOptions): ExchangeLimits => ({
    clock,
    signal,
    timeoutMs,
  })
  const poolsFor = (identity: Identity): ConnectionPools => {
    if (pools?.tlsRevision === identity.tlsRevision) return pools
    pools?.closeIdle()
    pools = createConnectionPools(baseUrl.protocol === 'http:', identity)
    return pools
  }

  const attempt = async (call: Call, forceRefresh: boolean): Promise<http.IncomingMessage> => {
    const { method, path, query, body, signal, isStream = false } = call
    const waitMs = bucket?.take(clock.monotonicMs()) ?? 0
    if (waitMs > 0) await sleep(clock, waitMs, signal)
    signal?.throwIfAborted()
    const identity = await credentials.current({ forceRefresh })
    const pool = poolsFor(identity)
    const startedAtMs = clock.monotonicMs()
    const reportCode = (code: number): void =>
      onRequest?.({ verb: isStream ? 'WATCH' : method, path, code, durationMs: clock.monotonicMs() - startedAtMs })
    try {
      const response = await exchange(
        pool.request,
        {
          method,
          hostname: baseUrl.hostname.replace(/^\[|\]$/g, ''),
          port: baseUrl.port,
          basePath: baseUrl.pathname.replace(/\/+$/, ''),
          path: `${path}${queryString(query)}`,
          agent: isStream ? pool.streams : pool[call.pool ?? 'calls'],
          headers: headersOf(call, identity, `${program}/${version}`),
        },
        { ...limitsOf(call), body: body === undefined ? undefined : JSON.stringify(body) },
      )
      const code = response.statusCode ?? 0
      reportCode(code)
      if (code < 300) return response
      // a body that breaks off does not change the refusal
      const text = await readText(response, limitsOf(call)).catch(() => '')
      throw apiErrorFrom(code, response.headers['retry-after'], text, `${method} ${path}`)
    } catch (error) {
      if (error instanceof NoResponseError) reportCode(0)
      throw error
    }
  }

  const open = async (call: Call): Promise<http.IncomingMessage> => {
    try {
      return await attempt(call, false)
    } catch (error) {
      // Authentication comes first: a request answered with 401 has done nothing and may be repeated.
      if (credentials.isRenewable && (isUnauthorized(error) || isUntrusted(error))) return await attempt(call, true)
      throw error
    }
  }

  return {
    async json<T>(method: Method, path: string, request: KubeRequestOptions = {}): Promise<T> {
      const text = await readText(await open({ ...request, method, path }), limitsOf(request))
      try {
        return JSON.parse(text) as T
      } catch (cause) {
        const message = `the response to ${method} ${path} is not JSON`
        throw new NoResponseError(message, { mayHaveBeenSent: true, cause })
      }
    },
    stream: (path, request) => open({ ...request, method: 'GET', path, isStream: true }),
    close: () => pools?.destroy(),
  }
}

/**
 * The same API server for evictions: an admission webhook may hold each for half a minute, so they take connections of
 * their own, and no renewal of a Lease or write of the Node waits for them.
 */
export const forEvictions = (transport: KubeTransport): KubeTransport => ({
  ...transport,
  json: (method, path, options) => transport.json(method, path, { ...options, pool: 'evictions' }),
})

type Call = KubeRequestOptions & { readonly method: Method; readonly path: string; readonly isStream?: boolean }

type ConnectionPools = {
  readonly tlsRevision: number
  readonly request: typeof http.request
  readonly calls: http.Agent
  readonly evictions: http.Agent
  readonly streams: http.Agent
  closeIdle(): void
  destroy(): void
}

function createConnectionPools(isPlain: boolean, identity: Identity): ConnectionPools {
  const keepAliveOptions = { keepAlive: true, scheduling: 'lifo', timeout: idleSocketTimeoutMs } as const
  // One parsed context for all connections: parsing the CA for each costs CPU and memory.
  const tls = isPlain
    ? {}
    : {
        secureContext: createSecureContext({ ca: identity.ca, cert: identity.cert, key: identity.key }),
        ...(identity.servername !== undefined && { servername: identity.servername }),
        ...(identity.isServerUnchecked && { rejectUnauthorized: false }),
      }
  const createAgent = (limits: http.AgentOptions): http.Agent =>
    isPlain
      ? new http.Agent({ ...keepAliveOptions, ...limits })
      : new https.Agent({ ...keepAliveOptions, ...limits, ...tls })
  const calls = identity.agents?.calls ?? createAgent({ maxSockets: maxCallSockets })
  const evictions = identity.agents?.calls ?? createAgent({ maxSockets: maxEvictionSockets })
  const streams = identity.agents?.streams ?? createAgent({})
  const agents = [calls, evictions, streams]
  return {
    tlsRevision: identity.tlsRevision,
    request: isPlain ? http.request : https.request,
    calls,
    evictions,
    streams,
    // Requests in flight complete; only idle sockets are closed.
    closeIdle() {
      for (const agent of agents)
        for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy()
    },
    destroy() {
      for (const agent of agents) agent.destroy()
    },
  }
}

function headersOf(
  { accept, body, contentType, headers: ofCall }: Call,
  { token, headers }: Identity,
  userAgent: string,
): http.OutgoingHttpHeaders {
  return {
    accept: accept ?? 'application/json',
    'user-agent': userAgent,
    ...(body === undefined ? {} : { 'content-type': contentType ?? 'application/json' }),
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(headers as http.OutgoingHttpHeaders | undefined),
    ...(ofCall as http.OutgoingHttpHeaders | undefined),
  }
}

function queryString(query: Query | undefined): string {
  const pairs = Object.entries(query ?? {}).filter(([, value]) => value !== undefined)
  if (pairs.length === 0) return ''
  return `?${pairs.map(([key, value]) => `${key}=${encodeURIComponent(String(value))}`).join('&')}`
}

/** The server's certificate is not signed by the CA we know: after a rotation the file already holds the new one. */
function isUntrusted(error: unknown): boolean {
  const cause = error instanceof NoResponseError ? error.cause : undefined
  return cause instanceof Error && 'code' in cause && /CERT|SIGNATURE|ISSUER/.test(String(cause.code))
}

/** A token bucket: `burst` at once, then `perSecond`. */
type TokenBucket = {
  /** Takes one token and returns how many ms the caller has to wait for it. `nowMs` is monotonic. */
  take(nowMs: number): number
}

export function createTokenBucket(perSecond: number, burst: number): TokenBucket {
  let tokens = burst
  let lastRefillMs: number | undefined
  return {
    take(nowMs) {
      if (lastRefillMs !== undefined) tokens = Math.min(burst, tokens + ((nowMs - lastRefillMs) / 1000) * perSecond)
      lastRefillMs = nowMs
      tokens -= 1
      return tokens >= 0 ? 0 : (-tokens / perSecond) * 1000
    },
  }
}
