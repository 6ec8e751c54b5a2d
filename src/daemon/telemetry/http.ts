import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { Server, ServerResponse } from 'node:http'
import { dirname } from 'node:path'
import type { Registry } from '@prometheus-io/client'
import { healthSocket } from './probe.ts'

export type Health = { readonly live: () => string | undefined; readonly ready: () => string | undefined }

/** Answers `/live` and `/ready` on a unix socket; a check that returns a sentence is a 503 with it. */
export function serveHealth(health: Health, socket = healthSocket): Server {
  mkdirSync(dirname(socket), { recursive: true })
  rmSync(socket, { force: true })
  const server = createServer((incoming, answer) => {
    const check = incoming.url === '/live' ? health.live : incoming.url === '/ready' ? health.ready : undefined
    if (!check) return reply(answer, 404, 'no such check')
    const problem = check()
    return reply(answer, problem === undefined ? 200 : 503, problem ?? 'ok')
  })
  server.listen(socket, () => chmodSync(socket, 0o600))
  return server
}

/** Prometheus' text format on the node's own address. */
export function serveMetrics(registry: Registry, host: string, port: number, onError: (error: Error) => void): Server {
  const server = createServer((incoming, answer) => {
    if (incoming.url !== '/metrics') return reply(answer, 404, 'metrics are at /metrics')
    registry.metrics().then(
      (text) => {
        answer.setHeader('content-type', registry.contentType)
        answer.end(text)
      },
      (error: unknown) => reply(answer, 500, String(error)),
    )
  })
  server.on('error', onError)
  server.listen(port, host)
  return server
}

function reply(answer: ServerResponse, status: number, text: string): void {
  answer.statusCode = status
  answer.end(`${text}\n`)
}
