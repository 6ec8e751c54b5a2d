import { existsSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { fakeDigest, type FakePlatform, startFakePlatform } from '../../../test/support/fake-platform.ts'
import { createVirtualClock, type VirtualClock } from '../../../test/support/virtual-clock.ts'
import { NoReplyError } from '../../host/dbus/errors.ts'
import { ImageError } from '../../packages/oci/errors.ts'
import { emptyJournal } from '../../schemas/journal.ts'
import { type PackageImage, preparationKey } from '../../stages/model/plan.ts'
import type { Platform } from '../platform/platform.ts'
import { createPreparer, type Preparer } from './prepare.ts'

const otherDigest = `sha256:${'b'.repeat(64)}` as const
const image: PackageImage = { image: 'registry.test/fake', version: '1.0.0' }

let clock: VirtualClock
let host: FakePlatform
let pullError: Error | undefined
let unfitness: string | undefined
let folderError: Error | undefined
/** What each collection would have removed of these. */
let collected: string[][]
let pulling: Promise<void> | undefined
let pulls: number
let version: () => Promise<number>
let preparer: Preparer

beforeEach(async () => {
  clock = createVirtualClock()
  const random = { number: () => 0, hex: (bytes: number) => '00'.repeat(bytes) }
  host = await startFakePlatform({ nodeName: 'n', apiUrl: 'http://127.0.0.1:1', clock, random })
  pullError = unfitness = folderError = undefined
  collected = []
  pulling = undefined
  pulls = 0
  version = async () => 257
  const openImageStore: Platform['openImageStore'] = (folder) => {
    const store = host.platform.openImageStore(folder)
    return {
      ...store,
      async checkImage(reference, options) {
        if (pullError) throw pullError
        return await store.checkImage(reference, options)
      },
      async ensureImage(reference, options) {
        if (pullError) throw pullError
        const stored = await store.ensureImage(reference, options)
        pulls++
        await pulling
        return stored
      },
      async collect(isUsed) {
        collected.push([fakeDigest, otherDigest].filter((digest) => !isUsed(digest)))
        return []
      },
    }
  }
  const { root } = host.platform
  const mkdirp: typeof root.mkdirp = async (...parameters) => {
    if (folderError) throw folderError
    return await root.mkdirp(...parameters)
  }
  preparer = createPreparer({
    platform: { ...host.platform, openImageStore, root: { ...root, mkdirp } },
    settings: host.settings,
    references: { secret: async () => undefined, configMap: async () => undefined },
    whyUnfit: async () => unfitness,
    units: { version: async () => await version() },
    signal: new AbortController().signal,
  })
})
afterEach(async () => await host[Symbol.asyncDispose]())

const found = (requested = image): unknown => preparer.current().get(preparationKey(requested))

test('a prepared package is known by its tag and by its digest', async () => {
  await preparer.prepare(image, 'layers')
  expect(found()).toMatchObject({ state: 'ready', config: { packageName: 'fake' } })
  const { digest } = found() as { digest: string }
  expect(found({ ...image, digest })).toEqual(found())
  expect(existsSync(`${host.folder}${preparer.contentOf(digest)}/config.json`)).toBe(true)
})

test('a failed pull is retried after 5 s, doubled with each failure', async () => {
  pullError = new ImageError('not-found', 'no such tag')
  await preparer.prepare(image, 'layers')
  expect(found()).toMatchObject({ state: 'failed', reason: 'ImagePull', retryAtMs: clock.wallMs() + 5_000 })
  await preparer.prepare(image, 'layers')
  expect(found()).toMatchObject({ retryAtMs: clock.wallMs() + 10_000 })
  pullError = undefined
  await preparer.prepare(image, 'layers')
  pullError = new ImageError('not-found', 'no such tag')
  await preparer.prepare(image, 'layers')
  expect(found()).toMatchObject({ retryAtMs: clock.wallMs() + 5_000 })
})

test('a folder of images that cannot be made fails one pull, and the next one makes it', async () => {
  folderError = Object.assign(new Error('EROFS: read-only file system, mkdir'), { code: 'EROFS' })
  await preparer.prepare(image, 'layers')
  expect(found()).toMatchObject({ state: 'failed', reason: 'HostUnusable' })
  folderError = undefined
  await preparer.prepare(image, 'layers')
  expect(found()).toMatchObject({ state: 'ready' })
})

test('an image that is no package is invalid, and a full disk is the trouble of the host', async () => {
  pullError = new ImageError('bad-image', 'no layers')
  await preparer.prepare(image, 'layers')
  expect(found()).toMatchObject({ reason: 'InvalidPackage' })
  pullError = Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' })
  await preparer.prepare(image, 'layers')
  expect(found()).toMatchObject({ reason: 'HostUnusable' })
})

test('nothing is fetched for a host that is unfit', async () => {
  unfitness = 'the host has no /bin/sh'
  await preparer.prepare(image, 'layers')
  expect(found()).toMatchObject({ state: 'failed', reason: 'HostUnusable', message: unfitness })
  expect([...preparer.current().values()]).toHaveLength(1)
})

test('a value that the systemd of the host would drop fails the preparation', async () => {
  const requested = { ...image, references: { env: [{ name: 'PEM', value: 'BEGIN\r\n' }] } } as PackageImage
  version = async () => 247
  await preparer.prepare(requested, 'layers')
  const message = expect.stringContaining('env PEM contains the control character U+000D') as unknown
  expect(found(requested)).toMatchObject({ state: 'failed', reason: 'InvalidSpec', message })
  version = async () => {
    throw new NoReplyError('timeout', 'Get: no answer within 25000 ms')
  }
  await preparer.prepare(requested, 'layers')
  expect(found(requested)).toMatchObject({ state: 'failed', reason: 'HostUnreachable' })
  version = async () => 248
  await preparer.prepare(requested, 'layers')
  expect(found(requested)).toMatchObject({ state: 'ready' })
})

test('a reference that is missing fails the preparation and not the content', async () => {
  const env = [{ name: 'A', valueFrom: { secretKeyRef: { name: 'none', key: 'k' } } }]
  const requested = { ...image, references: { env } } as PackageImage
  await preparer.prepare(requested, 'layers')
  expect(found(requested)).toMatchObject({ state: 'failed', reason: 'ReferenceMissing' })
  expect([...preparer.current().values()].map(({ state }) => state)).toEqual(['ready', 'failed'])
})

test('a collection keeps what is prepared and needed', async () => {
  await preparer.prepare(image, 'layers')
  await preparer.collect(() => emptyJournal('n'))
  expect(collected.at(-1)).toEqual([otherDigest])
  preparer.retain(new Set())
  await preparer.collect(() => emptyJournal('n'))
  expect(collected.at(-1)).toEqual([fakeDigest, otherDigest])
})

test('a collection does not wait for a pull, and keeps the image that is pulled', async () => {
  const gate = Promise.withResolvers<void>()
  pulling = gate.promise
  const prepared = preparer.prepare(image, 'layers')
  await expect.poll(() => pulls).toBe(1) // the digest is known, the pull is not over
  await preparer.collect(() => emptyJournal('n'))
  expect(collected).toEqual([[otherDigest]])
  gate.resolve()
  await prepared
  expect(found()).toMatchObject({ state: 'ready' })
})

test('an image that is checked is not fetched until its layers are wanted', async () => {
  await preparer.prepare(image, 'manifest')
  expect([found(), pulls]).toEqual([{ state: 'checked' }, 0])
  await preparer.prepare(image, 'layers')
  expect([found(), pulls]).toMatchObject([{ state: 'ready' }, 1])
})

test('an image that is on the host is complete when its manifest is checked', async () => {
  await preparer.prepare(image, 'layers')
  preparer.retain(new Set())
  await preparer.prepare(image, 'manifest')
  expect([found(), pulls]).toMatchObject([{ state: 'ready', config: { packageName: 'fake' } }, 1])
})

test('a missing reference fails the check of a manifest', async () => {
  const env = [{ name: 'A', valueFrom: { secretKeyRef: { name: 'none', key: 'k' } } }]
  const requested = { ...image, references: { env } } as PackageImage
  await preparer.prepare(requested, 'manifest')
  expect([found(requested), pulls]).toMatchObject([{ state: 'failed', reason: 'ReferenceMissing' }, 0])
})

test.each(['manifest', 'layers'] as const)('a failure says that it happened at the %s', async (depth) => {
  pullError = new ImageError('not-found', 'no such tag')
  await preparer.prepare(image, depth)
  expect(found()).toMatchObject({ state: 'failed', reason: 'ImagePull', depth })
})
