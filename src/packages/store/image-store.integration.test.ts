import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gzipSync } from 'node:zlib'
import { pack } from 'tar-stream'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { createHostRoot, type HostRoot } from '../../host/fs/host-root.ts'
import { systemClock, systemRandom } from '../../daemon/platform/system-clock.ts'
import { type FakeRegistry, startFakeRegistry } from '../../../test/kit/registry/fake-registry.ts'
import { turn, turnsUntil } from '../../../test/kit/event-loop.ts'
import { fakeIndex, fakeSources } from '../../../test/kit/registry/registry-documents.ts'
import { createVirtualClock } from '../../../test/kit/virtual-clock.ts'
import { ociIndexType } from '../oci/manifest.ts'
import type { LoginProvider } from '../oci/read/logins.ts'
import { type Digest, parseReference } from '../oci/reference.ts'
import {
  type EnsureOptions,
  type ImageStore,
  openImageStore,
  type StoredImage,
  type StorePorts,
} from './image-store.ts'
import { runUnpackJob } from './unpack-job.ts'

let tempDir = ''
let images = ''
let registry: FakeRegistry
let store: ImageStore
const systemPorts = { clock: systemClock, random: systemRandom }
const unpack: StorePorts['unpack'] = async (job, signal) => await runUnpackJob(job, systemPorts, signal)
const root = createHostRoot('/', systemRandom)
/** How often a path on disk was looked up. */
let searches = 0
const stat: HostRoot['stat'] = async (path) => await root.stat(path).finally(() => searches++)
const ports: StorePorts = { ...systemPorts, root: { ...root, stat }, unpack, architecture: 'amd64' }

beforeEach(async () => {
  tempDir = temporaryFolder()
  images = join(tempDir, 'var/images')
  registry = await startFakeRegistry()
  store = openImageStore(images, ports)
})
afterEach(async () => {
  await registry.close()
})

async function layer(files: Record<string, string>): Promise<Buffer> {
  const archive = pack()
  for (const [name, content] of Object.entries(files)) archive.entry({ name }, content)
  archive.finalize()
  return gzipSync(await buffer(archive))
}

async function publish(tag: string, config = '{}'): Promise<Digest> {
  return registry.addImage('pkg', tag, await layer({ 'skyhook-package/config.json': config }))
}

function options(signal: AbortSignal = new AbortController().signal): EnsureOptions {
  const rules = [{ host: registry.host, plainHTTP: true }]
  return {
    registry: {
      credentials: [],
      sources: fakeSources(rules),
      retryForMs: 0,
    },
    signal,
  }
}

test('the login of a provider reaches the process that downloads the layers, which cannot ask for one', async () => {
  const login = { kind: 'basic', username: 'u', password: 'p' } as const
  await registry.close()
  registry = await startFakeRegistry({ login })
  await publish('1')
  const loginProvider: LoginProvider = {
    loginsOf: async () => ({ logins: [{ ...login, kind: 'password' }], providers: ['own'], problems: [] }),
    forget: () => expect.unreachable(),
  }
  store = openImageStore(images, { ...ports, loginProvider })
  expect(await ensure('pkg:1')).toMatchObject({ isNew: true })
})

const ensure = (name: string, signal?: AbortSignal) =>
  store.ensureImage(parseReference(`${registry.host}/${name}`), options(signal))

/** Like `ensure`, but returns when the call has looked for the image on disk and waits for its download. */
async function startEnsuring(name: string, signal?: AbortSignal): Promise<{ readonly fetching: Promise<StoredImage> }> {
  const before = searches
  const fetching = ensure(name, signal)
  fetching.catch(() => undefined) // until the test looks
  await turnsUntil(() => searches > before)
  await turn()
  return { fetching }
}

const blobs = () => registry.requests.filter(({ line }) => line.includes('/blobs/')).length

