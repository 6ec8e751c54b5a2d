import type { HostRoot } from '../../host/fs/host-root.ts'
import { ImageError, systemCode } from '../oci/errors.ts'
import { ociArchitecture } from '../oci/manifest.ts'
import type { LoginProvider } from '../oci/read/logins.ts'
import { type SelectedImage, resolveImage, type ResolvedImage, selectImage } from '../oci/read/pull.ts'
import { createRegistryClient, type RegistryClient, type RegistrySettings } from '../oci/read/registry.ts'
import type { Clock, Random } from '../../schemas/clock.ts'
import { withLock } from '../keyed-mutex.ts'
import { type Digest, formatReference, hexOf, type ImageReference, isDigest } from '../oci/reference.ts'
import { createSingleFlight } from './single-flight.ts'
import type { UnpackJob } from './unpack-job.ts'
import type { UnpackSummary } from './unpack.ts'

/**
 * Packages on the host, one folder per image, named by the digest that the reference points at.
 *
 * Invariant: a folder named by a digest is complete and on disk. It gets that name last, after everything in it was
 * synced, and loses the name before anything in it is removed. Folders that a killed agent left have names that start
 * with a dot.
 */
export type ImageStore = {
  /**
   * Returns the package of an image, fetched if it is missing. A stored digest costs no request. A tag always costs one
   * request, because it may have moved: without an answer, the store does not fall back to the image that the tag named
   * before. Callers of the same image share a download. Different images are fetched one after another, because each
   * needs memory.
   * @throws ImageError; errors of the disk with their errno; the signal's reason
   */
  ensureImage(reference: ImageReference, options: EnsureOptions): Promise<StoredImage>
  /**
   * Resolves a reference and checks whether its package could be fetched: one request, and one more for each level of
   * index. Stores nothing.
   * @throws ImageError; errors of the disk with their errno; the signal's reason
   */
  checkImage(reference: ImageReference, options: EnsureOptions): Promise<CheckedImage>
  /** Whether the image is stored. An image that is being removed is not. */
  isPresent(digest: Digest): Promise<boolean>
  /**
   * Removes all unused images except those being fetched, and the rest of interrupted work. Returns the removed images.
   * Calls `isUsed` right before each removal, so `ensureImage` may run at the same time.
   */
  collect(isUsed: (digest: Digest) => boolean): Promise<Digest[]>
}

export type StoredImage = {
  readonly digest: Digest
  /** The package folder: `config.json` lies in it. Read only; a later `collect` removes it. */
  readonly path: string
  readonly isNew: boolean
}

export type CheckedImage = { readonly digest: Digest; readonly isStored: boolean }

export type EnsureOptions = {
  readonly registry: RegistrySettings
  readonly signal: AbortSignal
  /**
   * Called with the digest of the reference, before the store looks for the image: from now on `isUsed` must know it.
   */
  readonly onResolved?: (digest: Digest) => void
}

export type StorePorts = {
  readonly root: HostRoot
  readonly clock: Clock
  readonly random: Random
  /** Fetches the layers and creates the folder. */
  readonly unpack: (job: UnpackJob, signal: AbortSignal) => Promise<UnpackSummary>
  /** In OCI's spelling. */
  readonly architecture?: string
  /** Called if a registry requires a login and no pull secret matches. */
  readonly loginProvider?: LoginProvider
  /** For one image, from the first request to the last file. */
  readonly timeoutMs?: number
}

// a slower fetch has a problem: it fails, shows a reason and is tried again
const defaultTimeoutMs = 15 * 60_000
const workPrefix = '.work-'

