import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import { get, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { type FakeRegistry, startFakeRegistry } from '../../../test/kit/registry/fake-registry.ts'
import { turnsUntil } from '../../../test/kit/event-loop.ts'
import { fakeSources } from '../../../test/kit/registry/registry-documents.ts'
import { createSeededRandom, createVirtualClock, type VirtualClock } from '../../../test/kit/virtual-clock.ts'
import { digestOf, hexOf, parseReference } from '../oci/reference.ts'
import { downloadLayers } from './unpack-download.ts'
import type { Clock } from '../../schemas/clock.ts'
import { ociLayerGzipType } from '../oci/manifest.ts'
import { resolveImage } from '../oci/read/pull.ts'
import { createRegistryClient, type RegistryClient } from '../oci/read/registry.ts'

const layer = Buffer.alloc(4 * 1024 * 1024, 'layer')
const { signal } = new AbortController()

let folder: string
let virtual: VirtualClock
/**
 * The clock of the client. Time also passes while the client waits for its next attempt, because no data is in transit
 * then.
 */
let clock: Clock
let passing: Promise<void>
let registry: FakeRegistry
let slow: FakeRegistry
let client: RegistryClient

beforeEach(async () => {
  folder = temporaryFolder()
  virtual = createVirtualClock()
  passing = Promise.resolve()
  clock = {
    ...virtual,
    startTimer(delayMs, callback, options) {
      const cancel = virtual.startTimer(delayMs, callback)
      if (options?.isBackground !== true) void pass(delayMs)
      return cancel
    },
  }
  registry = await startFakeRegistry()
  slow = await startFakeRegistry()
  for (const one of [registry, slow]) one.addImage('pkg', '1', layer)
  const rules = [
    { host: registry.host, mirrors: [`http://${slow.host}`], plainHTTP: true },
    { host: slow.host, plainHTTP: true },
  ]
  client = createRegistryClient(
    { credentials: [], sources: fakeSources(rules) },
    { clock, random: createSeededRandom(1) },
  )
})
afterEach(async () => {
  client.close()
  await registry.close()
  await slow.close()
})

/** Serialized: both an arriving request and the client's wait for the next one may advance the time. */
const pass = (ms: number): Promise<void> => (passing = passing.then(() => virtual.advance(ms)))

/** Sends one byte at once and one each second, forever. Returns after the first byte. */
async function drip(write: (byte: string, sent: () => void) => void): Promise<void> {
  const next = (): void => {
    virtual.startTimer(1_000, next)
    write(' ', () => undefined)
  }
  await new Promise<void>((resolve) => write(' ', resolve))
  virtual.startTimer(1_000, next)
}

async function dripBody(response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-length': layer.length })
  await drip((byte, sent) => response.write(byte, sent))
}

/** How the slow mirror answers a request byte by byte. Returns after the first byte. */
const phases = {
  async headers(request: IncomingMessage) {
    request.socket.write('HTTP/1.1 200 OK\r\nx-slow: a')
    await drip((byte, sent) => request.socket.write(byte, sent))
  },
  async token(request: IncomingMessage, response: ServerResponse) {
    if (request.url?.startsWith('/token')) return await dripBody(response)
    response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${slow.host}/token"` }).end()
    return 'continues'
  },
  manifest: async (_: IncomingMessage, response: ServerResponse) => await dripBody(response),
}

const reference = (): ReturnType<typeof parseReference> => parseReference(`${registry.host}/pkg:1`)
const lines = (): string[] => registry.requests.map(({ line }) => line)

/** The requests of the client to the other registry so far. They arrive in the order in which the client sent them. */
async function askedSoFar(): Promise<string[]> {
  const question = 'GET /question'
  const answer = get(`http://${registry.host}/question`)
  const [response] = (await once(answer, 'response')) as [IncomingMessage]
  response.resume()
  return lines().filter((line) => line !== question)
}

describe('a mirror that drips a byte at a time', () => {
  test.each(Object.keys(phases) as (keyof typeof phases)[])(
    'a mirror that drips its %s has 30 s, then the next address answers',
    async (phase) => {
      const dripping = Promise.withResolvers<void>()
      slow.intercept = (request, response) => {
        void phases[phase](request, response).then((how) => (how === undefined ? dripping.resolve() : undefined))
        return true
      }
      const resolved = resolveImage(client, reference(), signal)
      await dripping.promise
      await pass(29_000)
      expect(await askedSoFar()).toEqual([])
      await pass(1_000)
      expect(await resolved).toMatchObject({ manifest: { kind: 'image' } })
      expect(await askedSoFar()).toEqual(['GET /v2/pkg/manifests/1'])
    },
  )

  test('a mirror that drips a blob has 60 s, then the next address continues where it was', async () => {
    slow.intercept = (request, response) => {
      if (!request.url?.includes('/blobs/')) return false
      response.writeHead(200, { 'content-length': layer.length })
      response.write(layer.subarray(0, 1000))
      let sent = 1000
      void drip((_, done) => response.write(layer.subarray(sent, ++sent), done))
      return true
    }
    const download = downloadLayers(client, reference(), [descriptor], folder, signal)
    await stored(1000)
    await pass(50_000)
    expect(await askedSoFar()).toEqual([])
    await pass(20_000)
    expect(await download).toHaveLength(1)
    const range = registry.requests.at(-1)?.headers.range
    expect(Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1])).toBeGreaterThanOrEqual(1000)
  })

  test('a registry that drips everywhere is given up with a reason that names it', async () => {
    slow.intercept = (_, response) => {
      void dripBody(response).then(() => pass(30_000))
      return true
    }
    await expect(resolveImage(client, parseReference(`${slow.host}/pkg:1`), signal)).rejects.toMatchObject({
      code: 'unreachable',
      message: `${slow.host}: no complete answer within 30 s`,
    })
    expect(clock.monotonicMs()).toBeLessThanOrEqual(90_000)
  })
})

