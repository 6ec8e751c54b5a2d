import { beforeEach, expect, test } from 'vitest'
import { openSimulatedStore } from '../../../test/kit/host/images.ts'
import { packageImage } from '../../../test/kit/host/package-image.ts'
import { createHostFiles, type HostFiles } from '../../../test/kit/files/host-files.ts'
import { settingsOf } from '../../../test/kit/objects/sample-settings.ts'
import { createSeededRandom, createVirtualClock, type VirtualClock } from '../../../test/kit/virtual-clock.ts'
import { NoReplyError } from '../../host/dbus/errors.ts'
import { ImageError } from '../../packages/oci/errors.ts'
import { emptyJournal } from '../../schemas/journal.ts'
import { type PackageImage, preparationKey } from '../../stages/model/plan.ts'
import type { PreparationDepth } from '../../stages/model/snapshot.ts'
import type { Platform } from '../platform/platform.ts'
import { createLog } from '../telemetry/log.ts'
import { createPreparer, type Preparer } from './prepare.ts'

const ownImage = packageImage('fake', '1.0.0')
const otherDigest = `sha256:${'b'.repeat(64)}` as const
const image: PackageImage = { image: 'registry.test/fake', version: '1.0.0' }

let clock: VirtualClock
let files: HostFiles
let pullError: Error | undefined
let unfitness: string | undefined
let folderError: Error | undefined
/** Which of these each collection would have removed. */
let collected: string[][]
let pulls: number
let pullMs: number
let version: () => Promise<number>
let preparer: Preparer

beforeEach(() => {
  clock = createVirtualClock(undefined, { settleTurns: 0 })
  files = createHostFiles(clock)
  pullError = unfitness = folderError = undefined
  collected = []
  pulls = pullMs = 0
  version = async () => 257
  const { root, disk } = files
  const openImageStore: Platform['openImageStore'] = (folder) => {
    const store = openSimulatedStore(folder, {
      disk,
      clock,
      registry: () => ownImage,
      fetchFate: () => ({ durationMs: pullMs }),
      onStored: () => void pulls++,
    })
    return {
      ...store,
      async checkImage(reference, options) {
        if (pullError) throw pullError
        return await store.checkImage(reference, options)
      },
      async ensureImage(reference, options) {
        if (pullError) throw pullError
        return await store.ensureImage(reference, options)
      },
      async collect(isUsed) {
        collected.push([ownImage.digest, otherDigest].filter((digest) => !isUsed(digest)))
        return []
      },
    }
  }
  const mkdirp: typeof root.mkdirp = async (...parameters) => {
    if (folderError) throw folderError
    return await root.mkdirp(...parameters)
  }
  preparer = createPreparer({
    platform: {
      clock,
      random: { ...createSeededRandom(1), number: () => 0 },
      log: createLog('silent', {}),
      openImageStore,
      root: { ...root, mkdirp },
    },
    settings: settingsOf('n', '/'),
    references: { secret: async () => undefined, configMap: async () => undefined },
    whyUnfit: async () => unfitness,
    units: { version: async () => await version() },
    signal: new AbortController().signal,
  })
})

async function prepare(requested: PackageImage, depth: PreparationDepth): Promise<void> {
  const prepared = preparer.prepare(requested, depth)
  await clock.advance(0)
  await prepared
}
const found = (requested = image): unknown => preparer.current().get(preparationKey(requested))

test('a prepared package is known by its tag and by its digest', async () => {
  await prepare(image, 'layers')
  expect(found()).toMatchObject({ state: 'ready', config: { packageName: 'fake' } })
  const { digest } = found() as { digest: string }
  expect(found({ ...image, digest })).toEqual(found())
  expect(files.exists(`${preparer.contentOf(digest)}/config.json`)).toBe(true)
})

test('a failed pull is retried after 5 s, doubled with each failure', async () => {
  pullError = new ImageError('not-found', 'no such tag')
  await prepare(image, 'layers')
  const failed = { state: 'failed', reason: 'ImagePull', code: 'not-found' }
  expect(found()).toMatchObject({ ...failed, retryAtMs: clock.wallMs() + 5_000 })
  await prepare(image, 'layers')
  expect(found()).toMatchObject({ retryAtMs: clock.wallMs() + 10_000 })
  pullError = undefined
  await prepare(image, 'layers')
  pullError = new ImageError('not-found', 'no such tag')
  await prepare(image, 'layers')
  expect(found()).toMatchObject({ retryAtMs: clock.wallMs() + 5_000 })
})

test('a folder of images that cannot be made fails one pull, and the next one makes it', async () => {
  folderError = Object.assign(new Error('EROFS: read-only file system, mkdir'), { code: 'EROFS' })
  await prepare(image, 'layers')
  expect(found()).toMatchObject({ state: 'failed', reason: 'HostUnusable' })
  folderError = undefined
  await prepare(image, 'layers')
  expect(found()).toMatchObject({ state: 'ready' })
})

