import { EventEmitter, once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { createVirtualClock, type VirtualClock } from '../../../test/kit/virtual-clock.ts'
import { maxConnections, requestTimeoutMs, retryListenMs, serveHealth, serveMetrics, type LocalServer } from './http.ts'

const registry = { contentType: 'text/plain', metrics: async () => 'up 1\n' }
const fail = (error: Error): never => expect.fail(error.message)
const healthy = { live: () => undefined, ready: () => undefined }

const opened: { close(): void }[] = []
const sockets: Socket[] = []
/** Of the sockets. */
const ends = new EventEmitter()
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  for (const server of opened.splice(0)) server.close()
})

/** Lets the event loop run until the condition holds. */
async function until(isReached: () => boolean): Promise<void> {
  while (!isReached()) await setImmediate()
}

async function listening(server: LocalServer): Promise<number> {
  opened.push(server)
  await until(() => server.port() !== undefined)
  return server.port() as number
}

const metricsOn = async (clock: VirtualClock): Promise<number> =>
  await listening(serveMetrics(registry, { host: '127.0.0.1', port: 0, clock, onError: fail, onRecovered: () => {} }))

/** A connection that has sent only the start of a request. */
async function halfRequest(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  sockets.push(socket)
  socket.on('error', () => {})
  socket.on('close', () => ends.emit('close'))
  await once(socket, 'connect')
  socket.write('GET /metrics HTTP/1.1\r\n')
  return socket
}

async function halfRequests(port: number, count: number): Promise<Socket[]> {
  return await Promise.all(Array.from({ length: count }, () => halfRequest(port)))
}

const countOpen = (all: readonly Socket[]): number => all.filter(({ closed }) => !closed).length

/** Resolves with the number of open connections once it is at most this. */
async function untilOpen(all: readonly Socket[], count: number): Promise<number> {
  while (countOpen(all) > count) await once(ends, 'close')
  return countOpen(all)
}

test('a server keeps no more than its bound of half requests, and still answers', async () => {
  const port = await metricsOn(createVirtualClock())
  const halves = await halfRequests(port, 300)
  expect(await untilOpen(halves, maxConnections)).toBe(maxConnections)
  const response = await fetch(`http://127.0.0.1:${port}/metrics`)
  expect([response.status, await response.text()]).toEqual([200, 'up 1\n'])
})

test('a server ends a request that is not finished in time', async () => {
  const clock = createVirtualClock()
  const halves = await halfRequests(await metricsOn(clock), 3)
  await until(() => clock.pendingTimers === 3) // the server has accepted them
  await clock.advance(requestTimeoutMs - 1)
  expect(countOpen(halves)).toBe(3)
  await clock.advance(1)
  expect(await untilOpen(halves, 0)).toBe(0)
})

test('a server closes each connection after its response and leaves no timer', async () => {
  const clock = createVirtualClock()
  const port = await metricsOn(clock)
  const response = await fetch(`http://127.0.0.1:${port}/metrics`)
  expect(response.headers.get('connection')).toBe('close')
  await response.text()
  await until(() => clock.pendingTimers === 0)
})

test('the health server answers /livez and /readyz on loopback with the sentence of a failed check', async () => {
  const server = serveHealth(
    { ...healthy, ready: () => 'not synced with the API server' },
    { port: 0, clock: createVirtualClock(), onError: fail, onRecovered: () => {} },
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
  const other = serveHealth(healthy, { port: 0, clock, onError: fail, onRecovered: () => {} })
  const port = await listening(other)
  const errors: string[] = []
  const recovered = Promise.withResolvers<void>()
  const onError = ({ code = '' }: NodeJS.ErrnoException): void => void errors.push(code)
  const server = serveHealth(healthy, { port, clock, onError, onRecovered: recovered.resolve })
  opened.push(server)
  for (let attempt = 0; attempt < 3; attempt++) {
    await until(() => clock.pendingTimers > 0)
    await clock.advance(retryListenMs)
  }
  await until(() => clock.pendingTimers > 0)
  other.close()
  await clock.advance(retryListenMs)
  await recovered.promise
  expect([await listening(server), errors]).toEqual([port, ['EADDRINUSE']])
})

test('a closed server ends its connections and does not listen again', async () => {
  const clock = createVirtualClock()
  const server = serveMetrics(registry, { host: '127.0.0.1', port: 0, clock, onError: fail, onRecovered: () => {} })
  const halves = await halfRequests(await listening(server), 2)
  await until(() => clock.pendingTimers === 2)
  server.close()
  expect(await untilOpen(halves, 0)).toBe(0)
  await until(() => clock.pendingTimers === 0)
})