describe('a registry that breaks a blob off', () => {
  /** Bytes that a connection receives before it breaks; requests beyond these are answered in full. */
  let parts: number[]
  /** How long a connection stays open after its part has arrived. */
  let lifeMs: number
  let ignoresRange: boolean

  beforeEach(() => {
    parts = []
    lifeMs = 10
    ignoresRange = false
    slow.intercept = (request, response) => {
      if (!request.url?.includes('/blobs/')) return false
      const bytes = parts.shift()
      if (bytes === undefined) return false
      const from = ignoresRange ? 0 : Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
      if (from > 0) response.setHeader('content-range', `bytes ${from}-${layer.length - 1}/${layer.length}`)
      response.writeHead(from > 0 ? 206 : 200, { 'content-length': layer.length - from })
      response.write(layer.subarray(from, from + bytes))
      void stored(from + bytes)
        .then(() => pass(lifeMs))
        .then(() => response.destroy())
      return true
    }
  })

  const download = (from = slow.host) =>
    downloadLayers(client, parseReference(`${from}/pkg:1`), [descriptor], folder, signal)
  const ranges = () => slow.requests.map(({ headers }) => headers.range)

  test('a blob that breaks off after 30 s continues where it was', async () => {
    parts = [1_000_000]
    lifeMs = 30_000
    const [written] = await download()
    expect(ranges()).toEqual([undefined, 'bytes=1000000-'])
    expect(readFileSync(written?.path ?? '')).toEqual(layer)
  })

  test('a blob arrives in as many connections as it needs', async () => {
    parts = Array.from({ length: 6 }, () => 600_000) // of 4 MiB
    lifeMs = 50_000
    const [written] = await download()
    expect(ranges()).toEqual([undefined, ...[1, 2, 3, 4, 5, 6].map((part) => `bytes=${part * 600_000}-`)])
    expect(readFileSync(written?.path ?? '')).toEqual(layer)
  })

  test('a mirror that breaks off is asked for the rest where the registry does not have the image', async () => {
    registry.intercept = (_, response) => (response.writeHead(404).end(), true)
    parts = [1_000_000]
    lifeMs = 30_000
    expect(await download(registry.host)).toHaveLength(1)
    expect(ranges()).toEqual([undefined, 'bytes=1000000-'])
  })

  test.each([
    ['the same bytes', 1_000_000, true],
    ['a few bytes', 1_000, false],
  ])('a registry that sends %s in each connection is given up', async (_, bytes, isFromTheStart) => {
    ignoresRange = isFromTheStart
    parts = Array.from({ length: 100 }, () => bytes)
    await expect(download()).rejects.toMatchObject({ code: 'unreachable' })
    expect(ranges()).toHaveLength(4)
  })

  test('a registry that sends less than 10 KiB/s in each of its connections is given up', async () => {
    parts = Array.from({ length: 100 }, () => 100_000)
    lifeMs = 20_000
    await expect(download()).rejects.toMatchObject({ code: 'unreachable' })
    expect(ranges()).toHaveLength(1)
  })
})

const descriptor = { mediaType: ociLayerGzipType, digest: digestOf(layer), size: layer.length }
/** Returns when this many bytes of the layer are on disk. */
const stored = async (bytes: number): Promise<void> =>
  await turnsUntil(
    () => (statSync(join(folder, hexOf(descriptor.digest)), { throwIfNoEntry: false })?.size ?? 0) >= bytes,
  )

test('a slow blob that keeps up 10 KiB/s is not given up', async () => {
  const send = Promise.withResolvers<ServerResponse>()
  slow.intercept = (request, response) => {
    if (!request.url?.includes('/blobs/')) return false
    response.writeHead(200, { 'content-length': layer.length })
    send.resolve(response)
    return true
  }
  const download = downloadLayers(client, reference(), [descriptor], folder, signal)
  const response = await send.promise
  const pieceBytes = layer.length / 32
  for (let sent = 0; sent < layer.length; ) {
    response.write(layer.subarray(sent, (sent += pieceBytes)))
    await stored(sent)
    await pass(9_000)
  }
  expect(await download).toHaveLength(1)
  expect(registry.requests).toEqual([])
  expect(clock.monotonicMs()).toBe(288_000)
})

test('no timer is left behind by requests that were answered', async () => {
  await resolveImage(client, reference(), signal)
  await downloadLayers(client, reference(), [descriptor], folder, signal)
  await turnsUntil(() => virtual.pendingTimers === 0)
  expect(virtual.pendingTimers).toBe(0)
})
