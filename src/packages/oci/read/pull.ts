import { ImageError } from '../errors.ts'
import { type Digest, digestOf, formatReference, type ImageReference } from '../reference.ts'
import type { RegistryResponse } from './http.ts'
import {
  acceptedManifestTypes,
  type Descriptor,
  type ImageIndex,
  type ImageManifest,
  parseManifest,
  selectPlatform,
} from '../manifest.ts'
import type { RegistryClient, RegistrySend } from './registry.ts'
import { readBody } from './error-response.ts'

/**
 * What a reference currently points at. For an image with an index, the digest is that of the index: users set it as
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

const maxManifestBytes = 4 * 1024 * 1024 // the minimum that registries must accept, and the maximum of most
const maxIndexDepth = 2

/**
 * Resolves the reference with one request, and verifies the digest if the reference has one.
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
  // as in containerd: a mirror may serve content without resolving tags
  const capability = reference.digest === undefined ? 'resolve' : 'pull'
  const fetchManifest = async (send: RegistrySend, host: string): Promise<ResolvedImage> => {
    const headers = { accept: acceptedManifestTypes }
    const response = await send({ method: 'GET', path: `/manifests/${tagOrDigest}`, headers })
    const bytes = await readBody(response, maxManifestBytes, signal)
    const digest = digestOf(bytes)
    const claimedDigest = reference.digest ?? claimedSha256(response)
    if (claimedDigest !== undefined && claimedDigest !== digest) {
      throw new ImageError('digest-mismatch', `${host}: the manifest is ${digest}, not ${claimedDigest}`)
    }
    return { reference, digest, manifest: parseManifest(bytes, response.headers['content-type']) }
  }
  return await client.attempt(reference, capability, fetchManifest, signal)
}

/**
 * The manifest for the architecture: the resolved one itself, or one more request per level of index. An image without
 * an index is accepted on any architecture, because only its scripts and data are used.
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

function claimedSha256({ headers }: RegistryResponse): string | undefined {
  const claim = headers['docker-content-digest']
  return typeof claim === 'string' && claim.startsWith('sha256:') ? claim : undefined
}
