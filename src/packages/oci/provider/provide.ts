import type { Clock } from '../../../schemas/clock.ts'
import { isObject, messageOf } from '../../../schemas/json.ts'
import { durationMs } from '../../../schemas/time.ts'
import { createSingleFlight } from '../../store/single-flight.ts'
import type { Login } from '../read/credentials.ts'
import type { LoginProvider, ProvidedLogins } from '../read/logins.ts'
import { matchLength, registryOf } from '../reference.ts'
import type { CredentialProvider } from './config.ts'

/** The providers of this host as they are configured now. */
export type ProviderSource = {
  readonly providers: readonly CredentialProvider[]
  /** Changes with the configuration of the providers; cached answers are dropped then. */
  readonly fingerprint: string
  /** Runs the plugin and returns its output. @throws Error with a message for people, without any secret */
  run(provider: CredentialProvider, request: string, signal: AbortSignal): Promise<string>
}

export type ProviderPorts = {
  readonly clock: Pick<Clock, 'monotonicMs'>
  /** Undefined: this host has none. @throws Error with a message for people */
  readonly open: (signal: AbortSignal) => Promise<ProviderSource | undefined>
}

type Remembered = { readonly logins: readonly ProvidedLogin[]; readonly untilMs: number }

/**
 * Calls the host's credential providers as the kubelet does: all that match the image, in parallel, and each again when
 * its answer has expired. Answers are kept in memory only.
 */
export function createCredentialProviders({ clock, open }: ProviderPorts): LoginProvider {
  const runs = createSingleFlight<string, readonly ProvidedLogin[]>()
  const cache = new Map<string, Remembered>() // by provider and key
  let fingerprint = ''

  const entry = (provider: CredentialProvider, key: string): string => `${provider.name} ${key}`

  function remembered(provider: CredentialProvider, image: string): readonly ProvidedLogin[] | undefined {
    for (const [key, { untilMs }] of cache) if (untilMs <= clock.monotonicMs()) cache.delete(key)
    const keys = [...cacheKeys(image).values()]
    return keys.map((key) => cache.get(entry(provider, key))?.logins).find((logins) => logins !== undefined)
  }

  async function ask(source: ProviderSource, provider: CredentialProvider, image: string, signal: AbortSignal) {
    const known = remembered(provider, image)
    if (known !== undefined) return known
    const run = async (runSignal: AbortSignal): Promise<readonly ProvidedLogin[]> => {
      const output = await source.run(provider, formatRequest(provider, image), runSignal)
      const { logins, cacheKey, cacheMs } = parseResponse(output, provider, image)
      if (cacheMs > 0 && source.fingerprint === fingerprint)
        cache.set(entry(provider, cacheKey), { logins, untilMs: clock.monotonicMs() + cacheMs })
      return logins
    }
    return await runs.join(`${source.fingerprint} ${entry(provider, image)}`, run, signal)
  }

  async function askAll(source: ProviderSource, image: string, signal: AbortSignal): Promise<ProvidedLogins> {
    const matching = source.providers.filter(({ matchImages }) =>
      matchImages.some((pattern) => matchLength(pattern, 'matchImages', image) > 0),
    )
    const asked = matching.filter(({ needsServiceAccount }) => !needsServiceAccount)
    const problems = matching
      .filter(({ needsServiceAccount }) => needsServiceAccount)
      .map(
        ({ name }) => `${name} needs the token of a pod's ServiceAccount (tokenAttributes), which agents do not give`,
      )
    const answers = await Promise.allSettled(asked.map(async (provider) => await ask(source, provider, image, signal)))
    signal.throwIfAborted()
    const logins: ProvidedLogin[] = []
    for (const [index, answer] of answers.entries()) {
      if (answer.status === 'fulfilled') logins.push(...answer.value)
      else problems.push(`${asked[index]?.name}: ${messageOf(answer.reason)}`)
    }
    return { logins: loginsFor(image, logins), providers: asked.map(({ name }) => name), problems }
  }

  return {
    async loginsOf(image, signal) {
      let source: ProviderSource | undefined
      try {
        source = await open(signal)
      } catch (error) {
        signal.throwIfAborted()
        return { logins: [], providers: [], problems: [messageOf(error)] }
      }
      if (source === undefined) return { logins: [], providers: [], problems: [] }
      if (source.fingerprint !== fingerprint) cache.clear()
      fingerprint = source.fingerprint
      return await askAll(source, image, signal)
    },

    forget(image) {
      const keys = [...cacheKeys(image).values()]
      for (const key of cache.keys()) if (keys.some((one) => key.endsWith(` ${one}`))) cache.delete(key)
    },
  }
}

/** What a plugin answered about an image. */
type ProviderResponse = {
  readonly logins: readonly ProvidedLogin[]
  /** Images with the same key share an answer. */
  readonly cacheKey: string
  /** How long the answer stays valid; 0 disables the cache. */
  readonly cacheMs: number
}

/** A login and the pattern of its images, as the plugin wrote them. */
type ProvidedLogin = { readonly key: string; readonly login: Login }

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
