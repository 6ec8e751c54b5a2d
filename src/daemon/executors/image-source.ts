import type { HostFiles } from '../../packages/oci/read/certs-directory.ts'
import { parseDockerConfig, type Credential } from '../../packages/oci/read/credentials.ts'
import { isDigest } from '../../packages/oci/digest.ts'
import type { RegistryRule } from '../../packages/oci/read/endpoints.ts'
import { imageErrorCode } from '../../packages/oci/errors.ts'
import type { ImageErrorCode } from '../../schemas/catalogue/reason-codes.ts'
import { packageReference } from '../../packages/oci/reference.ts'
import type { RegistrySettings } from '../../packages/oci/read/registry.ts'
import type { ReferencePort } from '../../packages/step/references.ts'
import type { PackageImage } from '../../stages/model/plan.ts'
import type { PreparationDepth } from '../../stages/model/snapshot.ts'
import type { Reason } from '../../schemas/catalogue/reasons.ts'
import type { ImageStore } from '../../packages/store/image-store.ts'
import { causeOf } from '../failures/reason-of.ts'
import type { Platform } from '../platform/platform.ts'
import type { Settings } from '../settings/settings.ts'

export type ImageSourcePorts = {
  readonly platform: Pick<Platform, 'clock' | 'random' | 'log' | 'root' | 'openImageStore'>
  readonly settings: Pick<Settings, 'copyDirRoot' | 'fieldValues' | 'imagePullSecrets' | 'registries' | 'proxy'>
  readonly references: ReferencePort
  readonly signal: AbortSignal
}

export type FetchOutcome =
  | { readonly outcome: 'fetched'; readonly digest: string }
  /** The image exists in the registry, and is not on the host. */
  | { readonly outcome: 'checked' }
  | { readonly outcome: 'failed'; readonly why: Reason }

/** The source of package images: the store on the host, and registries with the cluster's logins and authorities. */
export type ImageSource = {
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

export function createImageSource({ platform, settings, references, signal }: ImageSourcePorts): ImageSource {
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
