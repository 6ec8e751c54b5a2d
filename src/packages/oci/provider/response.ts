import { durationMs } from '../../../schemas/duration.ts'
import { isObject } from '../../../schemas/json.ts'
import { matchLength, registryOf } from '../image-pattern.ts'
import type { Login } from '../read/credentials.ts'
import type { CredentialProvider } from './config.ts'

/** What a plugin answered about an image. */
export type ProviderResponse = {
  readonly logins: readonly ProvidedLogin[]
  /** Images with the same key share an answer. */
  readonly cacheKey: string
  /** How long the answer stays valid; 0 disables the cache. */
  readonly cacheMs: number
}

/** A login and the pattern of its images, as the plugin wrote them. */
export type ProvidedLogin = { readonly key: string; readonly login: Login }

/** The request that a plugin reads from its standard input. */
export function formatRequest({ apiVersion }: CredentialProvider, image: string): string {
  return `${JSON.stringify({ kind: 'CredentialProviderRequest', apiVersion, image })}\n`
}

/**
 * Parses the standard output of the plugin.
 * @throws Error whose message names what is missing, without a quote: the output contains passwords
 */
export function parseResponse(text: string, provider: CredentialProvider, image: string): ProviderResponse {
  let document: unknown
  try {
    document = JSON.parse(text)
  } catch {
    document = undefined // the parser's message quotes the answer
  }
  if (!isObject(document) || document['kind'] !== 'CredentialProviderResponse')
    throw new Error('its output is not a CredentialProviderResponse')
  const { apiVersion, cacheKeyType, cacheDuration, auth } = document
  if (apiVersion !== provider.apiVersion)
    throw new Error(`its answer must have the apiVersion ${provider.apiVersion} of its configuration`)
  const cacheKey = typeof cacheKeyType === 'string' ? cacheKeys(image).get(cacheKeyType) : undefined
  if (cacheKey === undefined) throw new Error('cacheKeyType of its answer must be Image, Registry or Global')
  const isUnset = cacheDuration === undefined || cacheDuration === null
  const cacheMs = isUnset ? provider.defaultCacheMs : typeof cacheDuration === 'string' && cacheTime(cacheDuration)
  if (typeof cacheMs !== 'number') throw new Error('cacheDuration of its answer must be a duration')
  const logins = Object.entries(isObject(auth) ? auth : {}).flatMap(([key, entry]) => {
    const { username, password } = isObject(entry) ? entry : {}
    if (typeof username !== 'string' || typeof password !== 'string') return []
    return [{ key, login: { kind: 'password', username, password } as const }]
  })
  return { logins, cacheKey, cacheMs }
}

/** The cache keys of an answer about the image, by cacheKeyType. */
export function cacheKeys(image: string): ReadonlyMap<string, string> {
  return new Map([
    ['Image', `image ${image}`],
    ['Registry', `registry ${registryOf(image)}`],
    ['Global', 'global'],
  ])
}

/**
 * The logins for the image, in the kubelet's order: by key in reverse alphabetical order, so that a longer key comes
 * before its prefix. Logins of the same key keep the order of the providers.
 */
export function loginsFor(image: string, provided: readonly ProvidedLogin[]): Login[] {
  return provided
    .filter(({ key }) => matchLength(key.replace(/\/+$/, ''), 'matchImages', image) > 0)
    .sort((one, other) => (one.key === other.key ? 0 : one.key < other.key ? 1 : -1))
    .map(({ login }) => login)
}

/** A negative duration counts as none. */
function cacheTime(text: string): number | undefined {
  return text.startsWith('-') ? 0 : durationMs(text)
}
