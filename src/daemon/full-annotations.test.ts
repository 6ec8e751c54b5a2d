/** All annotations of an object share 256 KiB. A writer that uses them up is named, and does not delay other work. */
import { expect, test } from 'vitest'
import { merge, nodesPath } from '../../test/kit/api-server/sample-server.ts'
import { packageImage } from '../../test/kit/host/package-image.ts'
import { packageSpec, type SampleLife, startSampleLife } from '../../test/kit/host/sample-life.ts'
import { ImageError } from '../packages/oci/errors.ts'
import { skyhookTypeMeta } from '../schemas/api.ts'

const limitBytes = 256 * 1024
const interrupted = { tuned: packageSpec('tuned', { type: 'service', services: ['web'] }) }

async function startWithService(isKept = true): Promise<SampleLife> {
  const life = await startSampleLife({
    seed: 1,
    isKept,
    registry({ repository, tag = '' }) {
      if (repository === 'huge') throw new ImageError('unsupported', `the index has ${'plan9/vax, '.repeat(30_000)}`)
      return packageImage(repository, tag)
    },
  })
  life.host.systemd.addService('web.service', { restart: () => ({ durationMs: 400, result: 'done' }) })
  return life
}

const annotationsOf = (life: SampleLife): Readonly<Record<string, string>> => life.node()?.metadata.annotations ?? {}
const bytesOf = (annotations: Readonly<Record<string, string>>): number =>
  Object.entries(annotations).reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0)
const isCordoned = (life: SampleLife): boolean => life.node()?.spec?.unschedulable === true
const slots = ({ server }: SampleLife): readonly string[] =>
  server
    .objects('leases')
    .map(({ metadata }) => metadata.name)
    .filter((name) => /\.(slot|node)-/.test(name))

/** Another controller uses all but a few of the remaining bytes. */
async function fill(life: SampleLife, leftBytes: number): Promise<void> {
  const key = 'example.com/huge'
  const { [key]: _, ...others } = annotationsOf(life)
  const value = 'x'.repeat(limitBytes - bytesOf(others) - key.length - leftBytes)
  const body = { metadata: { annotations: { [key]: value } } }
  await life.admin.json('PATCH', `${nodesPath}/n1`, { body, contentType: merge })
}

test('the API server refuses a Node whose annotations have more than 256 KiB', async () => {
  const life = await startWithService(false)
  await life.clock.advance(5_000)
  await fill(life, 0)
  await expect(fill(life, -1)).rejects.toThrow('metadata.annotations: Too long: may not be more than 262144 bytes')
})

test.each([0, 30, 200, 1_000])(
  'a node whose annotations fill up during its work, but for %i bytes, is uncordoned and gives its slot back',
  async (leftBytes) => {
    const life = await startWithService()
    await life.apply(interrupted)
    await life.until(() => isCordoned(life) && slots(life).length > 0)
    await fill(life, leftBytes)
    const tookMs = await life.until(() => !isCordoned(life) && slots(life).length === 0, 300_000)
    expect(tookMs).toBeLessThan(120_000)
    expect(Object.keys(annotationsOf(life)).filter((key) => key.includes('/cordon_'))).toEqual([])
  },
)

test('the largest annotation is named in the log where the Node cannot be written', async () => {
  const life = await startWithService()
  await life.until(() => life.node()?.metadata.annotations?.['skyhook.nvidia.com/host'] !== undefined)
  await fill(life, 0)
  await life.apply(interrupted)
  const isNamed = (): boolean => life.lines.some((line) => JSON.stringify(line).includes('example.com/huge'))
  await life.until(isNamed, 120_000)
  expect(bytesOf(annotationsOf(life))).toBeLessThanOrEqual(limitBytes)
})

test('a Node without room is written again as soon as there is some', async () => {
  const life = await startWithService()
  await life.until(() => life.node()?.metadata.annotations?.['skyhook.nvidia.com/host'] !== undefined)
  await fill(life, 0)
  await life.apply(interrupted)
  await life.clock.advance(30_000)
  const body = { metadata: { annotations: { 'example.com/huge': null } } }
  await life.admin.json('PATCH', `${nodesPath}/n1`, { body, contentType: merge })
  await life.until(() => life.status() === 'complete', 300_000)
  expect(life.steps()).toContain('tuned apply')
})

/** A second Skyhook before `s`, which is at work. */
async function applyAnother({ admin }: SampleLife, packages: object): Promise<void> {
  const spec = { nodeSelectors: { matchLabels: { pool: 'x' } }, priority: 1, packages }
  const body = { ...skyhookTypeMeta, metadata: { name: 'other' }, spec }
  await admin.json('POST', `/apis/${skyhookTypeMeta.apiVersion}/skyhooks`, { body })
}

/** Its remaining slots. */
async function untilFree(life: SampleLife): Promise<readonly string[]> {
  await life.until(() => life.status() === 'complete' && !isCordoned(life), 120_000)
  const own = (): readonly string[] => slots(life).filter((name) => name.startsWith('s-'))
  await life.until(() => own().length === 0, 60_000)
  return own()
}

test('a Skyhook about whose image a registry says 300 KB holds up no other one', async () => {
  const life = await startWithService()
  await life.apply(interrupted)
  await life.until(() => isCordoned(life))
  await applyAnother(life, { p: packageSpec('huge') })
  expect(await untilFree(life)).toEqual([])
  await life.until(() => annotationsOf(life)['skyhook.nvidia.com/reason_other']?.includes('plan9/vax') === true, 60_000)
})

test('a Skyhook whose own state has no room holds up no other one', async () => {
  const life = await startWithService()
  await life.apply(interrupted)
  await life.until(() => isCordoned(life))
  await fill(life, 4_500)
  // the maximum of the resource definition: 64 packages with long images
  const image = `registry.test/${'x'.repeat(490)}`
  await applyAnother(
    life,
    Object.fromEntries(Array.from({ length: 64 }, (_, at) => [`p${at}`, { version: '1.0.0', image }])),
  )
  expect(await untilFree(life)).toEqual([])
  await life.until(() => JSON.stringify(life.lines).includes('Too long'), 60_000)
})
