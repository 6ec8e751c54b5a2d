import type { Readable } from 'node:stream'
import { authorize, parseChallenges } from './auth.ts'
import type { Capability } from './certs-directory.ts'
import { type Credential, findLogin } from './credentials.ts'
import { type Endpoint, type EndpointSources, readEndpoints } from './endpoints.ts'
import { ImageError } from '../errors.ts'
import { type Answer, createTransport, type Exchange, type ProxyEnvironment } from './http.ts'
import { type Clock, retrying, systemClock } from './retry.ts'
import { errorOf } from './error-body.ts'

export type RegistrySettings = {
  readonly credentials: readonly Credential[]
  /** Where addresses are read from, or those already read. */
  readonly sources: EndpointSources | { readonly known: readonly Endpoint[] }
  readonly proxy?: ProxyEnvironment
  /** How long one call may be repeated while the registry fails in passing. */
  readonly retryForMs?: number
  /** Nothing received for so long ends a connection. */
  readonly noProgressMs?: number
  readonly clock?: Clock
}

export type Call = {
  readonly method: Exchange['method']
  /** After the repository (`/manifests/latest`), or the address that the registry gave for an upload. */
  readonly path: string | URL
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: Buffer | (() => Readable)
  /** A status that is an answer here, not an error. */
  readonly expected?: number
}

/**
 * Registries as this host sees them: mirrors, authorities, logins. Made for one pull or push or a few; logins and connections are kept
 * until it is closed, and so is the knowledge which mirror did not answer.
 */
export type RegistryClient = {
  /** The addresses of a host, in the order in which they are tried. @throws ImageError misconfigured */
  endpointsOf(host: string): Promise<readonly Endpoint[]>
  /**
   * Does something at the first address of the host that can; failures in passing are retried over the whole list.
   * @throws ImageError of the registry itself, or of a mirror that answered where the registry did not; its message holds all
   */
  attempt<T>(host: string, need: Capability, use: (endpoint: Endpoint) => Promise<T>, signal: AbortSignal): Promise<T>
  /**
   * One authorised request at one address.
   * @throws ImageError for any status of 400 and more
   */
  call(endpoint: Endpoint, repository: string, call: Call, signal: AbortSignal): Promise<Answer>
  close(): void
}

const RETRY_FOR_MS = 60_000

export function createRegistryClient(settings: RegistrySettings): RegistryClient {
  const clock = settings.clock ?? systemClock
  const transport = createTransport({
    ...(settings.proxy && { proxy: settings.proxy }),
    ...(settings.noProgressMs !== undefined && { noProgressMs: settings.noProgressMs }),
  })
  const endpoints = new Map<string, Promise<readonly Endpoint[]>>()
  const silent = new Set<Endpoint>()
  const logins = new Map<string, string>()

  const endpointsOf = (host: string): Promise<readonly Endpoint[]> => {
    const { sources } = settings
    const found = endpoints.get(host) ?? ('known' in sources ? Promise.resolve(sources.known) : readEndpoints(host, sources))
    endpoints.set(host, found)
    return found
  }

  const logIn = async (
    endpoint: Endpoint,
    repository: string,
    actions: string,
    refused: Answer,
    signal: AbortSignal,
  ): Promise<string | undefined> => {
    const login = findLogin(settings.credentials, endpoint.host, repository)
    const context = { transport, trust: endpoint.trust, url: refused.url, scope: `repository:${repository}:${actions}`, login }
    try {
      return await authorize(parseChallenges(refused.headers['www-authenticate'] ?? ''), context, signal)
    } catch (error) {
      throw withHint(error, login !== undefined, endpoint, repository)
    }
  }

  return {
    endpointsOf,

    async attempt(host, need, use, signal) {
      const all = await endpointsOf(host)
      const able = (need === 'push' ? all.slice(-1) : all).filter(({ capabilities }) => capabilities.includes(need)) // a mirror is never written to
      if (able.length === 0) throw new ImageError('misconfigured', `${host}: no address of it may ${need}`)

      const once = async () => {
        const failures: ImageError[] = []
        for (const endpoint of [...able.filter((one) => !silent.has(one)), ...able.filter((one) => silent.has(one))]) {
          try {
            const result = await use(endpoint)
            silent.delete(endpoint)
            return result
          } catch (error) {
            if (!(error instanceof ImageError)) throw error
            if (error.code === 'unreachable') silent.add(endpoint) // the next blob must not wait for it again
            failures.push(error)
          }
        }
        throw oneError(failures)
      }
      return await retrying(once, clock.now() + (settings.retryForMs ?? RETRY_FOR_MS), signal, clock)
    },

    async call(endpoint, repository, { method, path, headers, body, expected }, signal) {
      const home = new URL(`${endpoint.base}/${repository}`)
      const url = path instanceof URL ? path : new URL(`${home.href}${path}`)
      if (home.protocol === 'https:' && url.protocol !== 'https:')
        throw new ImageError('bad-answer', `${endpoint.host}: sends us from https to ${url.origin}`)
      if (endpoint.namespace !== undefined) url.searchParams.set('ns', endpoint.namespace)
      const isHome = url.host === home.host // uploads may be taken elsewhere; the login stays here
      const actions = method === 'GET' || method === 'HEAD' ? 'pull' : 'pull,push'
      const key = `${endpoint.base} ${repository} ${actions}`
      const send = (authorization: string | undefined): Promise<Answer> => {
        const own = isHome ? { ...endpoint.headers, ...(authorization !== undefined && { authorization }) } : {}
        const all = { 'user-agent': 'skyhookd', ...own, ...headers }
        return transport.send({ method, url, headers: all, trust: endpoint.trust, ...(body && { body }) }, signal)
      }

      let answer = await send(logins.get(key))
      if (answer.status === 401 && isHome && answer.url.host === url.host) {
        const authorization = await logIn(endpoint, repository, actions, answer, signal)
        if (authorization !== undefined) {
          answer.body.resume()
          answer = await send(authorization)
          if (answer.status !== 401) logins.set(key, authorization)
        }
      }
      if (answer.status < 400 || answer.status === expected) return answer
      const isLoggedIn = findLogin(settings.credentials, endpoint.host, repository) !== undefined
      throw withHint(await errorOf(answer, signal), isLoggedIn, endpoint, repository)
    },

    close: () => transport.close(),
  }
}

/** "Unauthorized" alone leaves the reader guessing whether a secret is missing or wrong. */
function withHint(error: unknown, hasLogin: boolean, endpoint: Endpoint, repository: string): unknown {
  if (!(error instanceof ImageError) || (error.code !== 'unauthorized' && error.code !== 'denied')) return error
  const hint = hasLogin ? 'asked with the login of a pull secret' : `no pull secret matches ${endpoint.host}/${repository}`
  return new ImageError(error.code, `${error.message} (${hint})`, { cause: error })
}

/** The registry's own failure tells most, unless it could not be reached and a mirror did answer. Every address is named. */
function oneError(failures: readonly ImageError[]): ImageError {
  const isAnswer = ({ code }: ImageError) => code !== 'unreachable' && code !== 'tls'
  const last = failures.at(-1)
  const telling = last !== undefined && isAnswer(last) ? last : (failures.find(isAnswer) ?? last)
  if (telling === undefined) throw new Error('no address was tried')
  if (failures.length === 1) return telling
  const message = failures.map((failure) => failure.message).join('; ')
  return new ImageError(telling.code, message, { cause: telling, retryAfterMs: telling.retryAfterMs })
}
