import { whyNothingRunsIn } from '../../host/mounts.ts'
import type { HostRoot } from '../../host/root.ts'
import { loadPackage } from '../../packages/config.ts'
import type { Journal } from '../../schemas/journal.ts'
import type { PackageImage } from '../../stages/plan.ts'
import { preparationKey } from '../../stages/plan.ts'
import type { Preparation } from '../../stages/world.ts'
import { createImageSource } from '../image-source.ts'
import type { ImageSourcePorts } from '../image-source.ts'
import { errorField } from '../log.ts'
import type { State } from '../state.ts'

/** First wait after a failed pull, doubled up to the longest; the registry is asked by every node, so not too eagerly. */
const firstRetryMs = 5_000
const longestRetryMs = 300_000

export type Preparer = {
  /** Fetches, unpacks and reads a package; the outcome stands in the state. */
  prepare(image: PackageImage): Promise<void>
  /** Folder on the host with the content of an image that was prepared before. */
  readonly contentOf: (digest: string) => string
  /** Removes the content that neither the journal nor a preparation needs; does nothing while something is being prepared. */
  collect(journal: Journal): Promise<void>
}

export function createPreparer(ports: ImageSourcePorts & { readonly root: HostRoot; readonly state: State }): Preparer {
  const { root, state, settings, log } = ports
  const source = createImageSource(ports)
  const failures = new Map<string, number>()
  let underWay = 0
  let collecting: Promise<void> = Promise.resolve()

  function failed(key: string, reason: 'ImagePull' | 'InvalidPackage' | 'HostUnusable', message: string): void {
    const count = (failures.get(key) ?? 0) + 1
    failures.set(key, count)
    const waitMs = Math.min(longestRetryMs, firstRetryMs * 2 ** (count - 1)) * (0.8 + Math.random() / 5)
    state.prepared.set(key, { state: 'failed', reason, message, retryAtMs: Date.now() + waitMs })
  }

  async function prepare(image: PackageImage): Promise<void> {
    const key = preparationKey(image)
    const useless = await whyNothingRunsIn(root, settings.copyDirRoot)
    if (useless !== undefined) return failed(key, 'HostUnusable', useless)
    const fetched = await source.fetch(image)
    if (fetched.outcome === 'failed') return failed(key, fetched.reason, fetched.message)
    const loaded = await loadPackage(root, source.contentOf(fetched.digest))
    if (loaded.outcome === 'invalid') return failed(key, 'InvalidPackage', `${image.image}:${image.version}: ${loaded.message}`)
    failures.delete(key)
    for (const warning of loaded.warnings)
      log.debug({ image: image.image, pointer: warning.pointer, detail: warning.message }, 'package could be better')
    const ready: Preparation = { state: 'ready', digest: fetched.digest, config: loaded.config, contentHashes: loaded.contentHashes }
    state.prepared.set(key, ready)
    state.prepared.set(preparationKey({ ...image, digest: fetched.digest }), ready) // begun work asks by digest
  }

  return {
    async prepare(image) {
      underWay++
      try {
        await collecting
        await prepare(image)
      } finally {
        underWay--
      }
    },

    contentOf: (digest) => source.contentOf(digest),

    async collect(journal) {
      if (underWay > 0) return // what was just fetched is not known to be needed yet
      const kept = new Set(
        Object.values(journal.skyhooks).flatMap(({ packages }) =>
          Object.values(packages).flatMap(({ work }) => (work ? [work.digest] : [])),
        ),
      )
      for (const preparation of state.prepared.values()) if (preparation.state === 'ready') kept.add(preparation.digest)
      collecting = source.collect(kept).catch((error: unknown) => log.warn(errorField(error), 'old images could not be removed'))
      await collecting
    },
  }
}
