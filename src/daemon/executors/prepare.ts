import type { Units } from '../../host/systemd/units.ts'
import { imageErrorCode } from '../../packages/oci/errors.ts'
import type { HostFiles } from '../../packages/oci/read/certs-directory.ts'
import { type Credential, parseDockerConfig } from '../../packages/oci/read/credentials.ts'
import type { RegistryRule } from '../../packages/oci/read/endpoints.ts'
import type { RegistrySettings } from '../../packages/oci/read/registry.ts'
import { isDigest, packageReference } from '../../packages/oci/reference.ts'
import { loadPackage } from '../../packages/step/load-package.ts'
import { formatMissing, type ReferencePort, resolveReferences } from '../../packages/step/references.ts'
import type { ImageStore } from '../../packages/store/image-store.ts'
import { type Backoff, backoffMs } from '../../schemas/backoff.ts'
import type { ImageErrorCode } from '../../schemas/catalogue/reason-codes.ts'
import type { ReasonName } from '../../schemas/catalogue/reasons.ts'
import type { Reason } from '../../schemas/catalogue/reason.ts'
import type { Journal } from '../../schemas/journal.ts'
import { type PackageImage, preparationKey, type References } from '../../stages/model/plan.ts'
import type { Preparation, PreparationDepth } from '../../stages/model/snapshot.ts'
import { causeOf } from '../failures/reason-of.ts'
import type { Platform } from '../platform/platform.ts'
import type { Settings } from '../settings/settings.ts'
import { retain } from '../state/retain.ts'
import { errorField } from '../telemetry/log.ts'

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

type ImageSourcePorts = {
  readonly platform: Pick<Platform, 'clock' | 'random' | 'log' | 'root' | 'openImageStore'>
  readonly settings: Pick<Settings, 'copyDirRoot' | 'fieldValues' | 'imagePullSecrets' | 'registries' | 'proxy'>
  readonly references: ReferencePort
  readonly signal: AbortSignal
}

type FetchOutcome =
  | { readonly outcome: 'fetched'; readonly digest: string }
  /** The image exists in the registry, and is not on the host. */
  | { readonly outcome: 'checked' }
  | { readonly outcome: 'failed'; readonly why: Reason }

/** The source of package images: the store on the host, and registries with the cluster's logins and authorities. */
type ImageSource = {
  /**
   * Fetches no further than `depth`; an image on the host counts as fetched at any depth. `onResolved` gets the digest
   * before the store looks for the image.
   */
  fetch(image: PackageImage, depth: PreparationDepth, onResolved: (digest: string) => void): Promise<FetchOutcome>
  /** Path on the host. */
  readonly contentOf: (digest: string) => string
  /** Removes unused images. Calls `isUsed` right before each removal. */
  collect(isUsed: (digest: string) => boolean): Promise<void>
}

const certsDirectory = '/etc/containerd/certs.d'

function createImageSource({ platform, settings, references, signal }: ImageSourcePorts): ImageSource {
  const { root, log } = platform
  const folder = `${settings.copyDirRoot}/.agent/images`
  let openedStore: ImageStore | undefined

  /** The first successful use opens it. */
  async function openStore(): Promise<ImageStore> {
    if (!openedStore) {
      await root.mkdirp(folder, 0o700)
      openedStore ??= platform.openImageStore(folder)
    }
    return openedStore
  }

  const contentOf = (digest: string): string => `${folder}/${digest.replace('sha256:', '')}`

  return {
    async fetch(image, depth, onResolved) {
      const missing: MissingSecrets = { logins: [], authorities: [] }
      try {
        if (image.digest !== undefined && isDigest(image.digest)) {
          onResolved(image.digest)
          if (await (await openStore()).isPresent(image.digest)) return { outcome: 'fetched', digest: image.digest }
        }
        const reference = packageReference(image.image, image.version, image.digest)
        const registry = await registrySettings(settings, references, root, missing)
        if (missing.logins.length + missing.authorities.length > 0)
          log.warn(missing, 'registry Secrets of the chart are missing or invalid')
        const store = await openStore()
        if (depth === 'manifest') {
          const { digest, isStored } = await store.checkImage(reference, { registry, signal, onResolved })
          return isStored ? { outcome: 'fetched', digest } : { outcome: 'checked' }
        }
        const storedImage = await store.ensureImage(reference, { registry, signal, onResolved })
        if (storedImage.isNew)
          log.info({ image: image.image, version: image.version, digest: storedImage.digest }, 'image fetched')
        return { outcome: 'fetched', digest: storedImage.digest }
      } catch (error) {
        signal.throwIfAborted()
        return { outcome: 'failed', why: fetchFailure(image, error, { missing, folder }) }
      }
    },
    contentOf,
    async collect(isUsed) {
      const removed = await (await openStore()).collect(isUsed)
      if (removed.length > 0) log.info({ removed }, 'unused images removed')
    },
  }
}

