import { createReadStream } from 'node:fs'
import type { Digest } from '../digest.ts'
import type { Endpoint } from '../read/endpoints.ts'
import { ImageError } from '../errors.ts'
import { type Blob, type BuiltImage, rootBlob } from './layout.ts'
import { formatReference, type ImageReference } from '../reference.ts'
import type { RegistryClient } from '../read/registry.ts'

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
  const { host, repository, tag } = reference
  if (tag === undefined) throw new ImageError('bad-reference', `${formatReference(reference)}: pushing needs a tag`)
  const root = rootBlob(images)
  const withEndpoint = async (use: (endpoint: Endpoint) => Promise<void>) =>
    await client.attempt(host, 'push', use, signal)

  const sentDigests = new Set<Digest>()
  for (const blob of images.flatMap(({ blobs }) => blobs)) {
    if (!sentDigests.has(blob.descriptor.digest))
      await withEndpoint((endpoint) => pushBlob(client, endpoint, repository, blob, signal))
    sentDigests.add(blob.descriptor.digest)
  }
  const children = images
    .map(({ manifest }) => manifest)
    .filter((manifest) => manifest.descriptor.digest !== root.descriptor.digest)
  for (const manifest of children)
    await withEndpoint((endpoint) =>
      pushManifest(client, endpoint, repository, manifest.descriptor.digest, manifest, signal),
    )
  await withEndpoint((endpoint) => pushManifest(client, endpoint, repository, tag, root, signal))
  return root.descriptor.digest
}

/**
 * One POST for a place, one PUT with everything: our blobs are small enough for that, and every registry accepts it.
 */
async function pushBlob(
  client: RegistryClient,
  endpoint: Endpoint,
  repository: string,
  { descriptor, content }: Blob,
  signal: AbortSignal,
): Promise<void> {
  const { digest, size } = descriptor
  const existing = await client.call(
    endpoint,
    repository,
    { method: 'HEAD', path: `/blobs/${digest}`, expected: 404 },
    signal,
  )
  existing.body.resume()
  if (existing.status === 200) return

  const uploadStart = await client.call(
    endpoint,
    repository,
    { method: 'POST', path: '/blobs/uploads/', headers: { 'content-length': '0' } },
    signal,
  )
  uploadStart.body.resume()
  const uploadUrl = URL.parse(uploadStart.headers.location ?? '', uploadStart.url.href)
  if (uploadStart.headers.location === undefined || uploadUrl === null)
    throw new ImageError('bad-response', `${endpoint.host}: accepts an upload without a Location`)
  uploadUrl.searchParams.set('digest', digest)
  const headers = { 'content-type': 'application/octet-stream', 'content-length': String(size) }
  const body = Buffer.isBuffer(content) ? content : () => createReadStream(content.file)
  const stored = await client.call(endpoint, repository, { method: 'PUT', path: uploadUrl, headers, body }, signal)
  stored.body.resume()
}

async function pushManifest(
  client: RegistryClient,
  endpoint: Endpoint,
  repository: string,
  name: string,
  { descriptor, content }: Blob,
  signal: AbortSignal,
): Promise<void> {
  if (!Buffer.isBuffer(content)) throw new Error('a manifest is a document')
  const headers = { 'content-type': descriptor.mediaType, 'content-length': String(descriptor.size) }
  const response = await client.call(
    endpoint,
    repository,
    { method: 'PUT', path: `/manifests/${name}`, headers, body: content },
    signal,
  )
  response.body.resume()
}
