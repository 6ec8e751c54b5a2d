import { createHash, type Hash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { type Digest, digestOf, hexOf } from '../digest.ts'
import { ImageError, imageErrorCode } from '../errors.ts'
import { type Answer, connectionError } from './http.ts'
import { ACCEPTED_MANIFESTS, type Descriptor, type ImageIndex, type ImageManifest, parseManifest, selectPlatform } from '../manifest.ts'
import { formatReference, type ImageReference } from '../reference.ts'
import type { RegistryClient } from './registry.ts'
import { readBody } from './error-body.ts'

/** What a reference points at now. The digest names the index where there is one: it is what a user writes into containerSHA. */
export type ResolvedImage = {
  readonly reference: ImageReference
  readonly digest: Digest
  readonly manifest: ImageManifest | ImageIndex
}

/** The image for one architecture. */
export type PulledImage = {
  readonly manifestDigest: Digest
  readonly layers: readonly Descriptor[]
}

/** A layer on disk, verified. */
export type LayerFile = { readonly path: string; readonly descriptor: Descriptor }

export type PullLimits = {
  /** All layers together, as they are sent. */
  readonly downloadBytes: number
}

const MAX_MANIFEST_BYTES = 4 * 1024 * 1024 // what registries accept at least, and most at most
const MAX_INDEX_DEPTH = 2
const DEFAULT_LIMITS: PullLimits = { downloadBytes: 4 * 1024 ** 3 }

/**
 * One request: asks what the reference points at, and verifies that it has the digest asked for.
 * @throws ImageError
 */
export async function resolveImage(client: RegistryClient, reference: ImageReference, signal: AbortSignal): Promise<ResolvedImage> {
  const wanted = reference.digest ?? reference.tag
  if (wanted === undefined) throw new ImageError('bad-reference', `${formatReference(reference)}: neither tag nor digest`)
  const need = reference.digest === undefined ? 'resolve' : 'pull' // containerd's meaning: a mirror may hold bytes without being asked about tags
  const find = async (endpoint: Parameters<Parameters<RegistryClient['attempt']>[2]>[0]): Promise<ResolvedImage> => {
    const answer = await client.call(
      endpoint,
      reference.repository,
      { method: 'GET', path: `/manifests/${wanted}`, headers: { accept: ACCEPTED_MANIFESTS } },
      signal,
    )
    const bytes = await readBody(answer, MAX_MANIFEST_BYTES, signal)
    const digest = digestOf(bytes)
    const claimed = reference.digest ?? sha256Claim(answer)
    if (claimed !== undefined && claimed !== digest) {
      throw new ImageError('digest-mismatch', `${endpoint.host}: the manifest is ${digest}, not ${claimed}`)
    }
    return { reference, digest, manifest: parseManifest(bytes, answer.headers['content-type']) }
  }
  return await client.attempt(reference.host, need, find, signal)
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
): Promise<PulledImage> {
  let { manifest, digest } = resolved
  for (let depth = 0; manifest.kind === 'index'; depth++) {
    if (depth === MAX_INDEX_DEPTH) throw new ImageError('unsupported', `indexes nested more than ${MAX_INDEX_DEPTH} deep`)
    const { host, repository } = resolved.reference
    const chosen = selectPlatform(manifest, architecture)
    ;({ manifest, digest } = await resolveImage(client, { host, repository, digest: chosen.digest }, signal))
  }
  return { manifestDigest: digest, layers: manifest.layers }
}

/**
 * Downloads the layers one after another into the directory, each once. Bytes go to disk as they come; digest and size are checked.
 * @throws ImageError; errors of the disk as they are
 */
export async function downloadLayers(
  client: RegistryClient,
  reference: ImageReference,
  layers: readonly Descriptor[],
  directory: string,
  signal: AbortSignal,
  limits: PullLimits = DEFAULT_LIMITS,
): Promise<LayerFile[]> {
  const totalBytes = layers.reduce((sum, { size }) => sum + size, 0)
  if (totalBytes > limits.downloadBytes) {
    throw new ImageError('too-large', `${formatReference(reference)}: layers of ${totalBytes} bytes, more than ${limits.downloadBytes}`)
  }
  const files = layers.map((descriptor): LayerFile => ({ path: join(directory, hexOf(descriptor.digest)), descriptor }))
  const once = new Map(files.map((file) => [file.path, file])) // empty layers repeat
  for (const file of once.values()) await downloadBlob(client, reference, file, signal)
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
    let progress = nothingYet()
    await client.attempt(
      reference.host,
      'pull',
      async (endpoint) => {
        const headers: Record<string, string> = progress.bytes === 0 ? {} : { range: `bytes=${progress.bytes}-` }
        const answer = await client.call(
          endpoint,
          reference.repository,
          { method: 'GET', path: `/blobs/${descriptor.digest}`, headers },
          signal,
        )
        if (!continuesAt(answer, progress.bytes)) progress = nothingYet()
        try {
          await save(answer, handle, progress, descriptor, signal)
        } catch (error) {
          if (imageErrorCode(error) !== 'unreachable') progress = nothingYet() // those bytes are not to be built upon
          throw error
        }
        const digest = `sha256:${progress.hash.digest('hex')}`
        if (digest === descriptor.digest) return
        progress = nothingYet()
        throw new ImageError('digest-mismatch', `${endpoint.host}: the layer is ${digest}, not ${descriptor.digest}`)
      },
      signal,
    )
  } finally {
    await handle.close()
  }
}

type Progress = { bytes: number; readonly hash: Hash }

function nothingYet(): Progress {
  return { bytes: 0, hash: createHash('sha256') }
}

async function save(
  answer: Answer,
  handle: FileHandle,
  progress: Progress,
  { size, digest }: Descriptor,
  signal: AbortSignal,
): Promise<void> {
  try {
    for await (const chunk of answer.body as AsyncIterable<Buffer>) {
      if (progress.bytes + chunk.length > size)
        throw new ImageError('digest-mismatch', `${answer.url.host}: ${digest} has more than its ${size} bytes`)
      for (let written = 0; written < chunk.length; ) {
        written += (await handle.write(chunk, written, chunk.length - written, progress.bytes + written)).bytesWritten
      }
      progress.hash.update(chunk)
      progress.bytes += chunk.length
    }
  } catch (error) {
    throw connectionError(error, answer.url, signal)
  }
  if (progress.bytes < size)
    throw new ImageError('unreachable', `${answer.url.host}: ${digest} ended after ${progress.bytes} of ${size} bytes`)
}

function continuesAt(answer: Answer, offset: number): boolean {
  return answer.status === 206 && answer.headers['content-range']?.startsWith(`bytes ${offset}-`) === true
}

function sha256Claim({ headers }: Answer): string | undefined {
  const claim = headers['docker-content-digest']
  return typeof claim === 'string' && claim.startsWith('sha256:') ? claim : undefined
}