describe('an image', () => {
  test('an image is fetched once, and later a tag costs one request and a digest none', async () => {
    const digest = await publish('1', '{"v":1}')
    const first = await ensure('pkg:1')
    expect(first).toEqual({ digest, path: join(images, digest.slice(7)), isNew: true })
    expect(readFileSync(join(first.path, 'config.json'), 'utf8')).toBe('{"v":1}')
    expect(readdirSync(images)).toEqual([digest.slice(7)])
    registry.requests.length = 0
    expect(await ensure('pkg:1')).toEqual({ ...first, isNew: false })
    expect(registry.requests.map(({ line }) => line)).toEqual(['GET /v2/pkg/manifests/1'])
    expect(await ensure(`pkg@${digest}`)).toEqual({ ...first, isNew: false })
    expect(registry.requests).toHaveLength(1)
  })

  test('the check of an image costs one request and fetches nothing', async () => {
    const digest = await publish('1')
    const resolved: Digest[] = []
    const check = async () =>
      await store.checkImage(parseReference(`${registry.host}/pkg:1`), {
        ...options(),
        onResolved: (one) => void resolved.push(one),
      })
    expect(await check()).toEqual({ digest, isStored: false })
    expect(registry.requests.map(({ line }) => line)).toEqual(['GET /v2/pkg/manifests/1'])
    expect([resolved, existsSync(join(images, digest.slice(7)))]).toEqual([[digest], false])
    await ensure('pkg:1')
    expect(await check()).toEqual({ digest, isStored: true })
  })

  test('the check of an image reports what is wrong with its tag and its platforms', async () => {
    const check = async (name: string) => await store.checkImage(parseReference(`${registry.host}/${name}`), options())
    await expect(check('pkg:none')).rejects.toMatchObject({ code: 'not-found' })
    const digest = await publish('arm')
    registry.addManifest('pkg', 'index', fakeIndex([{ digest, size: 1, architecture: 'arm64' }]), ociIndexType)
    await expect(check('pkg:index')).rejects.toMatchObject({ code: 'unsupported' })
    expect(blobs()).toBe(0)
  })

  test('an image is fetched again when its tag moves', async () => {
    const before = await ensure(`pkg@${await publish('1', 'before')}`)
    await publish('1', 'after')
    const after = await ensure('pkg:1')
    expect([before, after].map(({ path }) => readFileSync(join(path, 'config.json'), 'utf8'))).toEqual([
      'before',
      'after',
    ])
  })

  test('an image of an index is stored under the digest of the index', async () => {
    const digest = registry.addManifest(
      'pkg',
      '1',
      fakeIndex([{ digest: await publish('x'), size: 1, architecture: 'amd64' }]),
      ociIndexType,
    )
    expect((await ensure('pkg:1')).digest).toBe(digest)
    expect(await ensure(`pkg@${digest}`)).toMatchObject({ isNew: false })
  })

  test('an image behind a tag is not guessed when the registry does not answer', async () => {
    const digest = await publish('1')
    await ensure('pkg:1')
    await registry.close()
    await expect(ensure('pkg:1')).rejects.toMatchObject({ code: 'unreachable' })
    await expect(ensure(`pkg@${digest}`)).resolves.toMatchObject({ isNew: false })
  })

  test('a failed fetch leaves nothing and can be repeated', async () => {
    const digest = registry.addImage('pkg', '1', await layer({ 'bin/sh': '' }))
    await expect(ensure('pkg:1')).rejects.toMatchObject({ code: 'bad-image' })
    registry.intercept = (request, response) => {
      if (!request.url?.includes('/blobs/')) return false
      response.writeHead(404).end()
      return true
    }
    await publish('2')
    await expect(ensure('pkg:2')).rejects.toMatchObject({ code: 'not-found' })
    expect(readdirSync(images)).toEqual([])
    registry.intercept = () => false
    await expect(ensure('pkg:2')).resolves.toMatchObject({ isNew: true })
    expect(readdirSync(images)).not.toContain(digest.slice(7))
  })

  test('a fetch that takes too long ends with a reason', async () => {
    await publish('1')
    const clock = createVirtualClock()
    store = openImageStore(images, { ...ports, clock, timeoutMs: 200 })
    registry.intercept = (request) => {
      if (!request.url?.includes('/blobs/')) return false
      void clock.advance(200)
      return true
    }
    await expect(ensure('pkg:1')).rejects.toMatchObject({
      code: 'unreachable',
      message: expect.stringMatching(/not fetched within 200 ms/),
    })
    expect(readdirSync(images)).toEqual([])
  })

  test('a full disk is reported as the error of the disk', async () => {
    await publish('1')
    mkdirSync(join(tempDir, 'var'))
    writeFileSync(images, 'a file where the folder should be')
    await expect(ensure('pkg:1')).rejects.toMatchObject({ code: 'ENOTDIR' })
  })
})

describe('several who want the same image', () => {
  let release: () => void

  beforeEach(async () => {
    await publish('1')
    const released = Promise.withResolvers<void>()
    release = released.resolve
    registry.intercept = (request, response) => {
      const [, digest] = /\/blobs\/(.*)$/.exec(request.url ?? '') ?? []
      if (digest === undefined) return false
      void released.promise.then(() => response.end(registry.blob('pkg', digest)))
      return true
    }
  })

  test('callers who want the same image share one download', async () => {
    const all = [await startEnsuring('pkg:1'), await startEnsuring('pkg:1'), await startEnsuring('pkg:1')]
    release()
    const results = await Promise.all(all.map(({ fetching }) => fetching))
    expect(new Set(results.map(({ path }) => path)).size).toBe(1)
    expect(blobs()).toBe(1)
  })

  test('a shared download continues when the first caller leaves', async () => {
    const first = new AbortController()
    const { fetching: leaving } = await startEnsuring('pkg:1', first.signal)
    const { fetching: staying } = await startEnsuring('pkg:1')
    first.abort(new Error('not needed'))
    await expect(leaving).rejects.toThrow('not needed')
    release()
    await expect(staying).resolves.toMatchObject({ isNew: true })
    expect(blobs()).toBe(1)
  })

  test('a shared download ends when all callers have left, and the next caller starts again', async () => {
    const controller = new AbortController()
    const leaving = ensure('pkg:1', controller.signal)
    await turnsUntil(() => blobs() > 0)
    controller.abort(new Error('not needed'))
    const coming = ensure('pkg:1')
    await expect(leaving).rejects.toThrow('not needed')
    release()
    await expect(coming).resolves.toMatchObject({ isNew: true })
    expect(readdirSync(images)).toHaveLength(1)
  })
})

