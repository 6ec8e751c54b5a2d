import { isObject, isTexts, type JsonObject } from '../../../schemas/json.ts'
import { durationMs } from '../../../schemas/time.ts'

/** One entry of a CredentialProviderConfig: a plugin of the kubelet that provides logins for some images. */
export type CredentialProvider = {
  /** Name of the program in the kubelet's plugin folder. */
  readonly name: string
  /** Patterns of the images that it is for. */
  readonly matchImages: readonly string[]
  /** How long an answer without its own duration stays valid; 0 disables the cache. */
  readonly defaultCacheMs: number
  /** API of the plugin: `credentialprovider.kubelet.k8s.io/v1` or an earlier version. */
  readonly apiVersion: string
  readonly args: readonly string[]
  /** May hold secrets. */
  readonly env: Readonly<Record<string, string>>
  /** The kubelet calls it only for pods with a ServiceAccount, and passes it a token of that account. */
  readonly needsServiceAccount: boolean
}

/** An unusable configuration. `message` names file and field, and never contains the value of a variable. */
export class ProviderConfigError extends Error {
  override readonly name = 'ProviderConfigError'
}

const configVersions = /^kubelet\.config\.k8s\.io\/(?:v1|v1beta1|v1alpha1)$/
const pluginVersions = /^credentialprovider\.kubelet\.k8s\.io\/(?:v1|v1beta1|v1alpha1)$/

/** A parsed file of the kubelet's configuration. */
export type ConfigDocument = { readonly path: string; readonly document: unknown }

/**
 * The providers of all files in their order. Ignores fields of newer kubelets.
 * @throws ProviderConfigError if the kubelet would not start with this configuration
 */
export function parseProviderConfig(files: readonly ConfigDocument[]): CredentialProvider[] {
  const providers: CredentialProvider[] = []
  for (const { path, document } of files) {
    const refuse = (why: string): never => {
      throw new ProviderConfigError(`${path}: ${why}`)
    }
    if (!isObject(document) || document['kind'] !== 'CredentialProviderConfig')
      return refuse('must be of kind CredentialProviderConfig')
    const { apiVersion, providers: entries } = document
    if (typeof apiVersion !== 'string' || !configVersions.test(apiVersion))
      return refuse('apiVersion must be kubelet.config.k8s.io/v1, v1beta1 or v1alpha1')
    if (!Array.isArray(entries) || entries.length === 0) return refuse('has no providers')
    for (const [index, entry] of entries.entries()) {
      const provider = parseProvider(entry, (why) => refuse(`providers[${index}]${why}`))
      if (providers.some(({ name }) => name === provider.name)) refuse(`${provider.name} is listed twice`)
      providers.push(provider)
    }
  }
  return providers
}

function parseProvider(entry: unknown, refuse: (why: string) => never): CredentialProvider {
  if (!isObject(entry)) return refuse(' must be an object')
  const { name, apiVersion, matchImages, defaultCacheDuration, args, env, tokenAttributes } = entry
  if (typeof name !== 'string' || !/^[^/\s]+$/.test(name) || name === '.' || name === '..')
    return refuse('.name must be the name of a program, without slash and space')
  if (typeof apiVersion !== 'string' || !pluginVersions.test(apiVersion))
    return refuse('.apiVersion must be credentialprovider.kubelet.k8s.io/v1, v1beta1 or v1alpha1')
  const images = isTexts(matchImages) ? matchImages : refuse('.matchImages must be a list of strings')
  if (images.length === 0) return refuse('.matchImages is empty')
  const malformed = images.find((one) => !isAddress(one))
  if (malformed !== undefined) return refuse(`.matchImages: ${malformed} is not the address of images`)
  const defaultCacheMs = typeof defaultCacheDuration === 'string' ? durationMs(defaultCacheDuration) : undefined
  const parameters = args ?? []
  return {
    name,
    apiVersion,
    matchImages: images,
    defaultCacheMs: defaultCacheMs ?? refuse('.defaultCacheDuration must be a duration, such as 12h'),
    args: isTexts(parameters) ? parameters : refuse('.args must be a list of strings'),
    env: variablesOf(env ?? [], refuse),
    needsServiceAccount: isObject(tokenAttributes) && tokenAttributes['requireServiceAccount'] !== false,
  }
}

/** The kubelet accepts what can follow the scheme of a URL. */
const isAddress = (pattern: string): boolean => /^(?:https?:\/\/)?[^/\s?#@%\\][^\s?#@%\\]*$/.test(pattern)

function variablesOf(list: unknown, refuse: (why: string) => never): Record<string, string> {
  if (!Array.isArray(list)) return refuse('.env must be a list')
  return Object.fromEntries(
    list.map((item: JsonObject): [string, string] => {
      const { name, value } = isObject(item) ? item : {}
      if (typeof name !== 'string' || typeof value !== 'string') return refuse('.env must have names and values')
      return [name, value]
    }),
  )
}
