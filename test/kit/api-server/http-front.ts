/** The simulated API server behind a loopback port, for clients that have sockets, and for what sockets do to them. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Clock, Random } from '../../../src/schemas/clock.ts'
import { type Edits, editsOf } from './edits.ts'
import type { Fault } from './faults.ts'
import { type SimRequest, routedRequest } from './request.ts'
import { locate } from './resources.ts'
import { createSimulatedApiServer, type SimulatedApiServer } from './server.ts'
import type { SimStream } from './stream.ts'

export type HttpRequest = SimRequest & { readonly headers: IncomingMessage['headers'] }
/** `cut-answer`: its body ends in the middle, before the request takes effect. */
type HttpFault = Fault | { readonly kind: 'cut-answer' }

export type HttpFront = Edits & {
  readonly url: string
  readonly simulated: SimulatedApiServer
  /** Oldest first. */
  readonly requests: readonly HttpRequest[]
  /** For the next requests that match. Of the simulated server's faults, those that end or delay an answer. */
  fault(matches: (request: HttpRequest) => boolean, fault: HttpFault, times?: number): void
  connections(): number
  stop(): Promise<void>
}

export async function startHttpFront(options: { readonly clock: Clock; readonly random: Random }): Promise<HttpFront> {
  const server = createSimulatedApiServer(options)
  const faults: { matches: (request: HttpRequest) => boolean; fault: HttpFault; times: number }[] = []
  const requests: HttpRequest[] = []
  const sockets = new Set<Socket>()

  const handle = (request: HttpRequest, response: ServerResponse, fault: Fault | undefined): void => {
    const isServed = locate(request.path) !== undefined
    const served = !isServed
      ? { code: 404, body: '404 page not found\n' }
      : routedRequest(request).verb === 'watch'
        ? server.open(request, fault)
        : server.handle(request, fault)
    if (fault?.kind === 'lose-answer') return void response.socket?.destroy()
    if (!('code' in served)) return void pipe(served, response)
    if (served.retryAfterSeconds !== undefined) response.setHeader('retry-after', String(served.retryAfterSeconds))
    response.writeHead(served.code, { 'content-type': 'application/json' })
    response.end(typeof served.body === 'string' ? served.body : JSON.stringify(served.body))
  }

  const disturb = (request: HttpRequest, response: ServerResponse, fault: HttpFault | undefined): void => {
    if (fault?.kind === 'silent') return
    if (fault?.kind === 'lose-request') return void response.socket?.destroy()
    if (fault?.kind === 'slow')
      return void options.clock.startTimer(fault.byMs, () => handle(request, response, undefined))
    if (fault?.kind !== 'cut-answer') return handle(request, response, fault)
    response.writeHead(200, { 'content-length': '1000' })
    response.write('{"kind":', () => response.socket?.destroy())
  }

  const http = createServer((incoming, response) => {
    void readRequest(incoming).then((request) => {
      requests.push(request)
      const hit = faults.find(({ matches, times }) => times > 0 && matches(request))
      if (hit) hit.times--
      disturb(request, response, hit?.fault)
    })
  })
  http.keepAliveTimeout = 60_000
  http.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const { port } = http.address() as AddressInfo
  return {
    ...editsOf(server),
    url: `http://127.0.0.1:${port}`,
    simulated: server,
    requests,
    fault: (matches, fault, times = 1) => void faults.push({ matches, fault, times }),
    connections: () => sockets.size,
    async stop() {
      const closed = new Promise((resolve) => http.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

async function readRequest(incoming: IncomingMessage): Promise<HttpRequest> {
  const { method, url = '/', headers } = incoming
  const { pathname, searchParams } = new URL(url, 'http://front')
  const { fieldManager = headers['user-agent']?.split('/')[0] ?? '', ...query } = Object.fromEntries(searchParams)
  const body = await text(incoming)
  return {
    client: headers['user-agent'] ?? '',
    manager: fieldManager,
    method: method as SimRequest['method'],
    path: pathname,
    query,
    body: body === '' ? undefined : JSON.parse(body),
    contentType: headers['content-type'],
    accept: headers.accept,
    headers,
  }
}

async function pipe(stream: SimStream, response: ServerResponse): Promise<void> {
  response.on('close', () => stream.destroy())
  response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders()
  try {
    for await (const chunk of stream) response.write(chunk)
    response.end()
  } catch {
    response.socket?.destroy()
  }
}
