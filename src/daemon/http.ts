import { chmodSync, mkdirSync, rmSync } from 'node:fs'
import { createServer, request } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { dirname } from 'node:path'
import type { Registry } from '@prometheus-io/client'

/** Health is asked for by the agent's own binary over this socket in its container: no port on the host's network for it. */
export const healthSocket = '/tmp/skyhookd-health.sock'

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

/** The probe: asks the running agent and returns the exit code; what is wrong goes to stderr. */
export async function probe(check: 'live' | 'ready', socket = healthSocket): Promise<number> {
  try {
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      request({ socketPath: socket, path: `/${check}`, timeout: 3_000 }, resolve)
        .on('timeout', function (this: { destroy(error: Error): void }) {
          this.destroy(new Error('no answer within 3 s'))
        })
        .on('error', reject)
        .end()
    })
    let text = ''
    for await (const chunk of answer) text += String(chunk)
    if (answer.statusCode === 200) return 0
    process.stderr.write(text)
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
  }
  return 1
}
