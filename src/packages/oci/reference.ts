import { createHash } from 'node:crypto'
import { ImageError } from './errors.ts'

/**
 * A place in a registry. `host` is what the user wrote (by default `docker.io`): the key of credentials and mirrors,
 * not the address to connect to.
 */
export type ImageReference = {
  readonly host: string
  readonly repository: string
  readonly tag?: string
  readonly digest?: Digest
}

const defaultHost = 'docker.io'
const hubServer = 'registry-1.docker.io'
const hostPattern =
  /^(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*\.?|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?$/
const componentPattern = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/
const tagPattern = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/
const maxRepositoryChars = 255 // the distribution specification's limit for host and repository together

/**
 * Parses `[host[:port]/]repository[:tag][@digest]` by docker's rules. The first component is a host if it has a dot, a
 * colon or a capital, or is `localhost`. The default host is docker.io, where a single name is a repository below
 * `library/`.
 * @throws ImageError bad-reference
 */
export function parseReference(text: string): ImageReference {
  const refuse = (why: string): never => {
    throw new ImageError('bad-reference', `${text}: ${why}`)
  }
  const [nameAndTag = '', digest, ...more] = text.split('@')
  if (more.length > 0) refuse('more than one "@"')
  if (digest !== undefined && !isDigest(digest)) refuse('the digest is not sha256: and 64 hex digits')

  const { name, tag } = splitTag(nameAndTag)
  if (tag !== undefined && !tagPattern.test(tag)) refuse(`"${tag}" is not a legal tag`)

  const { host, repository } = splitHost(name)
  if (!hostPattern.test(host)) refuse(`"${host}" is not a registry host`)
  if (repository.length + host.length > maxRepositoryChars) refuse(`longer than ${maxRepositoryChars} characters`)
  if (!repository.split('/').every((component) => componentPattern.test(component)))
    refuse(`"${repository}" is not a repository name`)
  return {
    host,
    repository,
    ...(tag !== undefined && { tag }),
    ...(digest !== undefined && { digest: digest as Digest }),
  }
}

/**
 * The reference of a package of a Skyhook: the repository of `image` with the tag `version`, or with the digest
 * `containerSHA` if it is set. The version replaces a tag in `image`.
 * @throws ImageError bad-reference
 */
export function packageReference(image: string, version: string, containerSha?: string): ImageReference {
  const { host, repository, digest } = parseReference(image)
  if (digest !== undefined)
    throw new ImageError('bad-reference', `${image}: a digest belongs in containerSHA, not in image`)
  if (containerSha !== undefined && containerSha !== '') {
    if (!isDigest(containerSha)) {
      throw new ImageError('bad-reference', `${image}: containerSHA "${containerSha}" is not sha256: and 64 hex digits`)
    }
    return { host, repository, digest: containerSha }
  }
  if (!tagPattern.test(version)) {
    throw new ImageError('bad-reference', `${image}: version "${version}" is not a legal tag: set containerSHA`)
  }
  return { host, repository, tag: version }
}

/** The reference as a user would write it, host always included. */
export function formatReference({ host, repository, tag, digest }: ImageReference): string {
  return `${host}/${repository}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`
}

/** The host in the names of a registry's images: Docker Hub has two other hosts, for logins and for its server. */
export const imageHost = (host: string): string =>
  host === 'index.docker.io' || host === hubServer ? defaultHost : host

/** The address of a registry, by the host in the names of its images. */
export const serverHost = (host: string): string => (host === defaultHost ? hubServer : host)

function splitTag(nameAndTag: string): { name: string; tag?: string } {
  const colon = nameAndTag.indexOf(':', nameAndTag.lastIndexOf('/') + 1)
  const last = nameAndTag.lastIndexOf(':')
  if (colon === -1) return { name: nameAndTag }
  return { name: nameAndTag.slice(0, last), tag: nameAndTag.slice(last + 1) }
}

function splitHost(name: string): { host: string; repository: string } {
  const slash = name.indexOf('/')
  const first = name.slice(0, slash)
  const hasHost = slash !== -1 && (/[.:A-Z]/.test(first) || first === 'localhost')
  const host = hasHost ? first : defaultHost
  const repository = hasHost ? name.slice(slash + 1) : name
  if (host !== defaultHost && host !== 'index.docker.io') return { host, repository }
  return { host: defaultHost, repository: repository.includes('/') ? repository : `library/${repository}` }
}

/**
 * `sha256:` and 64 lower-case hex digits: the only supported algorithm (registries do not use sha512, the other
 * registered one).
 */
export type Digest = `sha256:${string}`

export function isDigest(text: string): text is Digest {
  return /^sha256:[0-9a-f]{64}$/.test(text)
}

export function digestOf(bytes: Uint8Array | string): Digest {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

/** The 64 hex digits, which name a blob or a tree in the store. */
export function hexOf(digest: Digest): string {
  return digest.slice('sha256:'.length)
}

/**
 * Which images a pattern matches. Three kinds of files name images by `host[:port][/path]` with `*` in the host, and
 * each kind has its own rules.
 */

type Dialect = {
  /** Matches each `*` that is a wildcard. */
  readonly wildcard: RegExp
  /** What a wildcard matches, as a regular expression. */
  readonly meaning: string
  /** Whether the path may end within a name: `r.example/team` matches `r.example/team-b`, too. */
  readonly hasOpenPath: boolean
}

const inLabel = { wildcard: /(?<!:.*)\*/, meaning: '[^./:]*' } // one label of the host, no port

const dialects = {
  /** `matchImages` of a CredentialProviderConfig and the keys of a plugin's answer, as the kubelet reads them. */
  matchImages: { ...inLabel, hasOpenPath: true },
  /**
   * Keys of a `.dockerconfigjson`. Stricter than the kubelet: a login is never sent for a repository that only starts
   * with the same letters.
   */
  dockerConfig: { ...inLabel, hasOpenPath: false },
  /** `prefix` of a registry in `registries.conf`: one `*` at its start, for any number of labels. */
  registriesConf: { wildcard: /^\*(?=\.)/, meaning: '[^/]+?', hasOpenPath: false },
} as const satisfies Record<string, Dialect>

/** How many characters of the image (`host[:port]/repository`) the pattern covers; 0 if it does not match. */
export function matchLength(pattern: string, dialect: keyof typeof dialects, image: string): number {
  const { wildcard, meaning, hasOpenPath } = dialects[dialect]
  const name = pattern.replace(/^https?:\/\//, '')
  const host = registryOf(name)
  const path = name.slice(host.length)
  const hostExpression = host
    .split(wildcard)
    .map((literal) => RegExp.escape(literal))
    .join(meaning)
  const end = hasOpenPath && path !== '' ? '' : '(?=/|$)'
  return new RegExp(`^${hostExpression}${RegExp.escape(path)}${end}`).exec(image)?.[0].length ?? 0
}

/** `host[:port]` of an image. */
export function registryOf(image: string): string {
  return image.split('/', 1)[0] ?? ''
}
