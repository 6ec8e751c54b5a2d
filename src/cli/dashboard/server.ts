/** The dashboard's HTTP server: on loopback, for the one browser that has opened its link, read-only. */
import { createServer, type IncomingMessage, type ServerResponse, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Random } from '../../schemas/clock.ts'
import { isObject, messageOf, parseJson } from '../../schemas/json.ts'
import { ApiError } from '../../kube/errors.ts'
import { CommandError, exitCodes, type ExitCode } from '../base/framework/command-error.ts'
import { createAudience, openEventStream, pageJson } from './audience.ts'
import page from './generated/page.json' with { type: 'json' }
import type { OutputPart, PageError, PageState, DashboardSource, NodeOfSkyhook } from './page-data.ts'
import { timingSafeEqual } from 'node:crypto'

type DashboardServer = {
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

/**
 * Who may talk to the dashboard. It listens on loopback, where every program and every web page of this machine can
 * knock: a page may resolve a name of its own to 127.0.0.1 (so the Host is checked), or send requests from elsewhere
 * (so the Origin is). A link with a token works once and turns into a cookie that scripts cannot read.
 *
 * Browsers send the cookies of a host to all its ports, and another user of this machine may serve one. So everything
 * is in a folder whose name only the link says: a cookie of the folder goes to no page that is not in it.
 */
type AccessRequest = {
  readonly method: string
  /** As the browser asked for it. */
  readonly path: string
  readonly query: URLSearchParams
  readonly headers: IncomingHttpHeaders
}

type Verdict =
  /** `path`: within the folder, beginning with a slash. */
  | { readonly verdict: 'allowed'; readonly path: string; readonly setCookie?: string }
  | { readonly verdict: 'refused'; readonly status: number; readonly message: string }

type Access = {
  /** Path and query of the link that the person opens. */
  readonly link: string
  judge(request: AccessRequest, port: number): Verdict
}

/** Read-only; a plan is computed from what the page sends, and changes nothing. */
const allowedMethods: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST'])
const secretBytes = 32
const folderBytes = 16

function createAccess(random: Random): Access {
  const token = random.hex(secretBytes)
  const session = random.hex(secretBytes)
  const folder = `/${random.hex(folderBytes)}`
  let isUsed = false

  function judge({ method, path, query, headers }: AccessRequest, port: number): Verdict {
    const refused = (status: number, message: string): Verdict => ({ verdict: 'refused', status, message })
    const hosts = [`127.0.0.1:${port}`, `localhost:${port}`]
    if (!hosts.includes(headers.host ?? '')) return refused(403, 'this Host is not the dashboard')
    if (!allowedMethods.has(method)) return refused(405, 'the dashboard is read-only')
    const { origin } = headers
    if (origin !== undefined && origin !== `http://${headers.host}`)
      return refused(403, 'pages of other origins may not use the dashboard')
    if (method === 'POST' && origin === undefined) return refused(403, 'a POST has to come from the dashboard itself')
    const inFolder = path.startsWith(`${folder}/`) ? path.slice(folder.length) : undefined
    const given = query.get('token')
    if (inFolder === '/' && method === 'GET' && given !== null) {
      if (isUsed || !isSame(given, token))
        return refused(
          401,
          'this link has been used, or is not of this dashboard: start kubectl skyhook dashboard again',
        )
      isUsed = true
      const setCookie = `${cookieName(port)}=${session}; HttpOnly; SameSite=Strict; Path=${folder}/`
      return { verdict: 'allowed', path: inFolder, setCookie }
    }
    const site = headers['sec-fetch-site']
    if (site !== undefined && site !== 'same-origin' && site !== 'none')
      return refused(403, 'pages of other origins may not use the dashboard')
    if (inFolder === undefined || !isSame(cookieOf(headers.cookie, port) ?? '', session))
      return refused(401, 'open the link that kubectl skyhook dashboard has printed')
    return { verdict: 'allowed', path: inFolder }
  }

  return { link: `${folder}/?token=${token}`, judge }
}

const cookieName = (port: number): string => `skyhook-dashboard-${port}`

function cookieOf(header: string | undefined, port: number): string | undefined {
  const start = `${cookieName(port)}=`
  const found = header?.split('; ').find((pair) => pair.startsWith(start))
  return found?.slice(start.length)
}

/** In a time that does not tell how much of it is right. */
function isSame(given: string, expected: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(expected)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Of every response. Scripts and styles come from this server alone, and text never becomes markup. */
const securityHeaders: Readonly<Record<string, string>> = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "connect-src 'self'",
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; '),
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
}
