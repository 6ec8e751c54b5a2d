import type { Units } from '../../host/systemd/units.ts'
import { loadPackage } from '../../packages/step/load-package.ts'
import { type Backoff, backoffMs } from '../../schemas/backoff.ts'
import type { Journal } from '../../schemas/journal.ts'
import { formatMissing, resolveReferences } from '../../packages/step/references.ts'
import { type PackageImage, type References, preparationKey } from '../../stages/model/plan.ts'
import type { Preparation, PreparationDepth } from '../../stages/model/snapshot.ts'
import { createImageSource, type ImageSourcePorts } from './image-source.ts'
import type { Reason, ReasonName } from '../../schemas/catalogue/reasons.ts'
import { causeOf } from '../failures/reason-of.ts'
import { errorField } from '../telemetry/log.ts'
import { retain } from '../state/retain.ts'

/** The retry delay after a failed pull: every node uses the same registry. */
const retryBackoff: Backoff = { initialMs: 5_000, maxMs: 300_000, jitter: 0.2 }

export type Preparer = {
  /**
   * Fetches, unpacks and reads a package and resolves its env references, or only those parts that need no layers.
   * `current` has the outcome.
   */
  prepare(image: PackageImage, depth: PreparationDepth): Promise<void>
  /** Folder on the host with the content of an image that was prepared before. */
  readonly contentOf: (digest: string) => string
  /** Removes content that neither the journal nor a finished or running preparation needs. */
  collect(journal: () => Journal): Promise<void>
  /** By preparation key. */
  readonly current: () => ReadonlyMap<string, Preparation>
  retain(needed: ReadonlySet<string>): void
}

export type PreparerPorts = ImageSourcePorts & {
  /** Checks the host. Returns why nothing may start there. */
  readonly whyUnfit: () => Promise<string | undefined>
  readonly units: Pick<Units, 'version'>
}

export function createPreparer(ports: PreparerPorts): Preparer {
  const { settings } = ports
  const { clock, random, log, root } = ports.platform
  const source = createImageSource(ports)
  const preparations = new Map<string, Preparation>()
  const failures = new Map<string, { readonly count: number; readonly sinceMs: number }>()
  const activeDigests = new Set<readonly string[]>() // one entry per running preparation

  function recordFailure(key: string, depth: PreparationDepth, reason: Reason): void {
    const nowMs = clock.steadyMs()
    const { count, sinceMs } = failures.get(key) ?? { count: 0, sinceMs: nowMs }
    failures.set(key, { count: count + 1, sinceMs })
    const retryAtMs = nowMs + backoffMs(count + 1, retryBackoff, random.number())
    preparations.set(key, { ...reason, state: 'failed', depth, failingSinceMs: sinceMs, retryAtMs })
  }

  async function prepare(image: PackageImage, depth: PreparationDepth, digests: string[]): Promise<void> {
    const key = preparationKey(image)
    const fail = (reason: ReasonName, message: string): void => recordFailure(key, depth, { reason, message })
    const unfitness = await ports.whyUnfit()
    if (unfitness !== undefined) return fail('HostUnusable', unfitness)
    const fetched = await source.fetch(image, depth, (digest) => digests.push(digest))
    if (fetched.outcome === 'failed') return recordFailure(key, depth, fetched.why)
    if (fetched.outcome === 'checked') return await conclude(image, depth, { state: 'checked' })
    const loaded = await loadPackage(root, source.contentOf(fetched.digest))
    if (loaded.outcome === 'invalid')
      return fail('InvalidPackage', `${image.image}:${image.version}: ${loaded.message}`)
    for (const warning of loaded.warnings)
      log.debug({ image: image.image, pointer: warning.pointer, detail: warning.message }, 'package lint warning')
    const ready: Preparation = {
      state: 'ready',
      digest: fetched.digest,
      config: loaded.config,
      contentHashes: loaded.contentHashes,
      ownConfigFiles: loaded.ownConfigFiles,
    }
    const { image: name, version } = image
    // work in progress uses the digest
    preparations.set(preparationKey({ image: name, version, digest: fetched.digest }), ready)
    await conclude(image, depth, ready)
  }

  /** Called with a valid image. Objects that the env refers to may still be missing. */
  async function conclude(image: PackageImage, depth: PreparationDepth, outcome: Preparation): Promise<void> {
    const key = preparationKey(image)
    const missing = image.references && (await findMissing(image.references))
    if (missing) return recordFailure(key, depth, missing)
    failures.delete(key)
    preparations.set(key, outcome)
  }

  async function findMissing({ env, resources }: References): Promise<Reason | undefined> {
    const resolved = await resolveReferences({
      env,
      resources,
      fields: settings.fieldValues,
      port: ports.references,
      systemdVersion: async () => await ports.units.version({ signal: ports.signal }),
    })
    if (resolved.outcome === 'missing')
      return { reason: 'ReferenceMissing', message: formatMissing(resolved.references) }
    return resolved.outcome === 'invalid' ? { reason: 'InvalidSpec', message: resolved.problems.join('; ') } : undefined
  }

  return {
    async prepare(image, depth) {
      const digests: string[] = []
      activeDigests.add(digests)
      try {
        await prepare(image, depth, digests)
      } catch (error) {
        ports.signal.throwIfAborted()
        const { reason, detail, remedy } = causeOf(error)
        const message = `cannot prepare ${image.image}:${image.version}: ${detail}: ${remedy}`
        recordFailure(preparationKey(image), depth, { reason, message })
      } finally {
        activeDigests.delete(digests)
      }
    },

    contentOf: (digest) => source.contentOf(digest),
    current: () => preparations,
    retain(needed) {
      for (const entries of [preparations, failures]) retain(entries, needed)
    },

    async collect(journal) {
      const isUsed = (digest: string): boolean =>
        [...activeDigests].some((digests) => digests.includes(digest)) ||
        [...preparations.values()].some((one) => one.state === 'ready' && one.digest === digest) ||
        Object.values(journal().skyhooks).some(({ packages }) =>
          Object.values(packages).some(({ work }) => work?.digest === digest),
        )
      await source
        .collect(isUsed)
        .catch((error: unknown) => log.warn(errorField(error), 'old images could not be removed'))
    },
  }
}
