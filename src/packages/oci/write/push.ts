import { createReadStream } from 'node:fs'
import type { Digest } from '../digest.ts'
import type { Endpoint } from '../read/endpoints.ts'
import { ImageError } from '../errors.ts'
import { type Blob, type BuiltImage, rootOf } from './layout.ts'
import { formatReference, type ImageReference } from '../reference.ts'
import type { RegistryClient } from '../read/registry.ts'

/**
 * Pushes images under a tag: several architectures become an index. Blobs that the repository has are not sent again. Idempotent;
 * the tag moves last, so a reader finds the old image or the whole new one.
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
  const root = rootOf(images)
  const at = async (use: (endpoint: Endpoint) => Promise<void>) => await client.attempt(host, 'push', use, signal)

  const sent = new Set<Digest>()
  for (const blob of images.flatMap(({ blobs }) => blobs)) {
    if (!sent.has(blob.descriptor.digest)) await at((endpoint) => pushBlob(client, endpoint, repository, blob, signal))
    sent.add(blob.descriptor.digest)
  }
  const children = images.map(({ manifest }) => manifest).filter((manifest) => manifest.descriptor.digest !== root.descriptor.digest)
  for (const manifest of children)
    await at((endpoint) => pushManifest(client, endpoint, repository, manifest.descriptor.digest, manifest, signal))
  await at((endpoint) => pushManifest(client, endpoint, repository, tag, root, signal))
  return root.descriptor.digest
}

/** One POST for a place, one PUT with everything: blobs of ours are small enough for that, and every registry takes it. */
async function pushBlob(
  client: RegistryClient,
  endpoint: Endpoint,
  repository: string,
  { descriptor, content }: Blob,
  signal: AbortSignal,
): Promise<void> {
  const { digest, size } = descriptor
  const present = await client.call(endpoint, repository, { method: 'HEAD', path: `/blobs/${digest}`, expected: 404 }, signal)
  present.body.resume()
  if (present.status === 200) return

  const begun = await client.call(
    endpoint,
    repository,
    { method: 'POST', path: '/blobs/uploads/', headers: { 'content-length': '0' } },
    signal,
  )
  begun.body.resume()
  const place = URL.parse(begun.headers.location ?? '', begun.url.href)
  if (begun.headers.location === undefined || place === null)
    throw new ImageError('bad-answer', `${endpoint.host}: accepts an upload but says not where`)
  place.searchParams.set('digest', digest)
  const headers = { 'content-type': 'application/octet-stream', 'content-length': String(size) }
  const body = Buffer.isBuffer(content) ? content : () => createReadStream(content.file)
  const stored = await client.call(endpoint, repository, { method: 'PUT', path: place, headers, body }, signal)
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
  const answer = await client.call(endpoint, repository, { method: 'PUT', path: `/manifests/${name}`, headers, body: content }, signal)
  answer.body.resume()
}
