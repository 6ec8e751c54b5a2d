import { createHash, type Hash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { ImageError, imageErrorCode } from '../oci/errors.ts'
import type { Descriptor } from '../oci/manifest.ts'
import { connectionError, type RegistryResponse } from '../oci/read/http.ts'
import type { RegistryClient, RegistrySend } from '../oci/read/registry.ts'
import type { OnReceived } from '../oci/read/retry.ts'
import { formatReference, hexOf, type ImageReference } from '../oci/reference.ts'

/** A verified layer on disk. */
export type LayerFile = { readonly path: string; readonly descriptor: Descriptor }

export type PullLimits = {
  /** Compressed size of all layers together. */
  readonly downloadBytes: number
}

const defaultLimits: PullLimits = { downloadBytes: 4 * 1024 ** 3 }

/**
 * Downloads the layers one after another into the directory, each once. Streams to disk; checks digest and size.
 * @throws ImageError; errors of the disk unchanged
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
  const uniqueFiles = new Map(files.map((file) => [file.path, file])) // an empty layer may occur more than once
  for (const file of uniqueFiles.values()) await downloadBlob(client, reference, file, signal)
  return files
}

/**
 * After a broken connection, the download continues where it stopped, at any address that answers. After any other
 * failure it starts over.
 */
async function downloadBlob(
  client: RegistryClient,
  reference: ImageReference,
  { path, descriptor }: LayerFile,
  signal: AbortSignal,
): Promise<void> {
  const handle = await open(path, 'wx', 0o600)
  try {
    let progress = emptyProgress()
    let receivedBytes = 0 // the maximum so far: bytes that are received a second time are not progress
    const download = async (send: RegistrySend, host: string, onReceived: OnReceived): Promise<void> => {
      const headers: Record<string, string> = progress.bytes === 0 ? {} : { range: `bytes=${progress.bytes}-` }
      const response = await send({ method: 'GET', path: `/blobs/${descriptor.digest}`, headers, isLarge: true })
      if (!continuesAt(response, progress.bytes)) progress = emptyProgress()
      try {
        await saveBody(response, handle, progress, descriptor, signal)
      } catch (error) {
        if (imageErrorCode(error) !== 'unreachable') progress = emptyProgress() // not continuable
        onReceived(Math.max(0, progress.bytes - receivedBytes))
        receivedBytes = Math.max(receivedBytes, progress.bytes)
        throw error
      }
      const digest = `sha256:${progress.hash.digest('hex')}`
      if (digest === descriptor.digest) return
      progress = emptyProgress()
      throw new ImageError('digest-mismatch', `${host}: the layer is ${digest}, not ${descriptor.digest}`)
    }
    await client.attempt(reference, 'pull', download, signal)
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
