import { createWriteStream } from 'node:fs'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { pack } from 'tar-stream'
import { digestOf, hexOf } from '../reference.ts'
import { type Descriptor, ociConfigType, ociIndexType, ociManifestType } from '../manifest.ts'
import { addEntry, type BuiltLayer } from './layer.ts'

/** Settings of an image with the names of the OCI image configuration. */
export type ImageSettings = {
  readonly architecture: string
  readonly entrypoint?: readonly string[]
  readonly env?: readonly string[]
  readonly labels?: Readonly<Record<string, string>>
  readonly user?: string
  readonly workingDirectory?: string
}

/** A document or a file, with its digest. */
export type Blob = { readonly descriptor: Descriptor; readonly content: Buffer | { readonly file: string } }

export type BuiltImage = {
  readonly architecture: string
  readonly manifest: Blob
  /** Config and layers, which must be in a registry before the manifest. */
  readonly blobs: readonly Blob[]
}

const epoch = '1970-01-01T00:00:00Z' // not the time of the build: equal content gives an equal image

/** Config and manifest of an image with these layers, lowest first. Equal input gives an equal digest. */
export function buildImage(layers: readonly BuiltLayer[], settings: ImageSettings): BuiltImage {
  const { architecture, entrypoint, env, labels, user, workingDirectory } = settings
  const config = documentBlob(ociConfigType, {
    created: epoch,
    architecture,
    os: 'linux',
    config: { User: user, Env: env, Entrypoint: entrypoint, WorkingDir: workingDirectory, Labels: labels },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
    history: layers.map(() => ({ created: epoch, created_by: 'skyhookd' })),
  })
  const manifest = documentBlob(ociManifestType, {
    schemaVersion: 2,
    mediaType: ociManifestType,
    config: config.descriptor,
    layers: layers.map(({ descriptor }) => descriptor),
    annotations: labels,
  })
  return {
    architecture,
    manifest,
    blobs: [config, ...layers.map(({ descriptor, file }): Blob => ({ descriptor, content: { file } }))],
  }
}

/** What a tag points at: the manifest of the only image, or an index over those of several architectures. */
export function rootBlob(images: readonly BuiltImage[]): Blob {
  const [onlyImage, ...others] = images
  if (onlyImage !== undefined && others.length === 0) return onlyImage.manifest
  const manifests = images.map(({ manifest, architecture }) => ({
    ...manifest.descriptor,
    platform: { architecture, os: 'linux' },
  }))
  return documentBlob(ociIndexType, { schemaVersion: 2, mediaType: ociIndexType, manifests })
}

/**
 * Writes an OCI image layout as one tar archive: `ctr images import` and `skopeo copy oci-archive:` read it.
 * @param name full reference of the image in a container runtime that imports it
 */
export async function writeLayoutArchive(file: string, images: readonly BuiltImage[], name: string): Promise<void> {
  const archive = pack()
  const fill = async () => {
    for (const { path, content, sizeBytes } of layoutFiles(images, name)) {
      await addEntry(
        archive,
        { name: path, mode: 0o644 },
        Buffer.isBuffer(content) ? content : { file: content.file, sizeBytes },
      )
    }
    archive.finalize()
  }
  const filling = fill().catch((error: unknown) => archive.destroy(error as Error))
  await pipeline(archive as unknown as Readable, createWriteStream(file))
  await filling
}

type LayoutFile = { readonly path: string; readonly content: Blob['content']; readonly sizeBytes: number }

function layoutFiles(images: readonly BuiltImage[], name: string): LayoutFile[] {
  const root = rootBlob(images)
  const annotations = {
    'io.containerd.image.name': name,
    'org.opencontainers.image.ref.name': name.slice(name.lastIndexOf(':') + 1),
  }
  const files = new Map<string, LayoutFile>()
  for (const { descriptor, content } of [...images.flatMap((image) => [...image.blobs, image.manifest]), root]) {
    const path = `blobs/sha256/${hexOf(descriptor.digest)}`
    files.set(path, { path, content, sizeBytes: descriptor.size }) // images share layers
  }
  const index = { schemaVersion: 2, mediaType: ociIndexType, manifests: [{ ...root.descriptor, annotations }] }
  const documents: [string, object][] = [
    ['oci-layout', { imageLayoutVersion: '1.0.0' }],
    ['index.json', index],
  ]
  const documentFiles = documents.map(([path, content]): LayoutFile => {
    const bytes = Buffer.from(JSON.stringify(content))
    return { path, content: bytes, sizeBytes: bytes.length }
  })
  return [...documentFiles, ...[...files.values()].sort((one, other) => (one.path < other.path ? -1 : 1))]
}

function documentBlob(mediaType: string, content: object): Blob {
  const bytes = Buffer.from(JSON.stringify(content))
  return { descriptor: { mediaType, digest: digestOf(bytes), size: bytes.length }, content: bytes }
}
