import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type FakeRegistry, fakeSources, startFakeRegistry } from '../../../test/support/fake-registry.ts'
import { createSeededRandom, createVirtualClock, type VirtualClock } from '../../../test/support/virtual-clock.ts'
import { downloadLayers } from './unpack-download.ts'
import { digestOf, hexOf } from '../oci/digest.ts'
import { ociLayerGzipType } from '../oci/manifest.ts'
import { parseReference } from '../oci/reference.ts'
import { resolveImage } from '../oci/read/pull.ts'
import { createRegistryClient, type RegistryClient } from '../oci/read/registry.ts'

const layer = Buffer.alloc(4 * 1024 * 1024, 'layer')
const { signal } = new AbortController()

let folder: string
let clock: VirtualClock
let registry: FakeRegistry
let slow: FakeRegistry
let client: RegistryClient
let drips: NodeJS.Timeout[]
let dripped: number

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'slow-'))
  clock = createVirtualClock()
  drips = []
  dripped = 0
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
  for (const drip of drips) clearInterval(drip)
  client.close()
  await registry.close()
  await slow.close()
  rmSync(folder, { recursive: true })
})

/** A byte at a time, for ever. */
function drip(write: (byte: string) => void): void {
  drips.push(
    setInterval(() => {
      write(' ')
      dripped++
    }, 2),
  )
}

function dripBody(response: ServerResponse): void {
  response.writeHead(200, { 'content-length': layer.length })
  drip((byte) => response.write(byte))
}

/** What the slow mirror does with a request that it drips. */
const phases = {
  headers(request: IncomingMessage) {
    request.socket.write('HTTP/1.1 200 OK\r\nx-slow: a')
    drip((byte) => request.socket.write(byte))
  },
  token(request: IncomingMessage, response: ServerResponse) {
    if (request.url?.startsWith('/token')) return dripBody(response)
    response.writeHead(401, { 'www-authenticate': `Bearer realm="http://${slow.host}/token"` }).end()
  },
  manifest: (_: IncomingMessage, response: ServerResponse) => dripBody(response),
}

const reference = (): ReturnType<typeof parseReference> => parseReference(`${registry.host}/pkg:1`)

/** Virtual time only passes while the slow mirror drips, so that the other registry has all the time it needs. */
async function untilItDrips(): Promise<void> {
  await expect.poll(() => dripped, { interval: 2 }).toBeGreaterThan(2)
}

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending')
  return (await Promise.race([promise.catch(() => undefined), delay(20, pending)])) !== pending
}

describe('a mirror that drips a byte at a time', () => {
  test.each(Object.keys(phases) as (keyof typeof phases)[])(
    'a mirror that drips its %s has 30 s, then the next address answers',
    async (phase) => {
      slow.intercept = (request, response) => {
        phases[phase](request, response)
        return true
      }
      const resolved = resolveImage(client, reference(), signal)
      await untilItDrips()
      await clock.advance(29_000)
      expect(await isSettled(resolved)).toBe(false)
      await clock.advance(1_000)
      expect(await resolved).toMatchObject({ manifest: { kind: 'image' } })
      expect(registry.requests.map(({ line }) => line)).toEqual(['GET /v2/pkg/manifests/1'])
    },
  )

  test('a mirror that drips a blob has 60 s, then the next address continues where it was', async () => {
    slow.intercept = (request, response) => {
      if (!request.url?.includes('/blobs/')) return false
      response.writeHead(200, { 'content-length': layer.length })
      response.write(layer.subarray(0, 1000))
      let sent = 1000
      drip(() => response.write(layer.subarray(sent, ++sent)))
      return true
    }
    const download = downloadLayers(client, reference(), [descriptor], folder, signal)
    await untilItDrips()
    await clock.advance(50_000)
    expect(await isSettled(download)).toBe(false)
    await clock.advance(20_000)
    expect(await download).toHaveLength(1)
    const [request] = registry.requests
    expect(Number(/^bytes=(\d+)-$/.exec(request?.headers.range ?? '')?.[1])).toBeGreaterThanOrEqual(1000)
  })

  test('a registry that drips everywhere is given up with a reason that names it', async () => {
    slow.intercept = (_, response) => (dripBody(response), true)
    const resolved = resolveImage(client, parseReference(`${slow.host}/pkg:1`), signal)
    const failure = resolved.catch((error: unknown) => error)
    for (let second = 0; second < 120 && !(await isSettled(resolved)); second += 10) await clock.advance(10_000)
    expect(clock.monotonicMs()).toBeLessThanOrEqual(90_000)
    expect(await failure).toMatchObject({
      code: 'unreachable',
      message: `${slow.host}: no complete answer within 30 s`,
    })
  })
})

