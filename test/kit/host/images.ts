/** Registries and the image store of a simulated host: an image is there after some time, or fails for a while. */
import { ImageError } from '../../../src/packages/oci/errors.ts'
import { type Digest, formatReference, hexOf, type ImageReference } from '../../../src/packages/oci/reference.ts'
import type { ImageErrorCode } from '../../../src/schemas/catalogue/reason-codes.ts'
import type { ImageStore } from '../../../src/packages/store/image-store.ts'
import { type Clock, sleep } from '../../../src/schemas/clock.ts'
import type { Disk } from './disk.ts'
import type { FolderNode } from './inodes.ts'

export type SimulatedImage = {
  readonly digest: Digest
  /** By path in the package's folder; `config.json` among them. Everything below `skyhook_dir/` can be executed. */
  readonly files: Readonly<Record<string, string>>
}

/** The registries, as all hosts see them. Undefined: no such image. */
export type Registry = (reference: ImageReference) => SimulatedImage | undefined

/** How a fetch goes: `errno` is one of the disk, `code` one of a registry, with its `answer`. */
export type FetchFate = {
  readonly durationMs: number
  readonly code?: ImageErrorCode
  readonly answer?: string
  readonly errno?: NodeJS.ErrnoException
}

export function openSimulatedStore(
  folder: string,
  ports: {
    readonly disk: Disk
    readonly clock: Clock
    readonly registry: Registry
    readonly fetchFate: (image: SimulatedImage) => FetchFate
    readonly onStored: (digest: Digest) => void
  },
): ImageStore {
  const { disk, clock, registry, fetchFate, onStored } = ports
  const fetches = new Map<Digest, Promise<void>>()
  const pathOf = (digest: Digest): string => `${folder}/${hexOf(digest)}`
  const isThere = (digest: Digest): boolean => disk.locate(pathOf(digest)).node?.kind === 'folder'

  async function fetch(image: SimulatedImage, name: string, signal: AbortSignal): Promise<void> {
    const { durationMs, code, errno, answer = code } = fetchFate(image)
    await sleep(clock, durationMs, signal)
    if (code !== undefined) throw new ImageError(code, `${name}: ${answer}`)
    if (errno !== undefined) throw errno
    store(image)
    onStored(image.digest)
  }

  /** As the real store: whole and on disk under another name, and then renamed. */
  function store({ digest, files }: SimulatedImage): void {
    const work = `${folder}/.work-${hexOf(digest)}`
    if (disk.locate(work).node) disk.remove(disk.locate(work))
    const made: { node: FolderNode; path: string }[] = []
    const makeFolder = (path: string): void => void made.push({ node: disk.makeFolder(disk.locate(path), 0o755), path })
    makeFolder(work)
    for (const [path, content] of Object.entries(files)) {
      const parts = path.split('/')
      for (let depth = 1; depth < parts.length; depth++) {
        const inner = `${work}/${parts.slice(0, depth).join('/')}`
        if (!disk.locate(inner).node) makeFolder(inner)
      }
      const place = disk.locate(`${work}/${path}`)
      const file = disk.create(place, path.startsWith('skyhook_dir/') ? 0o755 : 0o644)
      disk.write(file, Buffer.from(content), place.path)
      disk.syncFile(file, place.path)
    }
    for (const { node, path } of made) disk.syncFolder(node, path)
    disk.rename(disk.locate(work, 'keep'), disk.locate(pathOf(digest), 'keep'))
    disk.syncFolder(disk.locate(folder).node as FolderNode, folder)
  }

  return {
    async ensureImage(reference, { signal, onResolved }) {
      const image = registry(reference)
      if (image === undefined) throw new ImageError('not-found', `${formatReference(reference)}: not found`)
      const { digest } = image
      onResolved?.(digest)
      const isNew = !isThere(digest)
      if (isNew) {
        const running = fetches.get(digest) ?? fetch(image, formatReference(reference), signal)
        fetches.set(digest, running)
        await running.finally(() => fetches.delete(digest))
      }
      return { digest, path: pathOf(digest), isNew }
    },
    async checkImage(reference, { onResolved }) {
      const image = registry(reference)
      if (image === undefined) throw new ImageError('not-found', `${formatReference(reference)}: not found`)
      onResolved?.(image.digest)
      return { digest: image.digest, isStored: isThere(image.digest) }
    },
    isPresent: async (digest) => isThere(digest),
    async collect(isUsed) {
      const names = disk.locate(folder).node ? disk.list(disk.locate(folder)).map(([name]) => name) : []
      const unused = names
        .filter((name) => !name.startsWith('.'))
        .map((name): Digest => `sha256:${name}`)
        .filter((digest) => !isUsed(digest) && !fetches.has(digest))
      for (const digest of unused) disk.remove(disk.locate(pathOf(digest), 'keep'))
      return unused
    },
  }
}
