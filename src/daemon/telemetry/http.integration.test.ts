import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { createVirtualClock, type VirtualClock } from '../../../test/support/virtual-clock.ts'
import { maxConnections, requestTimeoutMs, retryListenMs, serveHealth, serveMetrics, type LocalServer } from './http.ts'

const registry = { contentType: 'text/plain', metrics: async () => 'up 1\n' }
const fail = (error: Error): never => expect.fail(error.message)
const healthy = { live: () => undefined, ready: () => undefined }

const opened: { close(): void }[] = []
const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const server of opened.splice(0)) server.close()
})

async function listening(server: LocalServer): Promise<number> {
  opened.push(server)
  for (;;) {
    const port = server.port()
    if (port !== undefined) return port
    await sleep(1)
  }
}

const metricsOn = async (clock: VirtualClock): Promise<number> =>
  await listening(serveMetrics(registry, { host: '127.0.0.1', port: 0, clock, onError: fail }))

/** A connection that has sent the start of a request and nothing more. */
async function halfRequest(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write('GET /metrics HTTP/1.1\r\n')
  return socket
}

async function halfRequests(port: number, count: number): Promise<Socket[]> {
  return await Promise.all(Array.from({ length: count }, () => halfRequest(port)))
}

async function openOf(all: readonly Socket[], expected: number): Promise<number> {
  const count = (): number => all.filter(({ closed }) => !closed).length
  for (let round = 0; round < 500 && count() > expected; round++) await sleep(2)
  return count()
}

test('a server keeps no more than its bound of half requests, and still answers', async () => {
  const port = await metricsOn(createVirtualClock())
  const halves = await halfRequests(port, 300)
  expect(await openOf(halves, maxConnections)).toBe(maxConnections)
  const response = await fetch(`http://127.0.0.1:${port}/metrics`)
  expect([response.status, await response.text()]).toEqual([200, 'up 1\n'])
})

test('a server ends a request that is not finished in time', async () => {
  const clock = createVirtualClock()
  const halves = await halfRequests(await metricsOn(clock), 3)
  await expect.poll(() => clock.pendingTimers).toBe(3) // the server has taken them
  await clock.advance(requestTimeoutMs - 1)
  expect(await openOf(halves, 3)).toBe(3)
  await clock.advance(1)
  expect(await openOf(halves, 0)).toBe(0)
})

test('a server closes each connection after its response and leaves no timer', async () => {
  const clock = createVirtualClock()
  const port = await metricsOn(clock)
  const response = await fetch(`http://127.0.0.1:${port}/metrics`)
  expect(response.headers.get('connection')).toBe('close')
  await response.text()
  for (let round = 0; round < 500 && clock.pendingTimers > 0; round++) await sleep(2)
  expect(clock.pendingTimers).toBe(0)
})

test('the health server answers /livez and /readyz on loopback with the sentence of a failed check', async () => {
  const server = serveHealth(
    { ...healthy, ready: () => 'not synced with the API server' },
    { port: 0, clock: createVirtualClock(), onError: fail },
  )
  const url = `http://127.0.0.1:${await listening(server)}`
  const answer = async (path: string) => {
    const response = await fetch(`${url}${path}`)
    return [response.status, await response.text()]
  }
  expect(await answer('/livez')).toEqual([200, 'ok\n'])
  expect(await answer('/readyz')).toEqual([503, 'not synced with the API server\n'])
  expect((await answer('/'))[0]).toBe(404)
})

test('a server whose port is taken says so and listens as soon as the port is free', async () => {
  const clock = createVirtualClock()
  const other = serveHealth(healthy, { port: 0, clock, onError: fail })
  const port = await listening(other)
  const errors: string[] = []
  const server = serveHealth(healthy, { port, clock, onError: (error) => errors.push(error.message) })
  opened.push(server)
  while (errors.length === 0) await sleep(1)
  expect(errors[0]).toContain('EADDRINUSE')
  other.close()
  await clock.advance(retryListenMs)
  expect(await listening(server)).toBe(port)
})

test('a closed server ends its connections and does not listen again', async () => {
  const clock = createVirtualClock()
  const server = serveMetrics(registry, { host: '127.0.0.1', port: 0, clock, onError: fail })
  const halves = await halfRequests(await listening(server), 2)
  await expect.poll(() => clock.pendingTimers).toBe(2)
  server.close()
  expect(await openOf(halves, 0)).toBe(0)
  expect(clock.pendingTimers).toBe(0)
})
