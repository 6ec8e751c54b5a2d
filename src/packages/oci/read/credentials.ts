import { isObject, type JsonObject } from '../../../schemas/json.ts'
import { ImageError } from '../errors.ts'
import { imageHost, matchLength, registryOf } from '../reference.ts'

/** What one key of a `.dockerconfigjson` grants. */
export type Credential = {
  /** Pattern of its images, from `canonicalImage`. */
  readonly images: string
  readonly login: Login
}

export type Login =
  | { readonly kind: 'password'; readonly username: string; readonly password: string }
  // an OAuth2 refresh token, as `docker login` stores for some registries
  | { readonly kind: 'identity-token'; readonly token: string }

/**
 * Reads the value of a `kubernetes.io/dockerconfigjson` Secret. Entries without a login are left out (credential
 * helpers write them).
 * @param source names the Secret in errors; values never appear in them
 * @throws ImageError misconfigured
 */
export function parseDockerConfig(json: string, source: string): Credential[] {
  const refuse = (why: string): never => {
    throw new ImageError('misconfigured', `${source}: ${why}`)
  }
  let document: unknown
  try {
    document = JSON.parse(json)
  } catch {
    return refuse('.dockerconfigjson is not JSON') // the parser's message quotes the secret
  }
  const auths = isObject(document) ? document['auths'] : undefined
  if (!isObject(auths)) return refuse('.dockerconfigjson has no "auths"')

  const credentials: Credential[] = []
  for (const [key, entry] of Object.entries(auths)) {
    if (!isObject(entry)) return refuse(`the entry of ${key} is not an object`)
    const login = readLogin(entry)
    if (login === 'malformed') return refuse(`"auth" of ${key} is not base64 of user:password`)
    if (login !== undefined) credentials.push({ images: imagesOf(key), login })
  }
  return credentials
}

/** The login for a repository: the longest matching key wins, the first of keys of equal length. */
export function findLogin(credentials: readonly Credential[], host: string, repository: string): Login | undefined {
  const image = canonicalImage(`${host}/${repository}`)
  const matches = credentials
    .map(({ images, login }) => ({ login, length: matchLength(images, 'dockerConfig', image) }))
    .filter(({ length }) => length > 0)
    .sort((one, other) => other.length - one.length)
  return matches[0]?.login
}

function readLogin(entry: JsonObject): Login | 'malformed' | undefined {
  const { identitytoken, username, password, auth } = entry
  if (typeof identitytoken === 'string' && identitytoken !== '') return { kind: 'identity-token', token: identitytoken }
  if (typeof username === 'string' && username !== '' && typeof password === 'string')
    return { kind: 'password', username, password }
  if (typeof auth !== 'string' || auth === '') return undefined
  const decoded = Buffer.from(auth, 'base64').toString('utf8').replaceAll('\0', '') // some writers pad with NUL
  const colon = decoded.indexOf(':')
  if (colon < 1) return 'malformed'
  return { kind: 'password', username: decoded.slice(0, colon), password: decoded.slice(colon + 1) }
}

/** Accepts `https://index.docker.io/v1/` like `r.example:5000/team`: scheme and API version are ignored. */
function imagesOf(key: string): string {
  const address = key.replace(/^https?:\/\//, '').replace(/\/+$/, '')
  return canonicalImage(address.replace(/^([^/]*)\/v[12]$/, '$1'))
}

/** An image or a pattern of images with the canonical name of its host. */
export function canonicalImage(image: string): string {
  const host = registryOf(image)
  const name = host.toLowerCase().replace(/:443$/, '') // the default port of https
  return `${imageHost(name)}${image.slice(host.length)}`
}
