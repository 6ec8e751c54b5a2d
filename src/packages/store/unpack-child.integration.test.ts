import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { constants, createZstdCompress } from 'node:zlib'
import { pack } from 'tar-stream'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { parseDockerConfig } from '../oci/read/credentials.ts'
import { readEndpoints } from '../oci/read/endpoints.ts'
import { fakeCaCert, type FakeRegistry, startFakeRegistry } from '../../../test/kit/registry/fake-registry.ts'
import { fakeSources } from '../../../test/kit/registry/registry-documents.ts'
import { digestOf } from '../oci/reference.ts'
import { type LayerEntry, writeLayer } from '../oci/write/layer.ts'
import { type Descriptor, ociLayerGzipType } from '../oci/manifest.ts'
import { unpackInChild } from './unpack-child.ts'
import type { UnpackJob } from './unpack-job.ts'

const source = new URL('unpack-child.ts', import.meta.url).href
const clockModule = new URL('../../daemon/platform/system-clock.ts', import.meta.url).href
const command: [string, ...string[]] = [
  process.execPath,
  '-e',
  `Promise.all([import(${JSON.stringify(source)}), import(${JSON.stringify(clockModule)})]).then(
    ([child, { systemClock, systemRandom }]) => child.runUnpackChild({ clock: systemClock, random: systemRandom }))`,
]
const { signal } = new AbortController()
let tempDir = ''
let registry: FakeRegistry

beforeEach(async () => {
  tempDir = temporaryFolder()
  mkdirSync(join(tempDir, 'work'))
  registry = await startFakeRegistry({ tls: true, login: { kind: 'bearer', username: 'lab', password: 'secret' } })
})
afterEach(async () => {
  await registry.close()
})

async function job(...entries: LayerEntry[]): Promise<UnpackJob> {
  const { descriptor, file } = await writeLayer(entries, join(tempDir, 'layer'))
  registry.addBlob('pkg', readFileSync(file))
  return await jobFor(descriptor)
}

async function jobFor(descriptor: Descriptor): Promise<UnpackJob> {
  const resolvedEndpoints = await readEndpoints(registry.host, fakeSources([{ host: registry.host, ca: fakeCaCert }]))
  const credentials = parseDockerConfig(
    JSON.stringify({ auths: { [registry.host]: { username: 'lab', password: 'secret' } } }),
    'test',
  )
  return {
    registry: { credentials, sources: { resolvedEndpoints }, retryForMs: 0 },
    reference: { host: registry.host, repository: 'pkg', tag: '1' },
    layers: [descriptor],
    workFolder: join(tempDir, 'work'),
    target: join(tempDir, 'target'),
  }
}

const file = (path: string): LayerEntry => ({ kind: 'file', path, mode: 0o644, content: Buffer.from(path) })

test('a child does not count what its parent once took of memory', async () => {
  const large = Buffer.alloc(256 * 1024 * 1024, 1)
  expect(await unpackInChild(await job(file('skyhook-package/config.json')), { signal, command })).toMatchObject({
    entries: 2,
  })
  expect(large.at(-1)).toBe(1) // keeps the memory in use until here
})

test('a child fetches and unpacks, with login and authority', async () => {
  expect(await unpackInChild(await job(file('skyhook-package/config.json')), { signal, command })).toEqual({
    entries: 2,
    bytes: 27,
  })
  expect(readFileSync(join(tempDir, 'target/config.json'), 'utf8')).toBe('skyhook-package/config.json')
})

test('a child reports errors of the archive, the registry and the disk unchanged', async () => {
  await expect(unpackInChild(await job(file('bin/sh')), { signal, command })).rejects.toMatchObject({
    code: 'bad-image',
    message: expect.stringMatching(/no folder/),
  })
  rmSync(join(tempDir, 'target'), { recursive: true })
  const unknown = await jobFor({ mediaType: ociLayerGzipType, digest: digestOf('nobody has it'), size: 1 })
  await expect(unpackInChild(unknown, { signal, command })).rejects.toMatchObject({
    code: 'not-found',
    message: expect.stringMatching(/BLOB_UNKNOWN/),
  })
  registry.intercept = (request, response) => {
    if (request.headers.authorization?.startsWith('Bearer') !== true) return false
    response.writeHead(429, { 'retry-after': '3600' }).end()
    return true
  }
  rmSync(join(tempDir, 'work'), { recursive: true })
  await expect(unpackInChild(unknown, { signal, command })).rejects.toMatchObject({ code: 'ENOENT' })
  mkdirSync(join(tempDir, 'work'))
  await expect(unpackInChild(unknown, { signal, command })).rejects.toMatchObject({
    code: 'rate-limited',
    retryAfterMs: 3_600_000,
  })
})

test('a child that takes too much memory ends by itself and says so', async () => {
  // its decompressor keeps the last 128 MiB
  const archive = pack()
  archive.entry({ name: 'skyhook-package/config.json' }, '{}')
  archive.entry({ name: 'usr/share/large' }, Buffer.alloc(300 * 2 ** 20))
  archive.finalize()
  const window = { params: { [constants.ZSTD_c_windowLog]: 27 } }
  const bytes = await buffer(archive.pipe(createZstdCompress(window)))
  const digest = registry.addBlob('pkg', bytes)
  const large = await jobFor({ mediaType: ociLayerGzipType, digest, size: bytes.length })
  await expect(unpackInChild(large, { signal, command })).rejects.toMatchObject({
    code: 'too-large',
    message: expect.stringMatching(/^unpacking takes more than 144 MiB of memory; .* zstd window/),
  })
})

test('the death of a child is reported with its cause', async () => {
  const one = await job(file('skyhook-package/a'))
  const crashingCommand: [string, ...string[]] = ['/bin/sh', '-c', 'echo no more memory >&2; kill -9 $$']
  await expect(unpackInChild(one, { signal, command: crashingCommand })).rejects.toThrow(
    /without an answer \(SIGKILL\): no more memory/,
  )
  await expect(unpackInChild(one, { signal, command: ['/nonexistent'] })).rejects.toMatchObject({ code: 'ENOENT' })
})

test('an aborted child is killed with its descendants', async () => {
  const path = join(tempDir, 'socket')
  const server = createServer().listen(path)
  const controller = new AbortController()
  const descendant = `${process.execPath} -e 'require("node:net").connect("${path}")'`
  const abortedUnpack = unpackInChild(await job(file('skyhook-package/a')), {
    signal: controller.signal,
    command: ['/bin/sh', '-c', `${descendant} & wait`],
  })
  const [connection] = (await once(server, 'connection')) as [Socket]
  const disconnected = once(connection.resume(), 'close')
  controller.abort(new Error('changed my mind'))
  await expect(abortedUnpack).rejects.toThrow('changed my mind')
  await disconnected
  server.close()
})

test('a child ends with its agent', () => {
  expect(spawnSync(command[0], command.slice(1), { input: '' }).status).toBe(75)
})