describe('a registry that breaks a blob off', () => {
  /** Bytes that a connection gets before it is broken off; a request beyond these is answered. */
  let parts: number[]
  /** The connections that are still open, and what of the layer is there once their part is on disk. */
  let open: { readonly response: ServerResponse; readonly endBytes: number }[]
  let ignoresRange: boolean

  beforeEach(() => {
    parts = []
    open = []
    ignoresRange = false
    slow.intercept = (request, response) => {
      if (!request.url?.includes('/blobs/')) return false
      const bytes = parts.shift()
      if (bytes === undefined) return false
      const from = ignoresRange ? 0 : Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0)
      if (from > 0) response.setHeader('content-range', `bytes ${from}-${layer.length - 1}/${layer.length}`)
      response.writeHead(from > 0 ? 206 : 200, { 'content-length': layer.length - from })
      response.write(layer.subarray(from, from + bytes))
      open.push({ response, endBytes: from + bytes })
      return true
    }
  })

  const download = (from = slow.host) =>
    downloadLayers(client, parseReference(`${from}/pkg:1`), [descriptor], folder, signal)
  const ranges = () => slow.requests.map(({ headers }) => headers.range)

  /** Each connection lives that long, and time passes between them as the client waits. */
  async function breakOffEach(downloading: Promise<unknown>, lifeMs: number): Promise<void> {
    while (!(await isSettled(downloading))) {
      const connection = open.shift()
      if (connection !== undefined) {
        while (statSync(layerFile()).size < connection.endBytes) await delay(1)
        await clock.advance(lifeMs)
        connection.response.destroy()
      } else await clock.advance(100)
    }
  }

  test('a blob that breaks off after 30 s continues where it was', async () => {
    parts = [1_000_000]
    const downloading = download()
    await breakOffEach(downloading, 30_000)
    const [written] = await downloading
    expect(ranges()).toEqual([undefined, 'bytes=1000000-'])
    expect(readFileSync(written?.path ?? '')).toEqual(layer)
  })

  test('a blob arrives in as many connections as it needs', async () => {
    parts = Array.from({ length: 6 }, () => 600_000) // of 4 MiB
    const downloading = download()
    await breakOffEach(downloading, 50_000)
    const [written] = await downloading
    expect(ranges()).toEqual([undefined, ...[1, 2, 3, 4, 5, 6].map((part) => `bytes=${part * 600_000}-`)])
    expect(readFileSync(written?.path ?? '')).toEqual(layer)
  })

  test('a mirror that breaks off is asked for the rest where the registry does not have the image', async () => {
    registry.intercept = (_, response) => (response.writeHead(404).end(), true)
    parts = [1_000_000]
    const downloading = download(registry.host)
    await breakOffEach(downloading, 30_000)
    expect(await downloading).toHaveLength(1)
    expect(ranges()).toEqual([undefined, 'bytes=1000000-'])
  })

  test.each([
    ['the same bytes', 1_000_000, true],
    ['a few bytes', 1_000, false],
  ])('a registry that sends %s in each connection is given up', async (_, bytes, isFromTheStart) => {
    ignoresRange = isFromTheStart
    parts = Array.from({ length: 100 }, () => bytes)
    const downloading = download()
    const failure = downloading.catch((error: unknown) => error)
    await breakOffEach(downloading, 10)
    expect(await failure).toMatchObject({ code: 'unreachable' })
    expect(ranges()).toHaveLength(4)
  })

  test('a registry that sends less than 10 KiB/s in each of its connections is given up', async () => {
    parts = Array.from({ length: 100 }, () => 100_000)
    const downloading = download()
    const failure = downloading.catch((error: unknown) => error)
    await breakOffEach(downloading, 20_000)
    expect(await failure).toMatchObject({ code: 'unreachable' })
    expect(ranges()).toHaveLength(1)
  })
})

const descriptor = { mediaType: ociLayerGzipType, digest: digestOf(layer), size: layer.length }
const layerFile = (): string => join(folder, hexOf(descriptor.digest))

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
    while (statSync(layerFile()).size < sent) await delay(1)
    await clock.advance(9_000)
  }
  expect(await download).toHaveLength(1)
  expect(registry.requests).toEqual([])
  expect(clock.monotonicMs()).toBe(288_000)
})

test('no timer is left behind by requests that were answered', async () => {
  await resolveImage(client, reference(), signal)
  await downloadLayers(client, reference(), [descriptor], folder, signal)
  for (let round = 0; round < 200 && clock.pendingTimers > 0; round++) await delay(2)
  expect(clock.pendingTimers).toBe(0)
})
