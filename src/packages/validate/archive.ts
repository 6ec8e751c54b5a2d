/**
 * Images in a file: an OCI layout (`skopeo copy oci-archive:`, `ctr images export`), the output of `docker save`, or a
 * single layer.
 */
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { extract } from 'tar-stream'
import { isObject, messageOf } from '../../schemas/json.ts'
import { ImageError } from '../oci/errors.ts'
import { type Descriptor, type ImageIndex, type ImageManifest, ociIndexType, parseManifest } from '../oci/manifest.ts'
import { hexOf } from '../oci/reference.ts'
import { packageFolder } from '../store/layer-paths.ts'
import { openLayer } from '../store/unpack.ts'

/** An image whose layers are extracted to files. */
export type ArchivedImage = {
  /** `linux/arm64`; undefined if the archive does not name one. */
  readonly platform: string | undefined
  /** Lowest first. */
  readonly layers: readonly string[]
}

const maxArchiveBytes = 4 * 1024 ** 3 // the agent's limit for downloads
const maxDocumentBytes = 4 << 20
const maxIndexDepth = 2

/**
 * The images of an archive, one per platform. Content goes into `workFolder`, which must exist and be empty; the caller
 * removes it. Digests and sizes of an OCI layout are checked.
 * @throws ImageError bad-image, digest-mismatch, too-large, unsupported; errors of the disk with their errno
 */
export async function openArchive(path: string, workFolder: string): Promise<ArchivedImage[]> {
  const files = await extractFiles(path, workFolder)
  if (files.has('index.json')) return await imagesOfLayout(files)
  if (files.has('manifest.json')) return await imagesOfDockerArchive(files)
  if ([...files.keys()].some((name) => name.startsWith(`${packageFolder}/`)))
    return [{ platform: undefined, layers: [path] }]
  throw new ImageError(
    'bad-image',
    `the archive has neither an image (index.json, manifest.json) nor a folder /${packageFolder}`,
  )
}

/** Extracts regular files under generated names. Returns them by their names in the archive. */
async function extractFiles(path: string, workFolder: string): Promise<Map<string, string>> {
  const files = new Map<string, string>()
  const tar = extract()
  const archive = openLayer(path)
  archive.on('error', (error) => tar.destroy(error))
  archive.pipe(tar)
  let bytes = 0
  try {
    for await (const entry of tar) {
      const content = entry as unknown as Readable
      bytes += entry.header.size
      if (bytes > maxArchiveBytes)
        throw new ImageError('too-large', `the archive has more than ${maxArchiveBytes} bytes`)
      if (entry.header.type !== 'file') {
        content.resume()
        continue
      }
      const target = join(workFolder, String(files.size))
      files.set(entry.header.name.replace(/^(?:\.?\/)+/, ''), target)
      await pipeline(content, createWriteStream(target, { flags: 'wx', mode: 0o600 }))
    }
  } catch (error) {
    if (error instanceof ImageError || (error instanceof Error && 'errno' in error && 'syscall' in error)) throw error
    throw new ImageError('bad-image', `the archive cannot be read: ${messageOf(error)}`, { cause: error })
  } finally {
    archive.destroy()
    tar.destroy()
  }
  return files
}

async function imagesOfLayout(files: ReadonlyMap<string, string>): Promise<ArchivedImage[]> {
  const index = parseManifest(await readDocument(fileOf(files, 'index.json')), ociIndexType)
  return await imagesOf(files, index, undefined, 0)
}

async function imagesOf(
  files: ReadonlyMap<string, string>,
  manifest: ImageManifest | ImageIndex,
  platform: string | undefined,
  depth: number,
): Promise<ArchivedImage[]> {
  if (manifest.kind === 'image') {
    const layers: string[] = []
    for (const layer of manifest.layers) layers.push(await blobOf(files, layer))
    return [{ platform, layers }]
  }
  if (depth > maxIndexDepth) throw new ImageError('unsupported', `indexes nested more than ${maxIndexDepth} deep`)
  const images: ArchivedImage[] = []
  for (const descriptor of manifest.manifests) {
    const { platform: own } = descriptor
    if (own !== undefined && own.os !== 'linux') continue // attestations, other systems
    const inner = parseManifest(await readDocument(await blobOf(files, descriptor)), descriptor.mediaType)
    const name = own === undefined ? platform : `${own.os}/${own.architecture}`
    images.push(...(await imagesOf(files, inner, name, depth + 1)))
  }
  return images
}

async function blobOf(files: ReadonlyMap<string, string>, { digest, size }: Descriptor): Promise<string> {
  const file = fileOf(files, `blobs/sha256/${hexOf(digest)}`)
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(file)) hash.update(chunk as Buffer)
  const { size: sizeBytes } = await stat(file)
  const found = `sha256:${hash.digest('hex')}`
  if (found !== digest || sizeBytes !== size)
    throw new ImageError('digest-mismatch', `blob ${digest} of ${size} bytes is ${found} of ${sizeBytes} bytes`)
  return file
}

async function imagesOfDockerArchive(files: ReadonlyMap<string, string>): Promise<ArchivedImage[]> {
  const bytes = await readDocument(fileOf(files, 'manifest.json'))
  let document: unknown
  try {
    document = JSON.parse(bytes.toString('utf8'))
  } catch (error) {
    throw new ImageError('bad-image', `manifest.json is not JSON: ${messageOf(error)}`, { cause: error })
  }
  const images = Array.isArray(document) ? (document as unknown[]) : []
  return images.map((image) => {
    const layers = isObject(image) ? image['Layers'] : undefined
    if (!Array.isArray(layers)) throw new ImageError('bad-image', 'an image of manifest.json has no "Layers"')
    return { platform: undefined, layers: layers.map((name) => fileOf(files, String(name))) }
  })
}

function fileOf(files: ReadonlyMap<string, string>, name: string): string {
  const file = files.get(name)
  if (file === undefined) throw new ImageError('bad-image', `the archive has no ${name}`)
  return file
}

async function readDocument(file: string): Promise<Buffer> {
  const { size } = await stat(file)
  if (size > maxDocumentBytes) throw new ImageError('too-large', `a manifest of ${size} bytes`)
  return await readFile(file)
}