/** @param directory of the host, for this process alone; created when first needed */
export function openImageStore(
  directory: string,
  {
    root,
    clock,
    random,
    unpack,
    architecture = ociArchitecture(),
    loginProvider,
    timeoutMs = defaultTimeoutMs,
  }: StorePorts,
): ImageStore {
  const fetches = createSingleFlight<Digest, StoredImage>()
  const activeWorkFolders = new Set<string>() // names of the work folders in use
  const pathOf = (digest: Digest) => `${directory}/${hexOf(digest)}`

  const removals = new Map<Digest, Promise<void>>() // until the name is gone

  const isPresent = async (digest: Digest): Promise<boolean> => {
    await removals.get(digest)?.catch(() => undefined) // reported to the caller of collect
    return (await root.stat(pathOf(digest)))?.isDirectory() === true
  }

  const fetch = async (
    client: RegistryClient,
    registry: RegistrySettings,
    resolved: ResolvedImage,
    signal: AbortSignal,
  ): Promise<StoredImage> => {
    const name = `${workPrefix}${hexOf(resolved.digest)}-${random.hex(4)}`
    const work = `${directory}/${name}`
    activeWorkFolders.add(name)
    try {
      await root.makeFolder(work, 0o700)
      const image = await selectImage(client, resolved, architecture, signal)
      await unpack(await createUnpackJob(client, registry, resolved, image, await root.resolve(work)), signal)
      await root.rename(`${work}/package`, pathOf(resolved.digest)).catch((error: unknown) => {
        // an aborted fetch has finished with the same content; the error of XFS is EEXIST
        if (!['ENOTEMPTY', 'EEXIST'].includes(systemCode(error) ?? '')) throw error
      })
      await root.syncFolder(directory)
      return { digest: resolved.digest, path: pathOf(resolved.digest), isNew: true }
    } finally {
      await root.remove(work)
      activeWorkFolders.delete(name)
    }
  }

  const fetchInTime: typeof fetch = async (client, registry, resolved, signal) => {
    const timeout = new AbortController()
    const cancelTimer = clock.startTimer(timeoutMs, () => timeout.abort())
    try {
      return await fetch(client, registry, resolved, AbortSignal.any([signal, timeout.signal]))
    } catch (error) {
      if (!timeout.signal.aborted || signal.aborted) throw error
      throw new ImageError(
        'unreachable',
        `${formatReference(resolved.reference)}: not fetched within ${timeoutMs} ms`,
        {
          cause: error,
        },
      )
    } finally {
      cancelTimer()
    }
  }

  const remove = async (digest: Digest): Promise<void> => {
    const trashPath = `${directory}/${workPrefix}gone-${random.hex(4)}`
    const removal = root.rename(pathOf(digest), trashPath)
    removals.set(digest, removal)
    await removal.finally(() => removals.delete(digest))
    await root.remove(trashPath)
  }

  return {
    async ensureImage(reference, { registry, signal, onResolved }) {
      const pinnedDigest = reference.digest
      if (pinnedDigest !== undefined) onResolved?.(pinnedDigest)
      if (pinnedDigest !== undefined && (await isPresent(pinnedDigest)))
        return { digest: pinnedDigest, path: pathOf(pinnedDigest), isNew: false }
      const client = createRegistryClient(registry, { clock, random, loginProvider })
      let isClientShared = false
      try {
        const resolved = await resolveImage(client, reference, signal)
        const { digest } = resolved
        onResolved?.(digest)
        if (await isPresent(digest)) return { digest, path: pathOf(digest), isNew: false }
        const startFetch = async (sharedSignal: AbortSignal) => {
          isClientShared = true // it outlives this call if others wait for the same image
          return await withLock(root, directory, async () => {
            sharedSignal.throwIfAborted()
            return await fetchInTime(client, registry, resolved, sharedSignal)
          }).finally(() => client.close())
        }
        return await fetches.join(digest, startFetch, signal)
      } finally {
        if (!isClientShared) client.close()
      }
    },

    async checkImage(reference, { registry, signal, onResolved }) {
      const client = createRegistryClient(registry, { clock, random, loginProvider })
      try {
        const resolved = await resolveImage(client, reference, signal)
        const { digest } = resolved
        onResolved?.(digest)
        if (await isPresent(digest)) return { digest, isStored: true }
        await selectImage(client, resolved, architecture, signal)
        return { digest, isStored: false }
      } finally {
        client.close()
      }
    },

    isPresent,

    async collect(isUsed) {
      const removed: Digest[] = []
      const names = (await root.list(directory)) ?? []
      for (const name of names) {
        const digest = `sha256:${name}`
        if (name.startsWith(workPrefix) && !activeWorkFolders.has(name)) await root.remove(`${directory}/${name}`)
        if (!isDigest(digest) || isUsed(digest) || fetches.has(digest) || removals.has(digest)) continue
        await remove(digest)
        removed.push(digest)
      }
      return removed
    },
  }
}

async function createUnpackJob(
  client: RegistryClient,
  registry: RegistrySettings,
  { reference }: ResolvedImage,
  { layers }: SelectedImage,
  workFolder: string,
): Promise<UnpackJob> {
  const resolvedEndpoints = await client.endpointsOf(reference)
  return {
    // the unpacking process has no login provider, so it gets the logins for this image
    registry: {
      ...registry,
      credentials: [...registry.credentials, ...client.providedCredentials()],
      sources: { resolvedEndpoints },
    },
    reference,
    layers,
    workFolder,
    target: `${workFolder}/package`,
  }
}
