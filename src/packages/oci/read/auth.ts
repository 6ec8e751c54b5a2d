import type { Clock } from '../../../schemas/clock.ts'
import type { Login } from './credentials.ts'
import { ImageError } from '../errors.ts'
import { errorFromResponse, readBody } from './error-response.ts'
import type { RegistryResponse, RegistryTransport, Trust } from './http.ts'

/** One way to log in that a registry offers (RFC 9110 §11.6.1). Names are lower case. */
export type Challenge = { readonly scheme: string; readonly params: Readonly<Record<string, string>> }

/** Reads a `WWW-Authenticate` value, which may hold several challenges after one another. */
export function parseChallenges(header: string): Challenge[] {
  const challenges: { scheme: string; params: Record<string, string> }[] = []
  const token = /[\s,]*(?:([\w!#$%&'*+.^`|~-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,]*))|([\w!#$%&'*+.^`|~-]+))/gy
  for (let match = token.exec(header); match !== null; match = token.exec(header)) {
    const [, name, quoted, unquoted, scheme] = match
    if (scheme !== undefined) challenges.push({ scheme: scheme.toLowerCase(), params: {} })
    const current = challenges.at(-1)
    if (name !== undefined && current !== undefined)
      current.params[name.toLowerCase()] = quoted?.replace(/\\(.)/g, '$1') ?? unquoted ?? ''
  }
  return challenges
}

export type LoginContext = {
  readonly transport: RegistryTransport
  readonly trust: Trust
  /** The address that asked for the login. */
  readonly url: URL
  /** The scope if the challenge names none: `repository:<name>:pull`. */
  readonly scope: string
  readonly login: Login | undefined
  readonly clock: Clock
}

/**
 * The value of `Authorization` after a 401: a token of the registry's token server, otherwise Basic. The token is
 * requested with the login, or anonymously: public images need a token too. Undefined without a usable challenge or
 * login.
 * @throws ImageError with the token server's message
 */
export async function authorize(
  challenges: readonly Challenge[],
  context: LoginContext,
  signal: AbortSignal,
): Promise<string | undefined> {
  const bearer = challenges.find(({ scheme }) => scheme === 'bearer')
  if (bearer !== undefined) return `Bearer ${await fetchToken(bearer, context, signal)}`
  const { login } = context
  return challenges.some(({ scheme }) => scheme === 'basic') && login?.kind === 'password'
    ? basicAuthorization(login)
    : undefined
}

/** The distribution project's token protocol: GET with Basic, or an OAuth2 POST if the login is a refresh token. */
async function fetchToken({ params }: Challenge, context: LoginContext, signal: AbortSignal): Promise<string> {
  const { transport, trust, login } = context
  const realm = URL.parse(params['realm'] ?? '')
  if (realm === null || !/^https?:$/.test(realm.protocol))
    throw new ImageError('bad-response', `${context.url.host}: asks for a token without a realm`)
  if (context.url.protocol === 'https:' && realm.protocol !== 'https:') {
    throw new ImageError('bad-response', `${context.url.host}: its token server ${realm.origin} is not https`)
  }
  const scopes = (params['scope'] ?? context.scope).split(' ').filter((scope) => scope !== '')

  let response: RegistryResponse
  if (login?.kind === 'identity-token') {
    const form = {
      grant_type: 'refresh_token',
      refresh_token: login.token,
      service: params['service'] ?? '',
      client_id: 'skyhookd',
      scope: scopes.join(' '),
    }
    const body = Buffer.from(new URLSearchParams(form).toString())
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': String(body.length) }
    response = await transport.send({ method: 'POST', url: realm, headers, trust, body }, signal)
  } else {
    if (params['service'] !== undefined) realm.searchParams.set('service', params['service'])
    for (const scope of scopes) realm.searchParams.append('scope', scope)
    const headers = login === undefined ? {} : { authorization: basicAuthorization(login) }
    response = await transport.send({ method: 'GET', url: realm, headers, trust }, signal)
  }
  if (response.status !== 200) throw await errorFromResponse(response, context.url.host, signal)

  const text = await readBody(response, maxTokenBytes, signal)
  const token = parseToken(text.toString('utf8'))
  if (token === undefined)
    throw new ImageError('bad-response', `${realm.host}: the response of the token server has no token`)
  return token
}

const maxTokenBytes = 256 * 1024 // tokens that list many repositories reach tens of kilobytes

function parseToken(json: string): string | undefined {
  let document: unknown
  try {
    document = JSON.parse(json)
  } catch {
    return undefined
  }
  if (typeof document !== 'object' || document === null) return undefined
  const { token, access_token } = document as { token?: unknown; access_token?: unknown }
  return [token, access_token].find((one): one is string => typeof one === 'string' && /^[\x21-\x7e]+$/.test(one))
}

function basicAuthorization({ username, password }: { username: string; password: string }): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
}
