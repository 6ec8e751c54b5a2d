import { createHash, type Hash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { type Digest, digestOf, hexOf } from '../digest.ts'
import { ImageError, imageErrorCode } from '../errors.ts'
import { type RegistryResponse, connectionError } from './http.ts'
import {
  acceptedManifestTypes,
  type Descriptor,
  type ImageIndex,
  type ImageManifest,
  parseManifest,
  selectPlatform,
} from '../manifest.ts'
import { formatReference, type ImageReference } from '../reference.ts'
import type { RegistryClient } from './registry.ts'
import { readBody } from './error-response.ts'

/**
 * What a reference points at now. The digest names the index where there is one: it is what a user writes into
 * containerSHA.
 */
export type ResolvedImage = {
  readonly reference: ImageReference
  readonly digest: Digest
  readonly manifest: ImageManifest | ImageIndex
}

/** The image for one architecture. */
export type SelectedImage = {
  readonly manifestDigest: Digest
  readonly layers: readonly Descriptor[]
}

/** A layer on disk, verified. */
export type LayerFile = { readonly path: string; readonly descriptor: Descriptor }

export type PullLimits = {
  /** All layers together, as they are sent. */
  readonly downloadBytes: number
}

const maxManifestBytes = 4 * 1024 * 1024 // what registries accept at least, and most at most
const maxIndexDepth = 2
const defaultLimits: PullLimits = { downloadBytes: 4 * 1024 ** 3 }

/**
 * One request: asks what the reference points at, and verifies that it has the digest asked for.
 * @throws ImageError
 */
export async function resolveImage(
  client: RegistryClient,
  reference: ImageReference,
  signal: AbortSignal,
): Promise<ResolvedImage> {
  const tagOrDigest = reference.digest ?? reference.tag
  if (tagOrDigest === undefined)
    throw new ImageError('bad-reference', `${formatReference(reference)}: neither tag nor digest`)
  const capability = reference.digest === undefined ? 'resolve' : 'pull' // containerd's meaning: a mirror may hold bytes without being asked about tags
  const fetchManifest = async (
    endpoint: Parameters<Parameters<RegistryClient['attempt']>[2]>[0],
  ): Promise<ResolvedImage> => {
    const response = await client.call(
      endpoint,
      reference.repository,
      { method: 'GET', path: `/manifests/${tagOrDigest}`, headers: { accept: acceptedManifestTypes } },
      signal,
    )
    const bytes = await readBody(response, maxManifestBytes, signal)
    const digest = digestOf(bytes)
    const claimedDigest = reference.digest ?? claimedSha256(response)
    if (claimedDigest !== undefined && claimedDigest !== digest) {
      throw new ImageError('digest-mismatch', `${endpoint.host}: the manifest is ${digest}, not ${claimedDigest}`)
    }
    return { reference, digest, manifest: parseManifest(bytes, response.headers['content-type']) }
  }
  return await client.attempt(reference.host, capability, fetchManifest, signal)
}

/**
 * The manifest for the architecture: the resolved one itself, or one more request per level of index.
 * An image without index is taken on any architecture; of its files only scripts and data are ours.
 * @throws ImageError
 */
export async function selectImage(
  client: RegistryClient,
  resolved: ResolvedImage,
  architecture: string,
  signal: AbortSignal,
): Promise<SelectedImage> {
  let { manifest, digest } = resolved
  for (let depth = 0; manifest.kind === 'index'; depth++) {
    if (depth === maxIndexDepth) throw new ImageError('unsupported', `indexes nested more than ${maxIndexDepth} deep`)
    const { host, repository } = resolved.reference
    const chosen = selectPlatform(manifest, architecture)
    ;({ manifest, digest } = await resolveImage(client, { host, repository, digest: chosen.digest }, signal))
  }
  return { manifestDigest: digest, layers: manifest.layers }
}

/**
 * Downloads the layers one after another into the directory, each once. Bytes go to disk as they come; digest and size
 * are checked.
 * @throws ImageError; errors of the disk as they are
 */
export async function downloadLayers(
  client: RegistryClient,
  reference: ImageReference,
  layers: readonly Descriptor[],
  directory: string,
  signal: AbortSignal,
  limits: PullLimits = defaultLimits,
): Promise<LayerFile[]> {
  const totalBytes = layers.reduce((sum, { size }) => sum + size, 0)
  if (totalBytes > limits.downloadBytes) {
    throw new ImageError(
      'too-large',
      `${formatReference(reference)}: layers of ${totalBytes} bytes, more than ${limits.downloadBytes}`,
    )
  }
  const files = layers.map((descriptor): LayerFile => ({ path: join(directory, hexOf(descriptor.digest)), descriptor }))
  const uniqueFiles = new Map(files.map((file) => [file.path, file])) // empty layers repeat
  for (const file of uniqueFiles.values()) await downloadBlob(client, reference, file, signal)
  return files
}

/** A broken connection goes on where it broke, at whichever address answers; anything else begins anew. */
async function downloadBlob(
  client: RegistryClient,
  reference: ImageReference,
  { path, descriptor }: LayerFile,
  signal: AbortSignal,
): Promise<void> {
  const handle = await open(path, 'wx', 0o600)
  try {
    let progress = emptyProgress()
    await client.attempt(
      reference.host,
      'pull',
      async (endpoint) => {
        const headers: Record<string, string> = progress.bytes === 0 ? {} : { range: `bytes=${progress.bytes}-` }
        const response = await client.call(
          endpoint,
          reference.repository,
          { method: 'GET', path: `/blobs/${descriptor.digest}`, headers },
          signal,
        )
        if (!continuesAt(response, progress.bytes)) progress = emptyProgress()
        try {
          await saveBody(response, handle, progress, descriptor, signal)
        } catch (error) {
          if (imageErrorCode(error) !== 'unreachable') progress = emptyProgress() // those bytes are not to be built upon
          throw error
        }
        const digest = `sha256:${progress.hash.digest('hex')}`
        if (digest === descriptor.digest) return
        progress = emptyProgress()
        throw new ImageError('digest-mismatch', `${endpoint.host}: the layer is ${digest}, not ${descriptor.digest}`)
      },
      signal,
    )
  } finally {
    await handle.close()
  }
}

type Progress = { bytes: number; readonly hash: Hash }

function emptyProgress(): Progress {
  return { bytes: 0, hash: createHash('sha256') }
}

async function saveBody(
  response: RegistryResponse,
  handle: FileHandle,
  progress: Progress,
  { size, digest }: Descriptor,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const chunk of response.body as AsyncIterable<Buffer>) {
      if (progress.bytes + chunk.length > size)
        throw new ImageError('digest-mismatch', `${response.url.host}: ${digest} has more than its ${size} bytes`)
      for (let written = 0; written < chunk.length; ) {
        written += (await handle.write(chunk, written, chunk.length - written, progress.bytes + written)).bytesWritten
      }
      progress.hash.update(chunk)
      progress.bytes += chunk.length
    }
  } catch (error) {
    throw connectionError(error, response.url, signal)
  }
  if (progress.bytes < size)
    throw new ImageError(
      'unreachable',
      `${response.url.host}: ${digest} ended after ${progress.bytes} of ${size} bytes`,
    )
}

function continuesAt(response: RegistryResponse, offset: number): boolean {
  return response.status === 206 && response.headers['content-range']?.startsWith(`bytes ${offset}-`) === true
}

function claimedSha256({ headers }: RegistryResponse): string | undefined {
  const claim = headers['docker-content-digest']
  return typeof claim === 'string' && claim.startsWith('sha256:') ? claim : undefined
}
