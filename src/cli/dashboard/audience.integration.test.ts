import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { turnsUntil } from '../../../test/kit/event-loop.ts'
import { type EventStream, openEventStream } from './audience.ts'

/** More than the sockets of a machine take. */
const large = 'x'.repeat(16 * 1024 * 1024)

test('a browser that does not read is behind until it reads again', async () => {
  let stream: EventStream<string> | undefined
  const server = createServer((_, response) => (stream = openEventStream(response, () => undefined)))
  onTestFinished(() => server.closeAllConnections())
  onTestFinished(() => void server.close())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const response = await new Promise<IncomingMessage>((resolve) => get({ host: '127.0.0.1', port }, resolve))
  expect(stream?.isBehind()).toBe(false)
  stream?.send(large)
  await turnsUntil(() => response.readableLength > 0)
  expect(stream?.isBehind()).toBe(true)
  response.resume()
  await turnsUntil(() => stream?.isBehind() === false)
})
