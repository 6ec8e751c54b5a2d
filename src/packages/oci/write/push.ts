import { createReadStream } from 'node:fs'
import { ImageError } from '../errors.ts'
import { type Digest, formatReference, type ImageReference } from '../reference.ts'
import { type Blob, type BuiltImage, rootBlob } from './layout.ts'
import type { RegistryClient, RegistrySend } from '../read/registry.ts'

/**
 * Pushes images under a tag: several architectures become an index. Blobs that the repository has are not sent again.
 * Idempotent; the tag moves last, so a reader finds the old image or the whole new one.
 * @returns the digest that the tag now points at
 * @throws ImageError
 */
export async function pushImages(
  client: RegistryClient,
  reference: ImageReference,
  images: readonly BuiltImage[],
  signal: AbortSignal,
): Promise<Digest> {
  const { tag } = reference
  if (tag === undefined) throw new ImageError('bad-reference', `${formatReference(reference)}: pushing needs a tag`)
  const root = rootBlob(images)
  const push = async (use: (send: RegistrySend) => Promise<void>): Promise<void> =>
    await client.attempt(reference, 'push', use, signal)

  const blobs = new Map(images.flatMap((image) => image.blobs.map((blob) => [blob.descriptor.digest, blob])))
  for (const blob of blobs.values()) await push((send) => pushBlob(send, blob))
  for (const { manifest } of images) {
    const { digest } = manifest.descriptor
    if (digest !== root.descriptor.digest) await push((send) => pushManifest(send, digest, manifest))
  }
  await push((send) => pushManifest(send, tag, root))
  return root.descriptor.digest
}

/**
 * One POST for an upload location, one PUT with the whole blob: the blobs of packages are small enough, and every
 * registry accepts it.
 */
async function pushBlob(send: RegistrySend, { descriptor, content }: Blob): Promise<void> {
  const { digest, size } = descriptor
  const existing = await send({ method: 'HEAD', path: `/blobs/${digest}`, expected: 404 })
  existing.body.resume()
  if (existing.status === 200) return

  const {
    url,
    headers,
    body: answer,
  } = await send({
    method: 'POST',
    path: '/blobs/uploads/',
    headers: { 'content-length': '0' },
  })
  answer.resume()
  const uploadUrl = headers.location === undefined ? null : URL.parse(headers.location, url.href)
  if (uploadUrl === null) throw new ImageError('bad-response', `${url.host}: accepts an upload without a Location`)
  uploadUrl.searchParams.set('digest', digest)
  const stored = await send({
    method: 'PUT',
    path: uploadUrl,
    headers: { 'content-type': 'application/octet-stream', 'content-length': String(size) },
    body: Buffer.isBuffer(content) ? content : () => createReadStream(content.file),
  })
  stored.body.resume()
}

async function pushManifest(send: RegistrySend, name: string, { descriptor, content }: Blob): Promise<void> {
  if (!Buffer.isBuffer(content)) throw new Error('a manifest is a document')
  const headers = { 'content-type': descriptor.mediaType, 'content-length': String(descriptor.size) }
  const response = await send({ method: 'PUT', path: `/manifests/${name}`, headers, body: content })
  response.body.resume()
}
