import { closeSync, createReadStream, mkdirSync, openSync, readdirSync, readSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { syncPathSync } from '../../host/fs/fsync.ts'
import { packageFolder } from './layer-paths.ts'
import { ImageError } from '../oci/errors.ts'
import { type PackageTree, unpackLayer, type UnpackLimits } from './unpack-layer.ts'

export type UnpackRequest = {
  /** Layer files, lowest first. */
  readonly layers: readonly string[]
  /** The folder to create and fill with the content of /skyhook-package in the image. */
  readonly target: string
  readonly limits?: UnpackLimits
}

export type UnpackSummary = { readonly entries: number; readonly bytes: number }

const defaultLimits: UnpackLimits = { entries: 100_000, bytes: 2 * 1024 ** 3 } // the host shares its disk

/**
 * Fills a new folder with the package of an image and makes it durable: after it returns, a power cut loses nothing of
 * it. After a failure, the caller removes the folder. Files belong to the user of this process and have the current
 * time; xattrs are not kept.
 * @throws ImageError bad-image, too-large; errors of the disk with their errno
 */
export async function unpackPackage({ layers, target, limits = defaultLimits }: UnpackRequest): Promise<UnpackSummary> {
  mkdirSync(target, { mode: 0o755 })
  const tree: PackageTree = { root: target, limits, isPresent: false, entries: 0, bytes: 0 }
  for (const layer of layers) await unpackLayer(openLayer(layer), tree)
  if (!tree.isPresent) throw new ImageError('bad-image', `the image has no folder /${packageFolder}`)
  syncTree(target)
  return { entries: tree.entries, bytes: tree.bytes }
}

/**
 * The archive inside a layer. The first bytes decide how it is compressed, because media types of old builders may be
 * wrong.
 */
export function openLayer(path: string): Readable {
  const head = Buffer.alloc(4)
  const fd = openSync(path, 'r')
  readSync(fd, head)
  closeSync(fd)
  const source = createReadStream(path)
  const decompressor =
    head.readUInt16BE() === 0x1f8b
      ? createGunzip()
      : head.readUInt32LE() === 0xfd2fb528
        ? createZstdDecompress()
        : undefined
  if (decompressor === undefined) return source
  source.on('error', (error) => decompressor.destroy(error))
  decompressor.on('close', () => source.destroy())
  return source.pipe(decompressor)
}

/** Syncs files first, each folder after its content. A link is synced with its folder. */
function syncTree(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) syncTree(path)
    else if (entry.isFile()) syncPathSync(path)
  }
  syncPathSync(folder)
}