test('an image that is not a package is invalid, and a full disk is a problem of the host', async () => {
  pullError = new ImageError('bad-image', 'no layers')
  await prepare(image, 'layers')
  expect(found()).toMatchObject({ reason: 'InvalidPackage' })
  pullError = Object.assign(new Error('ENOSPC: no space left'), { code: 'ENOSPC' })
  await prepare(image, 'layers')
  expect(found()).toMatchObject({ reason: 'HostUnusable' })
})

test('nothing is fetched for a host that is unfit', async () => {
  unfitness = 'the host has no /bin/sh'
  await prepare(image, 'layers')
  expect(found()).toMatchObject({ state: 'failed', reason: 'HostUnusable', message: unfitness })
  expect([...preparer.current().values()]).toHaveLength(1)
})

test('a value that the systemd of the host would drop fails the preparation', async () => {
  const requested = { ...image, references: { env: [{ name: 'PEM', value: 'BEGIN\r\n' }] } } as PackageImage
  version = async () => 247
  await prepare(requested, 'layers')
  const message = expect.stringContaining('env PEM contains the control character U+000D') as unknown
  expect(found(requested)).toMatchObject({ state: 'failed', reason: 'InvalidSpec', message })
  version = async () => {
    throw new NoReplyError('timeout', 'Get: no answer within 25000 ms')
  }
  await prepare(requested, 'layers')
  expect(found(requested)).toMatchObject({ state: 'failed', reason: 'HostUnreachable' })
  version = async () => 248
  await prepare(requested, 'layers')
  expect(found(requested)).toMatchObject({ state: 'ready' })
})

test('a reference that is missing fails the preparation and not the content', async () => {
  const env = [{ name: 'A', valueFrom: { secretKeyRef: { name: 'none', key: 'k' } } }]
  const requested = { ...image, references: { env } } as PackageImage
  await prepare(requested, 'layers')
  expect(found(requested)).toMatchObject({ state: 'failed', reason: 'ReferenceMissing' })
  expect([...preparer.current().values()].map(({ state }) => state)).toEqual(['ready', 'failed'])
})

test('a collection keeps what is prepared and needed', async () => {
  await prepare(image, 'layers')
  await preparer.collect(() => emptyJournal('n'))
  expect(collected.at(-1)).toEqual([otherDigest])
  preparer.retain(new Set())
  await preparer.collect(() => emptyJournal('n'))
  expect(collected.at(-1)).toEqual([ownImage.digest, otherDigest])
})

test('a collection does not wait for a pull, and keeps the image that is pulled', async () => {
  pullMs = 200
  const prepared = preparer.prepare(image, 'layers')
  await clock.advance(199) // the digest is known, the pull has not ended
  await preparer.collect(() => emptyJournal('n'))
  expect(collected).toEqual([[otherDigest]])
  await clock.advance(1)
  await prepared
  expect(found()).toMatchObject({ state: 'ready' })
})

test('an image that is checked is not fetched until its layers are wanted', async () => {
  await prepare(image, 'manifest')
  expect([found(), pulls]).toEqual([{ state: 'checked' }, 0])
  await prepare(image, 'layers')
  expect([found(), pulls]).toMatchObject([{ state: 'ready' }, 1])
})

test('an image that is on the host is complete when its manifest is checked', async () => {
  await prepare(image, 'layers')
  preparer.retain(new Set())
  await prepare(image, 'manifest')
  expect([found(), pulls]).toMatchObject([{ state: 'ready', config: { packageName: 'fake' } }, 1])
})

test('a failure of an image that nobody wanted meanwhile starts over, in its age and its pause', async () => {
  pullError = new ImageError('not-found', 'no such tag')
  await prepare(image, 'layers')
  await prepare(image, 'layers')
  preparer.retain(new Set())
  await clock.advance(600_000)
  await prepare(image, 'layers')
  expect(found()).toMatchObject({ failingSinceMs: clock.steadyMs(), retryAtMs: clock.steadyMs() + 5_000 })
})

test('a missing reference fails the check of a manifest', async () => {
  const env = [{ name: 'A', valueFrom: { secretKeyRef: { name: 'none', key: 'k' } } }]
  const requested = { ...image, references: { env } } as PackageImage
  await prepare(requested, 'manifest')
  expect([found(requested), pulls]).toMatchObject([{ state: 'failed', reason: 'ReferenceMissing' }, 0])
})

test.each(['manifest', 'layers'] as const)('a failure says that it happened at the %s', async (depth) => {
  pullError = new ImageError('not-found', 'no such tag')
  await prepare(image, depth)
  expect(found()).toMatchObject({ state: 'failed', reason: 'ImagePull', depth })
})
