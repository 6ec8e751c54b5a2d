import type { Readable } from 'node:stream'
import { authorize, parseChallenges } from './auth.ts'
import type { Capability } from './certs-directory.ts'
import type { Credential } from './credentials.ts'
import { type Endpoint, type EndpointSources, readEndpoints } from './endpoints.ts'
import { ImageError } from '../errors.ts'
import { type RegistryResponse, createRegistryTransport, type RegistryRequest, type ProxyEnvironment } from './http.ts'
import { createLogins, type FoundLogins, type LoginProvider, type LoginSource } from './logins.ts'
import { type OnReceived, retryTransient } from './retry.ts'
import type { ImageReference } from '../reference.ts'
import type { Clock, Random } from '../../../schemas/clock.ts'
import { errorFromResponse } from './error-response.ts'

export type RegistrySettings = {
  readonly credentials: readonly Credential[]
  /** The origin of the logins as errors name it; pull secrets by default. */
  readonly loginSource?: LoginSource
  /** Where addresses are read from, or addresses that were read before. */
  readonly sources: EndpointSources | { readonly resolvedEndpoints: readonly Endpoint[] }
  readonly proxy?: ProxyEnvironment
  /** How long a call is retried while the registry fails transiently; a download counts from its last progress. */
  readonly retryForMs?: number
  /** A connection that receives nothing for this time ends, unless the registry stores a blob. */
  readonly noProgressMs?: number
}

export type RegistryCall = {
  readonly method: RegistryRequest['method']
  /** After the repository (`/manifests/latest`), or the address that the registry returned for an upload. */
  readonly path: string | URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer | (() => Readable)
  readonly isLarge?: boolean
  /** A status that is not an error for this request. */
  readonly expected?: number
}

export type RegistrySend = (call: RegistryCall) => Promise<RegistryResponse>

/**
 * Registries as this host sees them: mirrors, authorities, logins. Created for one pull or push or a few. Until it is
 * closed, it keeps logins and connections, and remembers which mirrors did not answer.
 */
