import { describe, expect, test } from 'vitest'
import { fakeIndex } from '../../../test/kit/registry/registry-documents.ts'
import {
  type ImageIndex,
  ociConfigType,
  ociIndexType,
  ociLayerGzipType,
  ociManifestType,
  parseManifest,
  selectPlatform,
} from './manifest.ts'
import { type Digest, digestOf } from './reference.ts'

const dockerManifest = 'application/vnd.docker.distribution.manifest.v2+json'
const descriptor = (mediaType: string, size: unknown = 1) => ({ mediaType, size, digest: digestOf(mediaType) })
const image = (layer: string = ociLayerGzipType, more: object = {}) => ({
  schemaVersion: 2,
  config: descriptor(ociConfigType),
  layers: [descriptor(layer)],
  ...more,
})
const parse = (document: unknown, contentType?: string) =>
  parseManifest(Buffer.from(JSON.stringify(document)), contentType)

describe('what a registry may make of a message', () => {
  const long = 'z'.repeat(3_000_000)

  test.each([
    ['a type of 3 MB', { schemaVersion: 2, mediaType: long }],
    ['a type of a layer of 3 MB', image(long)],
    ['a digest of 3 MB', { ...image(), config: { ...descriptor(ociConfigType), digest: long } }],
  ])('%s is not quoted as a whole', (_, document) => {
    expect(() => parse(document)).toThrow(/^.{1,1024}$/s)
  })

  test('an index names a few of its 12,000 platforms', () => {
    const manifests = Array.from({ length: 12_000 }, (_, at) => ({
      ...descriptor(ociManifestType),
      platform: { os: 'plan9', architecture: `vax${at}` },
    }))
    const index = parse({ schemaVersion: 2, mediaType: ociIndexType, manifests }) as ImageIndex
    expect(() => selectPlatform(index, 'amd64')).toThrow(
      /^no image for linux\/amd64 \(the index has plan9\/vax0, .* and 11990 more\)$/,
    )
  })
})

describe('a manifest', () => {
  test.each([
    ['with an OCI media type of its own', image(ociLayerGzipType, { mediaType: ociManifestType }), undefined],
    [
      'with a docker content type',
      image('application/vnd.docker.image.rootfs.diff.tar.gzip'),
      `${dockerManifest}; charset=utf-8`,
    ],
    ['without any media type', image('application/vnd.oci.image.layer.v1.tar+zstd'), 'application/json'],
    [
      'with layers not for redistribution',
      image('application/vnd.oci.image.layer.nondistributable.v1.tar'),
      ociManifestType,
    ],
  ])('a manifest %s is accepted', (_name, document, contentType) => {
    expect(parse(document, contentType)).toMatchObject({ kind: 'image', layers: [{ size: 1 }] })
  })

  test.each([
    ['docker schema 1', { schemaVersion: 1, fsLayers: [] }, undefined, 'unsupported'],
    ['an artifact', image('application/vnd.cncf.helm.chart.content.v1.tar+gzip'), ociManifestType, 'unsupported'],
    ['another type', image(ociLayerGzipType, { mediaType: 'text/html' }), undefined, 'unsupported'],
    ['one that is an index too', image(ociLayerGzipType, { manifests: [] }), ociManifestType, 'bad-response'],
    [
      'one that calls itself something else',
      image(ociLayerGzipType, { mediaType: ociIndexType }),
      ociManifestType,
      'bad-response',
    ],
    [
      'a negative size',
      image(ociLayerGzipType, { config: descriptor(ociConfigType, -1) }),
      ociManifestType,
      'bad-response',
    ],
    [
      'sha512',
      { ...image(), config: { ...descriptor(ociConfigType), digest: `sha512:${'0'.repeat(128)}` } },
      ociManifestType,
      'unsupported',
    ],
    ['a list', [], ociManifestType, 'bad-response'],
    ['no layers', { schemaVersion: 2 }, ociManifestType, 'bad-response'],
    [
      'too many layers',
      { ...image(), layers: Array.from({ length: 300 }, () => descriptor(ociLayerGzipType)) },
      ociManifestType,
      'too-large',
    ],
  ])('a manifest with a defect is refused: %s', (_name, document, contentType, code) => {
    expect(() => parse(document, contentType)).toThrow(expect.objectContaining({ code }))
  })
})

describe('the image of an index', () => {
  const digest = (name: string): Digest => digestOf(name)
  const index = (...platforms: [name: string, architecture: string, variant?: string | undefined, os?: string][]) => {
    const entries = platforms.map(([name, architecture, variant, os]) => ({
      digest: digest(name),
      size: 1,
      architecture,
      ...(variant && { variant }),
      ...(os && { os }),
    }))
    return parse(fakeIndex(entries)) as ImageIndex
  }

  test.each([
    ['amd64', index(['a', 'arm64'], ['b', 'amd64']), 'b'],
    // every machine has the baseline, not every machine has v3
    ['amd64', index(['v3', 'amd64', 'v3'], ['plain', 'amd64']), 'plain'],
    ['arm64', index(['v9', 'arm64', 'v9'], ['v8', 'arm64', 'v8']), 'v8'],
    ['arm64', index(['plain', 'arm64']), 'plain'],
    ['amd64', index(['win', 'amd64', undefined, 'windows'], ['lin', 'amd64']), 'lin'],
  ])('an index has an image for %s', (architecture, from, expected) => {
    expect(selectPlatform(from, architecture).digest).toBe(digest(expected))
  })

  test('a missing platform is reported with the available ones', () => {
    const only = index(['a', 'arm64'], ['attestation', 'unknown', undefined, 'unknown'])
    expect(() => selectPlatform(only, 'amd64')).toThrow(
      'no image for linux/amd64 (the index has linux/arm64, unknown/unknown)',
    )
  })
})
