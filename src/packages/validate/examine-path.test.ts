import { createHash } from 'node:crypto'
import { chmodSync, cpSync, createWriteStream, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { pack } from 'tar-stream'
import { beforeEach, describe, expect, test } from 'vitest'
import { temporaryFolder } from '../../../test/kit/files/temporary-folder.ts'
import { systemRandom } from '../../daemon/platform/system-clock.ts'
import { createHostRoot } from '../../host/fs/host-root.ts'
import { readFolder, writeLayer } from '../oci/write/layer.ts'
import { type BuiltImage, buildImage, writeLayoutArchive } from '../oci/write/layout.ts'
import { examinePath } from './examine.ts'

const fixtures = join(import.meta.dirname, '../../../test/fixtures/packages')
const root = createHostRoot('/', systemRandom)
let folder = ''

beforeEach(() => {
  folder = temporaryFolder()
  mkdirSync(join(folder, 'tmp'))
})

const examine = async (path: string, subject = 'subject') =>
  await examinePath({ root, temporaryFolder: join(folder, 'tmp') }, path, subject)
const rulesOf = async (path: string) => {
  const examination = await examine(path)
  return examination.outcome === 'examined'
    ? examination.examined.map(({ findings }) => findings.map(({ rule }) => rule))
    : examination.outcome
}

async function imageOf(packageDir: string, architecture: string): Promise<BuiltImage> {
  const entries = await readFolder(packageDir, 'skyhook-package')
  const layer = await writeLayer(entries, join(folder, `layer-${architecture}.tar.gz`))
  return buildImage([layer], { architecture })
}

async function archiveOf(images: readonly BuiltImage[]): Promise<string> {
  const file = join(folder, 'image.tar')
  await writeLayoutArchive(file, images, 'registry.example.com/p:1.0.0')
  return file
}

async function tarOf(entries: Readonly<Record<string, Buffer | string>>): Promise<string> {
  const file = join(folder, 'hand-made.tar')
  const archive = pack()
  for (const [name, content] of Object.entries(entries)) archive.entry({ name }, content)
  archive.finalize()
  await pipeline(archive as unknown as Readable, createWriteStream(file))
  return file
}

describe('a folder', () => {
  test('a valid package folder has no findings and says what it is', async () => {
    const config = { packageName: 'shellscript', packageVersion: expect.stringMatching(/^\d/) as string }
    expect(await examine(join(fixtures, 'shellscript'))).toMatchObject({
      outcome: 'examined',
      examined: [
        {
          subject: 'subject',
          kind: 'package',
          findings: [],
          package: { name: 'shellscript', version: config.packageVersion, config, hostFiles: new Map() },
        },
      ],
    })
  })

  test('a step without its file is an error with file, place, value, rule and remedy', async () => {
    expect(await examine(join(fixtures, 'missing-step'))).toMatchObject({
      examined: [
        {
          findings: [
            {
              severity: 'error',
              file: 'subject/config.json',
              pointer: expect.stringMatching(/^\/modes\/.*\/path$/) as string,
              value: expect.stringContaining('.sh') as string,
              rule: 'step-file/missing',
              message: 'is not in skyhook_dir/',
              remedy: 'add the file below skyhook_dir/, or correct the path',
            },
          ],
        },
      ],
    })
  })

  test.each([
    ['FROM scratch', false],
    ['FROM golang:1.25 AS build\nFROM scratch', false],
    ['FROM registry.example.com/packages/tuned:1.0.0', true],
    [
      '# syntax=docker/dockerfile:1\nfrom --platform=linux/amd64 registry.example.com/packages/tuned:1.0.0 AS base',
      true,
    ],
  ])('a step without its file, beside a Dockerfile with %j, may be in the base image: %s', async (text, mayBe) => {
    cpSync(join(fixtures, 'missing-step'), join(folder, 'p'), { recursive: true })
    writeFileSync(join(folder, 'p/Dockerfile'), `${text}\n`)
    const remedy = expect.stringMatching('base image of the Dockerfile') as string
    expect(await examine(join(folder, 'p'))).toMatchObject({
      examined: [
        { findings: [{ rule: 'step-file/missing', remedy: mayBe ? remedy : expect.not.stringMatching('image') }] },
      ],
    })
  })

  test('a script with Windows line ends below its first line is a warning with the line', async () => {
    cpSync(join(fixtures, 'wants-settings'), join(folder, 'p'), { recursive: true })
    const [script = ''] = readdirSync(join(folder, 'p/skyhook_dir'))
    expect(await rulesOf(join(folder, 'p'))).toEqual([[]])
    writeFileSync(join(folder, 'p/skyhook_dir', script), '#!/bin/sh\necho a\nif true; then\r\n  echo b\r\nfi\r\n')
    expect(await examine(join(folder, 'p'))).toMatchObject({
      examined: [
        {
          findings: [
            {
              severity: 'warning',
              rule: 'step-file/line-ends',
              value: script,
              message: 'has Windows line endings from line 3 on: its interpreter reads the carriage return as text',
            },
          ],
        },
      ],
    })
  })

  test.each([
    ['broken-config', 'schema/type'],
    ['missing-first-line', 'step-file/not-executable'],
  ])('the package %s violates the rule %s', async (name, rule) => {
    const [rules] = (await rulesOf(join(fixtures, name))) as string[][]
    expect(rules).toContain(rule)
  })

  test('a config.json stands for its folder', async () => {
    const path = join(fixtures, 'missing-step/config.json')
    expect(await examine(path, 'a/b/config.json')).toMatchObject({
      examined: [{ subject: 'a/b', findings: [{ file: 'a/b/config.json' }] }],
    })
    expect(await examine(path, 'config.json')).toMatchObject({ examined: [{ findings: [{ file: 'config.json' }] }] })
  })

  test('a folder without config.json is an invalid package', async () => {
    expect(await rulesOf(join(folder, 'tmp'))).toEqual([['config-file']])
  })

  test('an expected file in a folder is a warning, since no configMap can have it', async () => {
    cpSync(join(fixtures, 'wants-settings'), join(folder, 'p'), { recursive: true })
    const config = JSON.parse('{}') as Record<string, unknown>
    Object.assign(config, JSON.parse(await text(join(folder, 'p/config.json'))))
    config['expected_config_files'] = ['plain.conf', 'sub/deep.conf']
    writeFileSync(join(folder, 'p/config.json'), JSON.stringify(config))
    expect(await examine(join(folder, 'p'))).toMatchObject({
      examined: [{ findings: [{ severity: 'warning', rule: 'expected-file-folder', value: 'sub/deep.conf' }] }],
    })
    mkdirSync(join(folder, 'p/configmaps/sub'), { recursive: true })
    writeFileSync(join(folder, 'p/configmaps/sub/deep.conf'), '') // beside any configMap
    expect(await rulesOf(join(folder, 'p'))).toEqual([[]])
  })
})

describe('an archive', () => {
  test('an archive of one image is examined by its content, and nothing stays in the temporary folder', async () => {
    expect(await rulesOf(await archiveOf([await imageOf(join(fixtures, 'shellscript'), 'amd64')]))).toEqual([[]])
    expect(await rulesOf(await archiveOf([await imageOf(join(fixtures, 'missing-step'), 'amd64')]))).toEqual([
      ['step-file/missing'],
    ])
    expect(readdirSync(join(folder, 'tmp'))).toEqual([])
  })

  test('the same content for several architectures is examined once', async () => {
    const images = [await imageOf(join(fixtures, 'shellscript'), 'amd64')]
    images.push(await imageOf(join(fixtures, 'shellscript'), 'arm64'))
    expect(await rulesOf(await archiveOf(images))).toEqual([[]])
  })

  test('different content is examined for each architecture', async () => {
    const images = [await imageOf(join(fixtures, 'shellscript'), 'amd64')]
    images.push(await imageOf(join(fixtures, 'missing-step'), 'arm64'))
    expect(await examine(await archiveOf(images))).toMatchObject({
      examined: [
        { subject: 'subject (linux/amd64)', findings: [] },
        { subject: 'subject (linux/arm64)', findings: [{ rule: 'step-file/missing' }] },
      ],
    })
  })

  test('an archive as docker save writes it is examined', async () => {
    const layer = await writeLayer(
      await readFolder(join(fixtures, 'shellscript'), 'skyhook-package'),
      join(folder, 'layer.tar.gz'),
    )
    const archive = await tarOf({
      'manifest.json': JSON.stringify([{ Config: 'c.json', RepoTags: ['p:1'], Layers: ['x/layer.tar'] }]),
      'c.json': '{}',
      'x/layer.tar': await bytes(layer.file),
    })
    expect(await rulesOf(archive)).toEqual([[]])
  })

  test('a bare layer with the package folder is examined', async () => {
    const entries = await readFolder(join(fixtures, 'missing-step'), 'skyhook-package')
    expect(await rulesOf((await writeLayer(entries, join(folder, 'bare.tar.gz'))).file)).toEqual([
      ['step-file/missing'],
    ])
  })

  test('an image without the package folder is invalid', async () => {
    const entries = await readFolder(join(fixtures, 'shellscript'), 'elsewhere')
    const layer = await writeLayer(entries, join(folder, 'layer.tar.gz'))
    expect(await rulesOf(await archiveOf([buildImage([layer], { architecture: 'amd64' })]))).toEqual([
      ['image/bad-image'],
    ])
  })

  test('a changed blob is found by its digest', async () => {
    const manifest = {
      schemaVersion: 2,
      config: descriptor(Buffer.from('{}')),
      layers: [descriptor(Buffer.from('abc'))],
    }
    const document = Buffer.from(JSON.stringify(manifest))
    const [layer] = manifest.layers
    const archive = await tarOf({
      'oci-layout': '{"imageLayoutVersion":"1.0.0"}',
      'index.json': JSON.stringify({
        schemaVersion: 2,
        manifests: [{ ...descriptor(document), mediaType: 'application/vnd.oci.image.manifest.v1+json' }],
      }),
      [blobPath(document)]: document,
      [`blobs/sha256/${layer?.digest.slice(7)}`]: 'abX',
    })
    expect(await rulesOf(archive)).toEqual([['image/digest-mismatch']])
  })

  test('an archive that is cut off, or of something else, is invalid', async () => {
    const whole = await bytes(await archiveOf([await imageOf(join(fixtures, 'shellscript'), 'amd64')]))
    writeFileSync(join(folder, 'cut.tar'), whole.subarray(0, whole.length - 2000))
    expect(await rulesOf(join(folder, 'cut.tar'))).toEqual([['image/bad-image']])
    expect(await rulesOf(await tarOf({ 'readme.txt': 'hello' }))).toEqual([['image/bad-image']])
  })

  test('names in an archive choose no place on this machine', async () => {
    await examine(await tarOf({ '../../escaped': 'x', [`${folder}/escaped`]: 'x', 'index.json': '{}' }))
    expect(readdirSync(folder)).not.toContain('escaped')
    expect(readdirSync(join(folder, 'tmp'))).toEqual([])
  })
})

test('a path with nothing and a file that is not a package have different findings', async () => {
  expect(await rulesOf(join(folder, 'gone'))).toBe('not-found')
  writeFileSync(join(folder, 'skyhook.yaml'), 'kind: Skyhook\n')
  expect(await rulesOf(join(folder, 'skyhook.yaml'))).toBe('not-a-package')
})

test('a script without execute permission is valid, since agents set it', async () => {
  cpSync(join(fixtures, 'shellscript'), join(folder, 'p'), { recursive: true })
  chmodSync(join(folder, 'p/skyhook_dir/shellscript_run.sh'), 0o644)
  expect(await rulesOf(join(folder, 'p'))).toEqual([[]])
})

const bytes = async (file: string): Promise<Buffer> => await root.readFile(file)
const text = async (file: string): Promise<string> => (await bytes(file)).toString()
const digest = (content: Buffer) => createHash('sha256').update(content).digest('hex')
const blobPath = (content: Buffer) => `blobs/sha256/${digest(content)}`
const descriptor = (content: Buffer) => ({
  mediaType: 'application/vnd.oci.image.layer.v1.tar',
  digest: `sha256:${digest(content)}`,
  size: content.length,
})
