import { createServer, type RequestListener, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../../schemas/clock.ts'

/** The source of the metrics. */
export type MetricsRegistry = { readonly contentType: string; metrics(): Promise<string> }

/** Each returns the problem, or undefined. */
export type HealthChecks = { readonly live: () => string | undefined; readonly ready: () => string | undefined }

export type LocalServer = {
  /** Undefined until the server listens. */
  readonly port: () => number | undefined
  readonly close: () => void
}

export type ListenOptions = {
  readonly port: number
  readonly clock: Clock
  /**
   * The server cannot listen, most likely because the port is taken. It tries again, and reports the same error once.
   */
  readonly onError: (error: NodeJS.ErrnoException) => void
  /** The server listens after an error. */
  readonly onRecovered: () => void
}

/**
 * Connections of one server. The kubelet and a scraper need one each. Other programs on the host can only fill the
 * rest.
 */
export const maxConnections = 16
/** From the connection to the last byte of the response. */
export const requestTimeoutMs = 5_000
export const retryListenMs = 5_000

/**
 * Answers `/livez` and `/readyz` on loopback: only the kubelet needs it, and runs on the same host. If a check returns
 * a sentence, the response is a 503 with that sentence.
 */
export function serveHealth(checks: HealthChecks, options: ListenOptions): LocalServer {
  return serve({ ...options, host: '127.0.0.1' }, (request, response) => {
    const check = request.url === '/livez' ? checks.live : request.url === '/readyz' ? checks.ready : undefined
    if (!check) return reply(response, 404, 'no such check')
    const problem = check()
    return reply(response, problem === undefined ? 200 : 503, problem ?? 'ok')
  })
}

/** Serves the text format of Prometheus on the node's own address. */
export function serveMetrics(
  registry: MetricsRegistry,
  options: ListenOptions & { readonly host: string },
): LocalServer {
  return serve(options, (request, response) => {
    if (request.url !== '/metrics') return reply(response, 404, 'metrics are at /metrics')
    registry.metrics().then(
      (text) => {
        response.setHeader('content-type', registry.contentType)
        response.end(text)
      },
      (error: unknown) => reply(response, 500, String(error)),
    )
  })
}

/**
 * One request per connection, in bounded time, on a bounded number of connections. Beyond the limit the oldest
 * connection is closed, not the new one: a client that keeps connections open must not lock out the kubelet.
 */
function serve(
  { host, port, clock, onError, onRecovered }: ListenOptions & { readonly host: string },
  answer: RequestListener,
): LocalServer {
  const open = new Set<Socket>() // oldest first
  let cancelRetry = (): void => {}
  let isClosed = false
  const server = createServer(
    // the timer of each connection replaces these
    { headersTimeout: 0, requestTimeout: 0, connectionsCheckingInterval: 3_600_000 },
    answer,
  )
  server.maxRequestsPerSocket = 1
  server.on('connection', (socket: Socket) => {
    const cancel = clock.startTimer(requestTimeoutMs, () => socket.destroy(), { isBackground: true })
    open.add(socket)
    socket.on('close', () => {
      cancel()
      open.delete(socket)
    })
    const [oldest] = open
    if (open.size <= maxConnections || oldest === undefined) return
    open.delete(oldest)
    oldest.destroy()
  })
  const listen = (): void => void server.listen(port, host)
  let lastCode: string | undefined
  server.on('listening', () => {
    if (lastCode !== undefined) onRecovered()
    lastCode = undefined
  })
  server.on('error', (error: NodeJS.ErrnoException) => {
    const code = error.code ?? 'unknown'
    if (code !== lastCode) onError(error)
    lastCode = code
    if (!isClosed) cancelRetry = clock.startTimer(retryListenMs, listen, { isBackground: true })
  })
  listen()
  return {
    port: () => {
      const address = server.address()
      return typeof address === 'object' ? address?.port : undefined
    },
    close() {
      isClosed = true
      cancelRetry()
      server.close()
      for (const socket of open) socket.destroy()
    },
  }
}

function reply(response: ServerResponse, status: number, text: string): void {
  response.statusCode = status
  response.end(`${text}\n`)
}
