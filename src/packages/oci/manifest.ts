import { isObject, type JsonObject } from '../../schemas/json.ts'
import { ImageError } from './errors.ts'
import { named } from '../../schemas/wording.ts'
import { type Digest, isDigest } from './reference.ts'

export type Descriptor = {
  readonly mediaType: string
  readonly digest: Digest
  readonly size: number
}

export type Platform = { readonly os: string; readonly architecture: string; readonly variant?: string }

export type ImageManifest = {
  readonly kind: 'image'
  readonly config: Descriptor
  readonly layers: readonly Descriptor[]
}
export type ImageIndex = {
  readonly kind: 'index'
  readonly manifests: readonly (Descriptor & { readonly platform?: Platform })[]
}

export const ociManifestType = 'application/vnd.oci.image.manifest.v1+json'
export const ociIndexType = 'application/vnd.oci.image.index.v1+json'
export const ociConfigType = 'application/vnd.oci.image.config.v1+json'
export const ociLayerGzipType = 'application/vnd.oci.image.layer.v1.tar+gzip'
const dockerManifestType = 'application/vnd.docker.distribution.manifest.v2+json'
const dockerIndexType = 'application/vnd.docker.distribution.manifest.list.v2+json'
const dockerSchema1Pattern = /^application\/vnd\.docker\.distribution\.manifest\.v1\+/

/** The value of `Accept`: without it registries convert or refuse. */
export const acceptedManifestTypes = [ociIndexType, dockerIndexType, ociManifestType, dockerManifestType].join(', ')

/**
 * Tar archives, plain or compressed in a format that Node can decompress. Layers that registries may not distribute
 * ("foreign") are archives too.
 */
const layerTypePattern =
  /^application\/vnd\.(?:oci\.image\.layer(?:\.nondistributable)?\.v1\.tar(?:\+gzip|\+zstd)?|docker\.image\.rootfs(?:\.foreign)?\.diff\.tar(?:\.gzip|\.zstd)?)$/

const maxLayers = 256 // overlay file systems support half of that

/**
 * Reads a manifest or an index of either family. The document's own `mediaType` must equal the Content-Type of the
 * registry, and a document may not be both: two readers must not see different images in one digest (CVE-2021-41190).
 * @throws ImageError unsupported, bad-response
 */
export function parseManifest(bytes: Buffer, contentType: string | undefined): ImageManifest | ImageIndex {
  let document: unknown
  try {
    document = JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    throw new ImageError('bad-response', 'the manifest is not JSON', { cause: error })
  }
  if (!isObject(document)) throw new ImageError('bad-response', 'the manifest is not an object')
  const servedType = contentType?.split(';')[0]?.trim().toLowerCase()
  const declaredType = typeof document['mediaType'] === 'string' ? document['mediaType'] : undefined
  if (document['schemaVersion'] === 1 || dockerSchema1Pattern.test(servedType ?? '')) {
    throw new ImageError('unsupported', 'a manifest of docker schema 1: build the image again')
  }
  const mediaType =
    declaredType ??
    (isKnownManifestType(servedType) ? servedType : undefined) ??
    ('manifests' in document ? ociIndexType : ociManifestType)
  if (isKnownManifestType(servedType) && servedType !== mediaType)
    throw new ImageError('bad-response', `a manifest served as ${servedType} has the mediaType ${mediaType}`)

  const isIndex = mediaType === ociIndexType || mediaType === dockerIndexType
  if (!isIndex && mediaType !== ociManifestType && mediaType !== dockerManifestType)
    throw new ImageError('unsupported', `a manifest of type ${mediaType}`)
  if ('manifests' in document && ('layers' in document || 'config' in document))
    throw new ImageError('bad-response', 'a manifest that is also an index')
  return isIndex ? readIndex(document) : readImage(document)
}

/**
 * The image of an index for linux on the architecture, in OCI's spelling (`amd64`, `arm64`).
 * @throws ImageError unsupported, naming the platforms of the index
 */
export function selectPlatform({ manifests }: ImageIndex, architecture: string): Descriptor {
  const candidates = manifests.filter(
    ({ platform }) => platform?.os === 'linux' && platform.architecture === architecture,
  )
  // all arm64 machines have this variant, whether the index names it or not
  const baselineVariants = architecture === 'arm64' ? ['v8', ''] : ['']
  const found = candidates.find(({ platform }) => baselineVariants.includes(platform?.variant ?? '')) ?? candidates[0]
  if (found !== undefined) return found
  const offeredPlatforms = manifests.map(({ platform }) =>
    platform === undefined ? 'unnamed' : `${platform.os}/${platform.architecture}`,
  )
  const offered = named([...new Set(offeredPlatforms)], maxNamedPlatforms) || 'none'
  throw new ImageError('unsupported', `no image for linux/${architecture} (the index has ${offered})`)
}

const maxNamedPlatforms = 10

/** This process's architecture as OCI spells it. */
export function ociArchitecture(nodeArchitecture: string = process.arch): string {
  return nodeArchitecture === 'x64' ? 'amd64' : nodeArchitecture
}

function readIndex(document: JsonObject): ImageIndex {
  const manifests = document['manifests']
  if (!Array.isArray(manifests)) throw new ImageError('bad-response', 'an index without "manifests"')
  return { kind: 'index', manifests: manifests.map((one) => ({ ...readDescriptor(one), ...readPlatform(one) })) }
}

function readImage(document: JsonObject): ImageManifest {
  const { config, layers } = document
  if (!Array.isArray(layers)) throw new ImageError('bad-response', 'a manifest without "layers"')
  if (layers.length > maxLayers) throw new ImageError('too-large', `${layers.length} layers, more than ${maxLayers}`)
  const read = layers.map(readDescriptor)
  const unsupportedLayer = read.find(({ mediaType }) => !layerTypePattern.test(mediaType))
  if (unsupportedLayer !== undefined)
    throw new ImageError('unsupported', `a layer of type ${unsupportedLayer.mediaType}: not a container image`)
  return { kind: 'image', config: readDescriptor(config), layers: read }
}

function readDescriptor(value: unknown): Descriptor {
  if (!isObject(value)) throw new ImageError('bad-response', 'a descriptor is not an object')
  const { mediaType, digest, size } = value
  if (typeof mediaType !== 'string') throw new ImageError('bad-response', 'a descriptor without "mediaType"')
  if (typeof digest !== 'string' || !isDigest(digest))
    throw new ImageError('unsupported', `digest ${String(digest)}: only sha256 is supported`)
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0)
    throw new ImageError('bad-response', `size of ${digest} is not a number of bytes`)
  return { mediaType, digest, size }
}

function readPlatform(value: unknown): { platform?: Platform } {
  const platform = isObject(value) ? value['platform'] : undefined
  if (!isObject(platform)) return {}
  const { os, architecture, variant } = platform
  if (typeof os !== 'string' || typeof architecture !== 'string') return {}
  return { platform: { os, architecture, ...(typeof variant === 'string' && { variant }) } }
}

function isKnownManifestType(mediaType: string | undefined): mediaType is string {
  return mediaType !== undefined && acceptedManifestTypes.split(', ').includes(mediaType)
}
