import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { lstat, readdir, readlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { type Header, type Pack, pack } from 'tar-stream'
import { type Descriptor, ociLayerGzipType } from '../manifest.ts'
import type { Digest } from '../reference.ts'

/** One name in a layer. Paths are relative, without a slash at either end. Owner is always root and time the epoch. */
export type LayerEntry =
  | { readonly kind: 'folder'; readonly path: string; readonly mode: number }
  | {
      readonly kind: 'file'
      readonly path: string
      readonly mode: number
      readonly content: EntryContent
    }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }

export type BuiltLayer = {
  readonly descriptor: Descriptor
  /** Digest of the archive before compression, which the config of an image lists. */
  readonly diffId: Digest
  readonly file: string
}

const folderMode = 0o755

/**
 * The content of a folder, as entries below `prefix`. Keeps modes and links; a file with several names becomes several
 * files.
 * @throws Error for sockets, devices and fifos: they must not be silently missing in the layer
 */
export async function readFolder(folder: string, prefix: string): Promise<LayerEntry[]> {
  const entries: LayerEntry[] = []
  for (const name of await readdir(folder)) {
    const from = join(folder, name)
    const path = prefix === '' ? name : `${prefix}/${name}`
    const stats = await lstat(from)
    const mode = stats.mode & 0o777
    if (stats.isSymbolicLink()) entries.push({ kind: 'link', path, target: await readlink(from) })
    else if (stats.isFile()) entries.push({ kind: 'file', path, mode, content: { file: from, sizeBytes: stats.size } })
    else if (stats.isDirectory()) entries.push({ kind: 'folder', path, mode }, ...(await readFolder(from, path)))
    else throw new Error(`${from} is neither file, folder nor link`)
  }
  return entries
}

/**
 * Writes a layer. The same entries give the same bytes regardless of order, machine or time; gzip's output may differ
 * between versions of Node. Adds missing parent folders.
 */
export async function writeLayer(entries: readonly LayerEntry[], file: string): Promise<BuiltLayer> {
  const archive = pack()
  const diffId = createHash('sha256')
  const digest = createHash('sha256')
  let size = 0
  const filling = fill(archive, withFolders(entries)).catch((error: unknown) => archive.destroy(error as Error))
  await pipeline(
    archive as unknown as Readable,
    async function* (source: AsyncIterable<Buffer>) {
      for await (const chunk of source) {
        diffId.update(chunk)
        yield chunk
      }
    },
    createGzip(),
    async function* (source: AsyncIterable<Buffer>) {
      for await (const chunk of source) {
        digest.update(chunk)
        size += chunk.length
        yield chunk
      }
    },
    createWriteStream(file),
  )
  await filling
  const descriptor: Descriptor = { mediaType: ociLayerGzipType, digest: `sha256:${digest.digest('hex')}`, size }
  return { descriptor, diffId: `sha256:${diffId.digest('hex')}`, file }
}

async function fill(archive: Pack, entries: readonly LayerEntry[]): Promise<void> {
  for (const entry of entries) {
    const { path, kind } = entry
    if (kind === 'folder') await addEntry(archive, { name: `${path}/`, type: 'directory', mode: entry.mode })
    else if (kind === 'link')
      await addEntry(archive, { name: path, type: 'symlink', linkname: entry.target, mode: 0o777 })
    else await addEntry(archive, { name: path, type: 'file', mode: entry.mode }, entry.content)
  }
  archive.finalize()
}

/** Sorted by path, so that a folder comes before its content. Contains every parent once. */
function withFolders(entries: readonly LayerEntry[]): LayerEntry[] {
  const all = new Map<string, LayerEntry>()
  for (const { path } of entries) {
    const parents = path.split('/').slice(0, -1)
    parents.forEach((_, index) => {
      const parent = parents.slice(0, index + 1).join('/')
      all.set(parent, { kind: 'folder', path: parent, mode: folderMode })
    })
  }
  for (const entry of entries) all.set(entry.path, entry)
  return [...all.values()].sort((one, other) => (one.path < other.path ? -1 : 1))
}

/** Bytes in memory, or a file that must still have this size when it is read. */
type EntryContent = Buffer | { readonly file: string; readonly sizeBytes: number }

/**
 * Adds one entry and waits until it is in the archive. The owner is root and the time the epoch, so that equal content
 * gives equal bytes.
 */
export function addEntry(
  archive: Pack,
  header: Partial<Header> & { name: string; mode: number },
  content: EntryContent = Buffer.alloc(0),
): Promise<void> {
  const complete = { uid: 0, gid: 0, mtime: new Date(0), ...header }
  return new Promise((resolve, reject) => {
    const done = (error?: Error | null) => (error ? reject(error) : resolve())
    if (Buffer.isBuffer(content)) {
      archive.entry(complete, content, done)
      return
    }
    const sink = archive.entry({ ...complete, size: content.sizeBytes }, done)
    sink.on('error', reject)
    const source = createReadStream(content.file)
    source.on('error', (error) => sink.destroy(error))
    source.pipe(sink as unknown as NodeJS.WritableStream)
  })
}
