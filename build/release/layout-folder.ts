import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ociIndexType } from '../../src/packages/oci/manifest.ts'
import { hexOf } from '../../src/packages/oci/reference.ts'
import { type Blob, type BuiltImage, rootBlob } from '../../src/packages/oci/write/layout.ts'

/** What a tag in a registry will point at. */
export type NamedImage = {
  /** Below the release's registry and path, such as `packages/tuning`. */
  readonly name: string
  readonly tag: string
  /** One per architecture. */
  readonly images: readonly BuiltImage[]
}

/**
 * Writes an OCI image layout with all images. `skopeo copy --all oci:FOLDER:NAME:TAG docker://…` takes one of them.
 * @returns the same images, whose content now comes from the layout
 */
export function writeLayoutFolder(folder: string, named: readonly NamedImage[], prefix: string): NamedImage[] {
  const blobs = join(folder, 'blobs/sha256')
  mkdirSync(blobs, { recursive: true })
  const store = ({ descriptor, content }: Blob): Blob => {
    const file = join(blobs, hexOf(descriptor.digest))
    if (Buffer.isBuffer(content)) writeFileSync(file, content)
    else copyFileSync(content.file, file)
    return { descriptor, content: Buffer.isBuffer(content) ? content : { file } }
  }
  const stored = named.map((one) => ({
    ...one,
    images: one.images.map((image) => ({ ...image, manifest: store(image.manifest), blobs: image.blobs.map(store) })),
  }))
  const manifests = stored.map(({ name, tag, images }) => ({
    ...store(rootBlob(images)).descriptor,
    annotations: {
      'io.containerd.image.name': `${prefix}/${name}:${tag}`,
      'org.opencontainers.image.ref.name': `${name}:${tag}`,
    },
  }))
  writeFileSync(join(folder, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
  writeFileSync(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, mediaType: ociIndexType, manifests }))
  return stored
}
