import { type Digest, isDigest } from './digest.ts'
import { ImageError } from './errors.ts'

/**
 * A place in a registry. `host` is what the user wrote (`docker.io` where nothing was written): the key of credentials and mirrors,
 * not yet the address to connect to.
 */
export type ImageReference = {
  readonly host: string
  readonly repository: string
  readonly tag?: string
  readonly digest?: Digest
}

const DEFAULT_HOST = 'docker.io'
const HOST =
  /^(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*\.?|\[[0-9a-fA-F:.]+\])(?::[0-9]{1,5})?$/
const COMPONENT = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/
const TAG = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/
const MAX_REPOSITORY_CHARS = 255 // the distribution specification's limit for host and repository together

/**
 * Reads `[host[:port]/]repository[:tag][@digest]` by docker's rules: the first component is a host if it has a dot, a colon or a
 * capital, or is `localhost`; without one it is docker.io, and a lone name there lies under `library/`.
 * @throws ImageError bad-reference
 */
export function parseReference(text: string): ImageReference {
  const refuse = (why: string): never => {
    throw new ImageError('bad-reference', `${text}: ${why}`)
  }
  const [named = '', digest, ...more] = text.split('@')
  if (more.length > 0) refuse('more than one "@"')
  if (digest !== undefined && !isDigest(digest)) refuse('the digest is not sha256: and 64 hex digits')

  const { name, tag } = splitTag(named)
  if (tag !== undefined && !TAG.test(tag)) refuse(`"${tag}" is not a legal tag`)

  const { host, repository } = splitHost(name)
  if (!HOST.test(host)) refuse(`"${host}" is not a registry host`)
  if (repository.length + host.length > MAX_REPOSITORY_CHARS) refuse(`longer than ${MAX_REPOSITORY_CHARS} characters`)
  if (!repository.split('/').every((component) => COMPONENT.test(component))) refuse(`"${repository}" is not a repository name`)
  return { host, repository, ...(tag !== undefined && { tag }), ...(digest !== undefined && { digest: digest as Digest }) }
}

/**
 * What a package of a Skyhook is pulled by: the repository of `image` at the tag `version`, or at `containerSHA` where that is given.
 * A tag inside `image` does not count (see {@link ignoredTag}).
 * @throws ImageError bad-reference
 */
export function packageReference(image: string, version: string, containerSha?: string): ImageReference {
  const { tag: _ignored, digest, ...place } = parseReference(image)
  if (digest !== undefined) throw new ImageError('bad-reference', `${image}: a digest belongs into containerSHA, not into image`)
  if (containerSha !== undefined && containerSha !== '') {
    if (!isDigest(containerSha)) {
      throw new ImageError('bad-reference', `${image}: containerSHA "${containerSha}" is not sha256: and 64 hex digits`)
    }
    return { ...place, digest: containerSha }
  }
  if (!TAG.test(version)) {
    throw new ImageError('bad-reference', `${image}: version "${version}" is not a legal tag, so containerSHA is needed`)
  }
  return { ...place, tag: version }
}

/** The tag written in `image`: what follows the last colon after the last slash. The version replaces it. */
export function ignoredTag(image: string): string | undefined {
  return splitTag(image.split('@')[0] ?? '').tag
}

/** The reference as a user would write it, host always included. */
export function formatReference({ host, repository, tag, digest }: ImageReference): string {
  return `${host}/${repository}${tag === undefined ? '' : `:${tag}`}${digest === undefined ? '' : `@${digest}`}`
}

function splitTag(named: string): { name: string; tag?: string } {
  const colon = named.indexOf(':', named.lastIndexOf('/') + 1)
  const last = named.lastIndexOf(':')
  if (colon === -1) return { name: named }
  return { name: named.slice(0, last), tag: named.slice(last + 1) }
}

function splitHost(name: string): { host: string; repository: string } {
  const slash = name.indexOf('/')
  const first = name.slice(0, slash)
  const hasHost = slash !== -1 && (/[.:A-Z]/.test(first) || first === 'localhost')
  const host = hasHost ? first : DEFAULT_HOST
  const repository = hasHost ? name.slice(slash + 1) : name
  if (host !== DEFAULT_HOST && host !== 'index.docker.io') return { host, repository }
  return { host: DEFAULT_HOST, repository: repository.includes('/') ? repository : `library/${repository}` }
}