test.each(['ENOTEMPTY', 'EEXIST'])(
  'an image that an aborted fetch has put there meanwhile counts as fetched where the file system says %s',
  async (code) => {
    const digest = await publish('1')
    const rename: HostRoot['rename'] = async (from, to) => {
      try {
        await ports.root.rename(from, to)
      } catch (error) {
        throw Object.assign(error as Error, { code })
      }
    }
    store = openImageStore(images, {
      ...ports,
      root: { ...ports.root, rename },
      unpack: async (job, signal) => {
        await unpack(job, signal)
        return await unpack({ ...job, workFolder: tempDir, target: join(images, digest.slice(7)) }, signal)
      },
    })
    expect(await ensure('pkg:1')).toMatchObject({ digest })
    expect(readdirSync(images)).toEqual([digest.slice(7)])
  },
)

test('images are unpacked one at a time, and one that fails lets the next one start', async () => {
  let active = 0
  let most = 0
  store = openImageStore(images, {
    ...ports,
    unpack: async (job, signal) => {
      most = Math.max(most, ++active)
      await turn()
      active--
      if (job.reference.tag === '3') throw new Error('this one fails')
      return await unpack(job, signal)
    },
  })
  const tags = ['1', '2', '3', '4', '5', '6', '7', '8']
  for (const tag of tags) await publish(tag, tag)
  const results = await Promise.allSettled(tags.map((tag) => ensure(`pkg:${tag}`)))
  expect(results.map(({ status }) => status === 'fulfilled')).toEqual(tags.map((tag) => tag !== '3'))
  expect(most).toBe(1)
})

test('an image that nobody wants any more does not wait for its turn to be left', async () => {
  const gate = Promise.withResolvers<void>()
  store = openImageStore(images, { ...ports, unpack: async (...all) => (await gate.promise, await unpack(...all)) })
  await publish('1', '1')
  await publish('2', '2')
  const first = ensure('pkg:1')
  await turnsUntil(() => existsSync(images))
  const controller = new AbortController()
  const { fetching: second } = await startEnsuring('pkg:2', controller.signal)
  controller.abort(new Error('not needed'))
  await expect(second).rejects.toThrow('not needed')
  gate.resolve()
  await expect(first).resolves.toMatchObject({ isNew: true })
  expect(readdirSync(images)).toHaveLength(1)
})

describe('collecting', () => {
  test('collecting removes unneeded images and leftovers of dead agents, nothing else', async () => {
    const [kept, gone] = [await publish('1', 'kept'), await publish('2', 'gone')]
    await ensure('pkg:1')
    await ensure('pkg:2')
    mkdirSync(join(images, '.work-dead/package'), { recursive: true })
    writeFileSync(join(images, 'a-note-of-the-administrator'), '')
    expect(await store.collect((digest) => digest === kept)).toEqual([gone])
    expect(readdirSync(images).sort()).toEqual([kept.slice(7), 'a-note-of-the-administrator'].sort())
  })

  test('collecting spares an image that is being fetched', async () => {
    await publish('1')
    const gate = Promise.withResolvers<void>()
    store = openImageStore(images, {
      ...ports,
      unpack: async (job, signal) => {
        const unpacked = await unpack(job, signal)
        await gate.promise
        return unpacked
      },
    })
    const fetching = ensure('pkg:1')
    await turnsUntil(
      () => existsSync(images) && readdirSync(images).some((name) => existsSync(join(images, name, 'package'))),
    )
    expect(await store.collect(() => false)).toEqual([])
    gate.resolve()
    await expect(fetching).resolves.toMatchObject({ isNew: true })
  })

  test('an image that is requested again while it is collected is there afterwards', async () => {
    const digest = await publish('1')
    await ensure('pkg:1')
    const requested = new Set<Digest>()
    for (let turn = 0; turn < 20; turn++) {
      requested.clear()
      const collected = store.collect((one) => requested.has(one))
      for (let tick = 0; tick < turn; tick++) await Promise.resolve()
      const { path } = await store.ensureImage(parseReference(`${registry.host}/pkg@${digest}`), {
        ...options(),
        onResolved: (one) => requested.add(one),
      })
      await collected
      expect(readFileSync(join(path, 'config.json'), 'utf8')).toBe('{}')
    }
  })

  test('collecting an unused store removes nothing', async () => {
    expect(await store.collect(() => false)).toEqual([])
  })
})