export type RegistryClient = {
  /** The addresses of a repository, in the order in which they are tried. @throws ImageError misconfigured */
  endpointsOf(image: Pick<ImageReference, 'host' | 'repository'>): Promise<readonly Endpoint[]>
  /**
   * Runs `use` at the first address of the repository's host that can; transient failures are retried over the whole
   * list. `send` makes one authorized request there; a status of 400 or more is an ImageError. Before it fails, `use`
   * reports to `onReceived` the bytes that it has and will not request again.
   * @throws ImageError of the registry itself, or of a mirror if only a mirror answered; its message contains all
   * failures
   */
  attempt<T>(
    repository: Pick<ImageReference, 'host' | 'repository'>,
    capability: Capability,
    use: (send: RegistrySend, host: string, onReceived: OnReceived) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T>
  /** The logins that were used and did not come from `credentials`, each for its repository alone. */
  providedCredentials(): readonly Credential[]
  close(): void
}

/** A longer time would hide the failure of the registry from people: the caller reports it and tries again. */
const defaultRetryForMs = 10_000

export type RegistryPorts = {
  readonly clock: Clock
  readonly random: Random
  /** Called if a registry requires a login and none of the credentials matches. */
  readonly loginProvider?: LoginProvider | undefined
}

export function createRegistryClient(
  settings: RegistrySettings,
  { clock, random, loginProvider }: RegistryPorts,
): RegistryClient {
  const transport = createRegistryTransport(settings, clock)
  const endpoints = new Map<string, Promise<readonly Endpoint[]>>()
  const unreachableEndpoints = new Set<Endpoint>()
  const logins = createLogins(settings.credentials, loginProvider, settings.loginSource)
  const authorizations = new Map<string, string>()

  const endpointsOf: RegistryClient['endpointsOf'] = ({ host, repository }) => {
    const { sources } = settings
    const image = `${host}/${repository}`
    const found =
      endpoints.get(image) ??
      ('resolvedEndpoints' in sources
        ? Promise.resolve(sources.resolvedEndpoints)
        : readEndpoints(host, sources, repository))
    endpoints.set(image, found)
    return found
  }

  /** After a refusal, tries one login after another until one is accepted. */
  const logIn = async (
    refused: { readonly response: RegistryResponse; readonly endpoint: Endpoint; readonly scope: string },
    found: FoundLogins,
    send: (authorization: string) => Promise<RegistryResponse>,
    signal: AbortSignal,
  ): Promise<{ readonly response: RegistryResponse; readonly authorization?: string }> => {
    const { endpoint, scope } = refused
    const challenges = parseChallenges(refused.response.headers['www-authenticate'] ?? '')
    const candidates = found.logins.length === 0 ? [undefined] : found.logins
    let { response } = refused
    for (const [index, login] of candidates.entries()) {
      const isLast = index === candidates.length - 1
      const context = { transport, trust: endpoint.trust, url: refused.response.url, scope, login, clock }
      let authorization: string | undefined
      try {
        authorization = await authorize(challenges, context, signal)
      } catch (error) {
        if (isLast || !isRefusal(error)) throw error
        continue
      }
      if (authorization === undefined) return { response }
      response.body.resume()
      response = await send(authorization)
      if (response.status !== 401 && login !== undefined) found.onAccepted(login)
      if (response.status !== 401 || isLast) return { response, authorization }
    }
    return { response }
  }

  const call = async (
    endpoint: Endpoint,
    repository: string,
    { method, path, headers, body, isLarge = false, expected }: RegistryCall,
    signal: AbortSignal,
  ): Promise<RegistryResponse> => {
    const repositoryUrl = new URL(`${endpoint.base}/${repository}`)
    const url = path instanceof URL ? path : new URL(`${repositoryUrl.href}${path}`)
    if (repositoryUrl.protocol === 'https:' && url.protocol !== 'https:')
      throw new ImageError('bad-response', `${endpoint.host}: redirects the upload from https to ${url.origin}`)
    if (endpoint.namespace !== undefined) url.searchParams.set('ns', endpoint.namespace)
    const isSameHost = url.host === repositoryUrl.host // the upload may go elsewhere; the login does not
    const actions = method === 'GET' || method === 'HEAD' ? 'pull' : 'pull,push'
    const key = `${endpoint.base} ${repository} ${actions}`
    const send = (authorization: string | undefined): Promise<RegistryResponse> => {
      const ownHeaders = isSameHost
        ? { ...endpoint.headers, ...(authorization !== undefined && { authorization }) }
        : {}
      const all = { 'user-agent': 'skyhookd', ...ownHeaders, ...headers }
      const request = { method, url, headers: all, trust: endpoint.trust, isLarge, ...(body && { body }) }
      return transport.send(request, signal)
    }

    let response = await send(authorizations.get(key))
    let found: FoundLogins | undefined
    try {
      if (response.status === 401 && isSameHost && response.url.host === url.host) {
        found = await logins.find(endpoint.host, repository, signal)
        const refused = { response, endpoint, scope: `repository:${repository}:${actions}` }
        const answer = await logIn(refused, found, send, signal)
        response = answer.response
        if (answer.authorization !== undefined && response.status !== 401) authorizations.set(key, answer.authorization)
      }
      if (response.status < 400 || response.status === expected) return response
      throw await errorFromResponse(response, repositoryUrl.host, signal)
    } catch (error) {
      if (!isRefusal(error)) throw error
      found ??= logins.known(endpoint.host, repository)
      found.onRefused()
      throw new ImageError(error.code, `${error.message} (${found.hint})`, { cause: error })
    }
  }

  return {
    endpointsOf,

    async attempt({ host, repository }, capability, use, signal) {
      const all = await endpointsOf({ host, repository })
      const capableEndpoints = (capability === 'push' ? all.slice(-1) : all).filter(({ capabilities }) =>
        capabilities.includes(capability),
      ) // never push to a mirror
      if (capableEndpoints.length === 0)
        throw new ImageError('misconfigured', `${host}: none of its addresses may ${capability}`)

      const tryAll = async (onReceived: OnReceived) => {
        const failures: ImageError[] = []
        for (const endpoint of [
          ...capableEndpoints.filter((one) => !unreachableEndpoints.has(one)),
          ...capableEndpoints.filter((one) => unreachableEndpoints.has(one)),
        ]) {
          try {
            const result = await use(
              (request) => call(endpoint, endpoint.repository ?? repository, request, signal),
              endpoint.host,
              onReceived,
            )
            unreachableEndpoints.delete(endpoint)
            return result
          } catch (error) {
            if (!(error instanceof ImageError)) throw error
            // the next blob must not wait for this address again
            if (error.code === 'unreachable') unreachableEndpoints.add(endpoint)
            failures.push(error)
          }
        }
        throw combineErrors(failures)
      }
      const { retryForMs = defaultRetryForMs } = settings
      return await retryTransient(tryAll, { clock, random, retryForMs, signal })
    },

    providedCredentials: () => logins.provided(),
    close: () => transport.close(),
  }
}

function isRefusal(error: unknown): error is ImageError {
  return error instanceof ImageError && (error.code === 'unauthorized' || error.code === 'denied')
}

/**
 * The registry's own failure is the most specific, unless only a mirror was reachable. The message names every address.
 */
function combineErrors(failures: readonly ImageError[]): ImageError {
  const isAnswer = ({ code }: ImageError) => code !== 'unreachable' && code !== 'tls'
  const last = failures.at(-1)
  const mostSpecific = last !== undefined && isAnswer(last) ? last : (failures.find(isAnswer) ?? last)
  if (mostSpecific === undefined) throw new Error('no address was tried')
  if (failures.length === 1) return mostSpecific
  return new ImageError(mostSpecific.code, joinMessages(failures), {
    cause: mostSpecific,
    retryAfterMs: mostSpecific.retryAfterMs,
  })
}

/** `<address>: <answer>` of each; an answer of several addresses is shown once. */
function joinMessages(failures: readonly ImageError[]): string {
  const addresses = new Map<string, string[]>()
  for (const { message } of failures) {
    const [address = '', ...answer] = message.split(': ')
    const key = answer.join(': ')
    addresses.set(key, [...(addresses.get(key) ?? []), address])
  }
  return [...addresses].map(([answer, all]) => `${[...new Set(all)].join(', ')}: ${answer}`).join('; ')
}
