/** The dashboard's HTTP server: on loopback, for the one browser that has opened its link, read-only. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Random } from '../../schemas/clock.ts'
import { isObject, messageOf, parseJson } from '../../schemas/json.ts'
import { ApiError } from '../../kube/errors.ts'
import { CommandError, exitCodes, type ExitCode } from '../framework/command-error.ts'
import { createAccess, securityHeaders } from './access.ts'
import { createAudience } from './audience.ts'
import { openEventStream } from './event-stream.ts'
import page from './generated/page.json' with { type: 'json' }
import type { OutputPart, PageError, PageState } from './page-data.ts'
import { pageJson } from './page-json.ts'
import type { DashboardSource, NodeOfSkyhook } from './source.ts'

export type DashboardServer = {
  /** The link that works once. */
  readonly url: string
  /** Where it listens. */
  address(): AddressInfo
  /** Rejects when the data ends: with the reason of the signal, or with what broke. */
  readonly ended: Promise<never>
  /** Resolves when the port is free again. */
  close(): Promise<void>
}

/** Above the largest Skyhook that the API server takes. */
const maxBodyBytes = 2 * 1024 * 1024

const files: Readonly<Record<string, { readonly type: string; readonly text: string }>> = {
  '/': { type: 'text/html; charset=utf-8', text: page.html },
  '/page.css': { type: 'text/css; charset=utf-8', text: page.css },
  '/page.js': { type: 'text/javascript; charset=utf-8', text: page.script },
}

/** Listens on 127.0.0.1. `port` 0: any that is free. @throws Error of the system if the port is taken */
export async function startDashboardServer(options: {
  readonly source: DashboardSource
  readonly random: Random
  readonly signal: AbortSignal
  readonly port: number
}): Promise<DashboardServer> {
  const { source, random, port: requestedPort } = options
  const closing = new AbortController()
  const signal = AbortSignal.any([options.signal, closing.signal])
  const access = createAccess(random)
  const audience = createAudience(source.identity)
  let port = requestedPort

  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => replyError(response, error))
  })

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    for (const [name, value] of Object.entries(securityHeaders)) response.setHeader(name, value)
    const { method = '', headers } = request
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://localhost')
    const verdict = access.judge({ method, path: pathname, query, headers }, port)
    if (verdict.verdict === 'refused') {
      response.setHeader('connection', 'close')
      return reply(response, verdict.status, { error: verdict.message })
    }
    if (verdict.setCookie !== undefined) response.setHeader('set-cookie', verdict.setCookie)
    const { path } = verdict
    const file = files[path]
    if (method === 'POST') {
      if (path !== '/api/plan') return reply(response, 405, { error: 'the dashboard is read-only' })
      const body = parseJson(await readBody(request))
      const text = isObject(body) ? body['text'] : undefined
      if (typeof text !== 'string') return reply(response, 400, { error: 'expected {"text": "a Skyhook in YAML"}' })
      return reply(response, 200, await source.plan(text, signal))
    }
    if (file !== undefined) {
      response.setHeader('content-type', file.type)
      return void response.end(method === 'HEAD' ? '' : file.text)
    }
    switch (path) {
      case '/api/events': {
        const stream = openEventStream<PageState>(response, () => leave())
        const leave = audience.add(stream, query.get('skyhook') ?? undefined)
        return
      }
      case '/api/node':
        return reply(response, 200, await source.explain(nodeIn(query), signal))
      case '/api/output':
        return await sendOutput(nodeIn(query), response)
      case '/api/manifest':
        return reply(response, 200, { text: await source.manifest(required(query, 'skyhook'), signal) })
      default:
        return reply(response, 404, { error: `there is no ${path}` })
    }
  }

  async function sendOutput(of: NodeOfSkyhook, response: ServerResponse): Promise<void> {
    const leaving = new AbortController()
    const stream = openEventStream<OutputPart>(response, () => leaving.abort())
    try {
      await source.followOutput(of, stream.send, AbortSignal.any([signal, leaving.signal]))
    } catch (error) {
      if (!leaving.signal.aborted) stream.send({ note: messageOf(error) })
    }
    // it stays open: the browser would ask again
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(requestedPort, '127.0.0.1', resolve)
  })
  const address = server.address() as AddressInfo
  port = address.port
  const ended = source.follow((moment) => audience.show(moment), signal)
  ended.catch(() => {}) // a caller that closes first does not wait for it
  return {
    url: `http://127.0.0.1:${port}${access.link}`,
    address: () => address,
    ended,
    async close() {
      closing.abort(new Error('the dashboard is closed'))
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      })
    },
  }
}

function reply(response: ServerResponse, status: number, body: object): void {
  response.statusCode = status
  response.setHeader('content-type', 'application/json; charset=utf-8')
  response.end(pageJson(body))
}

function replyError(response: ServerResponse, error: unknown): void {
  if (response.headersSent) return void response.end()
  const remedy = error instanceof CommandError ? error.remedy : undefined
  const body: PageError = { error: messageOf(error), ...(remedy !== undefined && { remedy }) }
  reply(response, statusOf(error), body)
}

function statusOf(error: unknown): number {
  if (error instanceof ApiError) return error.status === 403 || error.status === 404 ? error.status : 502
  return (error instanceof CommandError ? statusByExitCode[error.exitCode] : undefined) ?? 502
}

const statusByExitCode: Partial<Record<ExitCode, number>> = {
  [exitCodes.notFound]: 404,
  [exitCodes.usage]: 400,
  [exitCodes.refused]: 403,
}

const nodeIn = (query: URLSearchParams): NodeOfSkyhook => ({
  skyhook: required(query, 'skyhook'),
  node: required(query, 'node'),
})

function required(query: URLSearchParams, name: string): string {
  const value = query.get(name)
  if (value === null || value === '') throw new CommandError(exitCodes.usage, `the address lacks ?${name}=`)
  return value
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > maxBodyBytes) throw new CommandError(exitCodes.usage, `a plan of more than ${maxBodyBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString('utf8')
}
