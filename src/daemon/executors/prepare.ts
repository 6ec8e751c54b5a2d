import { loadPackage } from '../../packages/step/load-package.ts'
import { type Backoff, backoffMs } from '../../schemas/backoff.ts'
import type { Journal } from '../../schemas/journal.ts'
import { formatMissing, resolveReferences } from '../../packages/step/references.ts'
import { type PackageImage, type References, preparationKey } from '../../stages/model/plan.ts'
import type { Preparation } from '../../stages/model/snapshot.ts'
import { createImageSource, type ImageSourcePorts } from './image-source.ts'
import { errorField } from '../telemetry/log.ts'
import { retain } from '../state/retain.ts'

/** The retry delay after a failed pull: every node uses the same registry. */
const retryBackoff: Backoff = { initialMs: 5_000, maxMs: 300_000, jitter: 0.2 }

type FailureReason = Extract<Preparation, { state: 'failed' }>['reason']

export type Preparer = {
  /** Fetches, unpacks and reads a package and resolves its env references; `current` has the outcome. */
  prepare(image: PackageImage): Promise<void>
  /** Folder on the host with the content of an image that was prepared before. */
  readonly contentOf: (digest: string) => string
  /**
   * Removes the content that neither the journal nor a preparation needs; does nothing while something is being
   * prepared.
   */
  collect(journal: Journal): Promise<void>
  /** By preparation key. */
  readonly current: () => ReadonlyMap<string, Preparation>
  retain(needed: ReadonlySet<string>): void
}

export type PreparerPorts = ImageSourcePorts & {
  /** Looks at the host: why nothing may start there. */
  readonly whyUnfit: () => Promise<string | undefined>
}

export function createPreparer(ports: PreparerPorts): Preparer {
  const { settings } = ports
  const { clock, random, log, root } = ports.platform
  const source = createImageSource(ports)
  const preparations = new Map<string, Preparation>()
  const failureCounts = new Map<string, number>()
  let activePreparations = 0
  let pendingCollection: Promise<void> = Promise.resolve()

  function recordFailure(key: string, reason: FailureReason, message: string): void {
    const count = (failureCounts.get(key) ?? 0) + 1
    failureCounts.set(key, count)
    const waitMs = backoffMs(count, retryBackoff, random.number())
    preparations.set(key, { state: 'failed', reason, message, retryAtMs: clock.wallMs() + waitMs })
  }

  async function prepare(image: PackageImage): Promise<void> {
    const key = preparationKey(image)
    const unfitness = await ports.whyUnfit()
    if (unfitness !== undefined) return recordFailure(key, 'HostUnusable', unfitness)
    const fetched = await source.fetch(image)
    if (fetched.outcome === 'failed') return recordFailure(key, fetched.reason, fetched.message)
    const loaded = await loadPackage(root, source.contentOf(fetched.digest))
    if (loaded.outcome === 'invalid')
      return recordFailure(key, 'InvalidPackage', `${image.image}:${image.version}: ${loaded.message}`)
    for (const warning of loaded.warnings)
      log.debug({ image: image.image, pointer: warning.pointer, detail: warning.message }, 'package lint warning')
    const ready: Preparation = {
      state: 'ready',
      digest: fetched.digest,
      config: loaded.config,
      contentHashes: loaded.contentHashes,
    }
    const { references, ...content } = image
    preparations.set(preparationKey({ ...content, digest: fetched.digest }), ready) // work in progress uses the digest
    const missing = references && (await findMissing(references))
    if (missing) recordFailure(key, missing.reason, missing.message)
    else {
      failureCounts.delete(key)
      preparations.set(key, ready)
    }
  }

  async function findMissing({
    env,
    resources,
  }: References): Promise<{ reason: FailureReason; message: string } | undefined> {
    const resolved = await resolveReferences({
      env,
      resources,
      fields: settings.fieldValues,
      port: ports.references,
    })
    if (resolved.outcome === 'missing')
      return { reason: 'ReferenceMissing', message: formatMissing(resolved.references) }
    return resolved.outcome === 'invalid' ? { reason: 'InvalidSpec', message: resolved.problems.join('; ') } : undefined
  }

  return {
    async prepare(image) {
      activePreparations++
      try {
        await pendingCollection
        await prepare(image)
      } finally {
        activePreparations--
      }
    },

    contentOf: (digest) => source.contentOf(digest),
    current: () => preparations,
    retain: (needed) => retain(preparations, needed),

    async collect(journal) {
      if (activePreparations > 0) return // a newly fetched image may not be referenced yet
      const usedDigests = new Set(
        Object.values(journal.skyhooks).flatMap(({ packages }) =>
          Object.values(packages).flatMap(({ work }) => (work ? [work.digest] : [])),
        ),
      )
      for (const preparation of preparations.values())
        if (preparation.state === 'ready') usedDigests.add(preparation.digest)
      pendingCollection = source
        .collect(usedDigests)
        .catch((error: unknown) => log.warn(errorField(error), 'old images could not be removed'))
      await pendingCollection
    },
  }
}
