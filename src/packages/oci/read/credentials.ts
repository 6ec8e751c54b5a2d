import { isObject, type JsonObject } from '../../../schemas/json.ts'
import { ImageError } from '../errors.ts'

/** What one key of a `.dockerconfigjson` grants. */
export type Credential = {
  /** Host of the key, with port where one is written; a label may be `*` as for the kubelet. */
  readonly host: string
  /** Leading path components that the repository must have; empty for the whole registry. */
  readonly path: readonly string[]
  readonly login: Login
}

export type Login =
  | { readonly kind: 'password'; readonly username: string; readonly password: string }
  // an OAuth2 refresh token, as `docker login` stores for some registries
  | { readonly kind: 'identity-token'; readonly token: string }

/**
 * Reads the value of a `kubernetes.io/dockerconfigjson` Secret. Entries without any login are left out (credential
 * helpers leave them).
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
    return refuse('.dockerconfigjson is not JSON') // the parser's message would quote the secret
  }
  const auths = isObject(document) ? document['auths'] : undefined
  if (!isObject(auths)) return refuse('.dockerconfigjson has no "auths"')

  const credentials: Credential[] = []
  for (const [key, entry] of Object.entries(auths)) {
    if (!isObject(entry)) return refuse(`the entry of ${key} is not an object`)
    const login = readLogin(entry)
    if (login === 'malformed') return refuse(`"auth" of ${key} is not base64 of user:password`)
    if (login !== undefined) credentials.push({ ...splitKey(key), login })
  }
  return credentials
}

/**
 * The login for a repository: the longest matching key wins, of equals the first. A key matches whole path components,
 * so that one for `r.example/team` is not sent for `r.example/team-b`.
 */
export function findLogin(credentials: readonly Credential[], host: string, repository: string): Login | undefined {
  const components = repository.split('/')
  let bestMatch: Credential | undefined
  for (const candidate of credentials) {
    const isMatch =
      hostMatches(candidate.host, host) && candidate.path.every((component, index) => component === components[index])
    if (isMatch && (bestMatch === undefined || candidate.path.length > bestMatch.path.length)) bestMatch = candidate
  }
  return bestMatch?.login
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

/** `https://index.docker.io/v1/` and `r.example:5000/team` alike: scheme and API version say nothing. */
function splitKey(key: string): { host: string; path: string[] } {
  const [host = '', ...path] = key
    .replace(/^https?:\/\//, '')
    .replace(/\/+$/, '')
    .split('/')
  const isVersion = path.length === 1 && (path[0] === 'v1' || path[0] === 'v2')
  return { host: canonicalHost(host), path: isVersion ? [] : path }
}

function hostMatches(pattern: string, host: string): boolean {
  const [patternName, patternPort] = splitPort(pattern)
  const [name, port] = splitPort(canonicalHost(host))
  if (patternPort !== port) return false
  const labels = name.split('.')
  const patternLabels = patternName.split('.')
  return (
    labels.length === patternLabels.length &&
    patternLabels.every((label, index) => label === '*' || label === labels[index])
  )
}

function splitPort(host: string): [name: string, port: string] {
  const port = /:(\d+)$/.exec(host)?.[1] ?? ''
  const name = port === '' ? host : host.slice(0, -port.length - 1)
  return [name.toLowerCase(), port === '443' ? '' : port]
}

/** Docker's hub has three names; logins are stored under any of them. */
function canonicalHost(host: string): string {
  return host === 'index.docker.io' || host === 'registry-1.docker.io' ? 'docker.io' : host
}
