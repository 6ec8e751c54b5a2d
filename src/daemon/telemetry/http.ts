import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { dirname } from 'node:path'
import { healthSocket } from './probe.ts'

/** The source of the metrics. */
export type MetricsRegistry = { readonly contentType: string; metrics(): Promise<string> }

export type HealthChecks = { readonly live: () => string | undefined; readonly ready: () => string | undefined }

/** Answers `/live` and `/ready` on a unix socket; a check that returns a sentence is a 503 with it. */
export function serveHealth(health: HealthChecks, socket = healthSocket): Server {
  mkdirSync(dirname(socket), { recursive: true })
  rmSync(socket, { force: true })
  const server = createServer((request, response) => {
    const check = request.url === '/live' ? health.live : request.url === '/ready' ? health.ready : undefined
    if (!check) return reply(response, 404, 'no such check')
    const problem = check()
    return reply(response, problem === undefined ? 200 : 503, problem ?? 'ok')
  })
  server.listen(socket, () => chmodSync(socket, 0o600))
  return server
}

/** Serves the text format of Prometheus on the node's own address. */
export function serveMetrics(
  registry: MetricsRegistry,
  host: string,
  port: number,
  onError: (error: Error) => void,
): Server {
  const server = createServer((request, response) => {
    if (request.url !== '/metrics') return reply(response, 404, 'metrics are at /metrics')
    registry.metrics().then(
      (text) => {
        response.setHeader('content-type', registry.contentType)
        response.end(text)
      },
      (error: unknown) => reply(response, 500, String(error)),
    )
  })
  server.on('error', onError)
  server.listen(port, host)
  return server
}

function reply(response: ServerResponse, status: number, text: string): void {
  response.statusCode = status
  response.end(`${text}\n`)
}
