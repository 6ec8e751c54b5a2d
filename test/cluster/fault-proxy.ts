/**
 * A proxy before a real API server that can answer in its place: refusals, errors and empty lists, for one kind or for
 * all.
 */
import { createServer, request as plainRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { Agent, request } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'

export type ProxiedRequest = { readonly method: string; readonly path: string; readonly isWatch: boolean }
export type Fault = { readonly status: number; readonly reason?: string } | 'empty-list'

export type FaultProxy = {
  readonly url: string
  /** Requests for which the function returns a fault get that fault; undefined lets them through. */
  inject(fault: ((proxied: ProxiedRequest) => Fault | undefined) | undefined): void
  /** Breaks all connections, so that watches start again. */
  cut(): void
  close(): Promise<void>
}

export async function startFaultProxy(target: string, ca: string): Promise<FaultProxy> {
  const agent = new Agent({ ca, keepAlive: true })
  const sockets = new Set<Socket>()
  let faultOf: ((proxied: ProxiedRequest) => Fault | undefined) | undefined

  const server = createServer((incoming, answer) => {
    const { pathname, searchParams } = new URL(incoming.url ?? '/', 'http://proxy')
    const fault = faultOf?.({ method: incoming.method ?? '', path: pathname, isWatch: searchParams.has('watch') })
    if (fault === undefined) return forward(incoming, answer, target, agent)
    incoming.resume()
    answer.setHeader('content-type', 'application/json')
    if (fault === 'empty-list')
      return void answer.end(JSON.stringify({ kind: 'List', metadata: { resourceVersion: '1' }, items: [] }))
    const { status, reason = 'Unknown' } = fault
    answer.statusCode = status
    answer.end(
      JSON.stringify({ kind: 'Status', status: 'Failure', code: status, reason, message: `injected ${status}` }),
    )
  })
  server.on('connection', (socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const cut = (): void => {
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    inject(fault) {
      faultOf = fault
    },
    cut,
    async close() {
      cut()
      agent.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

function forward(incoming: IncomingMessage, answer: ServerResponse, target: string, agent: Agent): void {
  const { host: _, connection: __, ...headers } = incoming.headers
  const send = target.startsWith('https') ? request : plainRequest
  const outgoing = send(`${target}${incoming.url}`, { method: incoming.method, headers, agent }, (response) => {
    answer.writeHead(response.statusCode ?? 502, response.headers)
    answer.flushHeaders()
    response.pipe(answer)
    response.on('error', () => answer.destroy())
  })
  outgoing.on('error', () => answer.destroy())
  answer.on('close', () => outgoing.destroy())
  incoming.pipe(outgoing)
}
