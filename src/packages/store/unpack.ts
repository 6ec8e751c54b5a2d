import {
  chmodSync,
  closeSync,
  createReadStream,
  fchmodSync,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  type Stats,
  symlinkSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { Readable } from 'node:stream'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { extract, type Header } from 'tar-stream'
import { syncPathSync } from '../../host/fs/fsync.ts'
import { messageOf } from '../../schemas/json.ts'
import { ImageError, systemCode } from '../oci/errors.ts'
import { checkSymbolicLink, packageFolder, readHardLink, readLayerName } from './layer-paths.ts'

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

/**
 * Writes the package folder of one layer over that of lower layers. Invariant: nothing outside `root` is created,
 * changed or removed, regardless of the archive. Three checks guarantee it: names are validated (layer-paths.ts), every
 * parent must be a real directory, and opening a file fails if the name exists. No other process may use `root`
 * meanwhile.
 *
 * File calls are synchronous, because the process has no other work.
 */
type PackageTree = {
  readonly root: string
  readonly limits: UnpackLimits
  /** False until a layer has the package folder, and again after a layer hides it. */
  isPresent: boolean
  entries: number
  bytes: number
}

type UnpackLimits = {
  /** Files, folders and links of the package, and whiteouts. */
  readonly entries: number
  /** Bytes of the package's files. */
  readonly bytes: number
}

/** @throws ImageError bad-image, too-large; errors of the disk with their errno */
async function unpackLayer(archive: Readable, tree: PackageTree): Promise<void> {
  const tar = extract()
  // paths of this layer and their parents: whiteouts hide lower layers only, in any order
  const written = new Set<string>()
  archive.on('error', (error) => tar.destroy(error))
  archive.pipe(tar)
  try {
    for await (const entry of tar) {
      const content = entry as unknown as Content
      await applyEntry(entry.header, content, tree, written)
      content.resume() // unread content must be consumed
    }
  } catch (error) {
    throw archiveError(error)
  } finally {
    archive.destroy()
    tar.destroy()
  }
}

type Content = AsyncIterable<Buffer> & { resume(): unknown }

async function applyEntry(header: Header, content: Content, tree: PackageTree, written: Set<string>): Promise<void> {
  const name = readLayerName(header.name)
  switch (name.kind) {
    case 'outside':
      return
    case 'entry':
      countEntry(header.size, tree)
      await writeEntry(header, name.path, content, tree)
      for (let path = name.path; path !== '.' && path !== ''; path = dirname(path)) written.add(path)
      written.add('')
      tree.isPresent = true
      return
    case 'whiteout':
      countEntry(0, tree)
      if (name.path === '') tree.isPresent = written.has('')
      else if (!written.has(name.path)) return removeLower(name.path, tree.root)
      return pruneLower(name.path, tree.root, written)
    case 'opaque':
      countEntry(0, tree)
      return pruneLower(name.path, tree.root, written)
  }
}

async function writeEntry(header: Header, path: string, content: Content, tree: PackageTree): Promise<void> {
  const { root } = tree
  const target = join(root, path)
  // old archives mark folders by a slash
  const isFolder = header.type === 'directory' || (header.type === 'file' && header.name.endsWith('/'))
  if (path === '' && !isFolder) throw new ImageError('bad-image', `/${header.name} is not a folder`)
  ensureParents(path, root, () => countEntry(0, tree))
  const existing = lstatIfPresent(target)

  if (isFolder) {
    if (existing?.isDirectory() !== true) {
      remove(target, existing)
      mkdirSync(target)
    }
    // a folder must be writable for its owner: it is filled, and removed later
    chmodSync(target, permissions(header) | 0o700)
    return
  }
  switch (header.type) {
    case 'file':
    case 'contiguous-file':
      if (Object.keys(header.pax ?? {}).some((key) => key.startsWith('GNU.sparse.')))
        throw new ImageError('bad-image', `${path} is stored as a sparse file`)
      remove(target, existing)
      return await writeFile(target, permissions(header), content)
    case 'symlink': {
      const destination = checkSymbolicLink(path, header.linkname)
      remove(target, existing)
      return symlinkSync(destination, target)
    }
    case 'link': {
      const sharedPath = readHardLink(path, header.linkname)
      const source = ensureParents(sharedPath, root) ? lstatIfPresent(join(root, sharedPath)) : undefined
      if (sharedPath === path || source === undefined || source.isDirectory())
        throw new ImageError('bad-image', `${path} is a hard link to ${sharedPath}, which is not a file`)
      remove(target, existing)
      return linkSync(join(root, sharedPath), target)
    }
    case 'directory': // handled above
    case 'character-device':
    case 'block-device':
    case 'fifo':
    default: // types unknown to the parser are undefined
      throw new ImageError(
        'bad-image',
        `${path} is a ${header.type ?? 'thing of unknown type'}: a package holds files, folders and links`,
      )
  }
}

async function writeFile(target: string, mode: number, content: Content): Promise<void> {
  const fd = openSync(target, 'wx', 0o600) // fails if the name exists, even as a link
  try {
    for await (const chunk of content) {
      for (let written = 0; written < chunk.length; ) written += writeSync(fd, chunk, written)
    }
    fchmodSync(fd, mode)
  } finally {
    closeSync(fd)
  }
}

/**
 * Whether every folder above the path exists. With `onMake`, missing folders are created after a call of it. A link
 * among them is refused, even if it stays inside.
 */
function ensureParents(path: string, root: string, onMake?: () => void): boolean {
  let folder = root
  for (const component of path.split('/').slice(0, -1)) {
    folder = join(folder, component)
    const found = lstatIfPresent(folder)
    if (found?.isDirectory() === true) continue
    if (found !== undefined) throw new ImageError('bad-image', `${path} is below ${component}, which is not a folder`)
    if (onMake === undefined) return false
    onMake()
    mkdirSync(folder, 0o755)
  }
  return true
}

function removeLower(path: string, root: string): void {
  const target = join(root, path)
  if (ensureParents(path, root)) remove(target, lstatIfPresent(target))
}

/** Removes everything below the path that is not from this layer. */
function pruneLower(path: string, root: string, written: ReadonlySet<string>): void {
  const folder = join(root, path)
  if (!ensureParents(path, root) || lstatIfPresent(folder)?.isDirectory() !== true) return
  for (const name of readdirSync(folder)) {
    const child = path === '' ? name : `${path}/${name}`
    if (written.has(child)) pruneLower(child, root, written)
    else removeLower(child, root)
  }
}

function remove(target: string, existing: Stats | undefined): void {
  if (existing !== undefined) rmSync(target, { recursive: existing.isDirectory() }) // removes links, not their targets
}

function lstatIfPresent(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false })
}

function countEntry(size: number, tree: PackageTree): void {
  tree.entries += 1
  tree.bytes += size
  if (tree.entries > tree.limits.entries)
    throw new ImageError('too-large', `the package has more than ${tree.limits.entries} files`)
  if (tree.bytes > tree.limits.bytes)
    throw new ImageError('too-large', `the package has more than ${tree.limits.bytes} bytes`)
}

/** Drops set-user-id, set-group-id and sticky bits. */
function permissions({ mode }: Header): number {
  return mode & 0o777
}

const diskErrorPattern = /^(?:ENOSPC|EDQUOT|EROFS|EIO|EFBIG|EMFILE|ENFILE|ENOMEM|EACCES|EPERM)$/

/** Returns errors of the disk unchanged. All others are faults of the archive: truncated, malformed, names too long. */
function archiveError(error: unknown): unknown {
  if (error instanceof ImageError || diskErrorPattern.test(systemCode(error) ?? '')) return error
  return new ImageError('bad-image', `a layer cannot be read: ${messageOf(error)}`, { cause: error })
}