/** Secrets named in the chart's values that are missing or invalid. */
type MissingSecrets = { readonly logins: string[]; readonly authorities: string[] }

function fetchFailure(
  { image, version, digest }: PackageImage,
  error: unknown,
  { missing, folder }: { readonly missing: MissingSecrets; readonly folder: string },
): Reason {
  const name = digest === undefined ? `${image}:${version}` : `${image}@${digest}`
  const code = imageErrorCode(error)
  const { reason, detail, remedy } = causeOf(error)
  if (code === undefined)
    return { reason, message: `cannot fetch and store ${name}: ${detail} (in ${folder}): ${remedy}` }
  const description = detail.includes(image) ? detail : `${name}: ${detail}`
  const hint = hintFor(code, digest !== undefined, missing)
  return { reason, code, message: hint === undefined ? description : `${description}. ${hint}` }
}

/** The remedy, if the registry's message does not contain one. */
function hintFor(
  code: ImageErrorCode,
  isByDigest: boolean,
  { logins, authorities }: MissingSecrets,
): string | undefined {
  if (code === 'not-found')
    return isByDigest
      ? 'Check that containerSHA is the digest of an image of this repository'
      : 'Check that the version is a tag of this repository'
  if (code === 'digest-mismatch')
    return 'The registry or a mirror serves content that does not match the digest: fix it there, or push again'
  if ((code === 'unauthorized' || code === 'denied') && logins.length > 0)
    return (
      `The chart's imagePullSecrets name ${logins.join(', ')}: missing, or not of type ` +
      `kubernetes.io/dockerconfigjson`
    )
  if (code === 'tls' && authorities.length > 0)
    return `The chart's registries name the caSecret ${authorities.join(', ')}: missing, or without ca.crt`
  return undefined
}

/** Reads the settings again for each image: Secrets are rotated while agents run, and the agent does not keep them. */
async function registrySettings(
  settings: ImageSourcePorts['settings'],
  references: ReferencePort,
  files: HostFiles,
  missing: MissingSecrets,
): Promise<RegistrySettings> {
  const credentials: Credential[] = []
  for (const name of settings.imagePullSecrets) {
    const config = (await references.secret(name))?.['.dockerconfigjson']
    if (config === undefined) missing.logins.push(name)
    else credentials.push(...parseDockerConfig(Buffer.from(config, 'base64').toString(), `secret ${name}`))
  }
  const rules: RegistryRule[] = []
  for (const { host, mirrors, caSecret, plainHTTP } of settings.registries) {
    const ca = caSecret === undefined || caSecret === '' ? undefined : (await references.secret(caSecret))?.['ca.crt']
    if (caSecret && ca === undefined) missing.authorities.push(caSecret)
    rules.push({
      host,
      ...(mirrors && { mirrors }),
      ...(ca !== undefined && { ca: Buffer.from(ca, 'base64').toString() }),
      ...(plainHTTP !== undefined && { plainHTTP }),
    })
  }
  const { httpsProxy, noProxy } = settings.proxy
  return {
    credentials,
    sources: { files, certsDirectory, rules },
    ...(httpsProxy && { proxy: { HTTPS_PROXY: httpsProxy, ...(noProxy && { NO_PROXY: noProxy }) } }),
  }
}
