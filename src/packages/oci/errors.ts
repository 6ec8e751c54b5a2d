import { plainExcerpt } from '../../schemas/plain-text.ts'

/**
 * Why an image could not be read or written. The set is closed: callers branch on `code`, people read `message`, which
 * carries the registry's own message if it gave one. A failing disk is not in it: those errors keep their errno
 * (`ENOSPC`, …).
 */
export type ImageErrorCode =
  | 'bad-reference' // the name in the spec cannot be a reference
  | 'misconfigured' // credentials, hosts.toml or registry settings that cannot be read
  | 'not-found'
  | 'unauthorized' // no credentials, or wrong ones
  | 'denied' // right credentials, no right to this repository
  | 'digest-mismatch'
  | 'unreachable' // no connection, or it broke and stayed broken
  | 'tls'
  | 'rate-limited'
  | 'unavailable' // the registry answers, with 5xx
  | 'unsupported' // a media type, platform or algorithm that we do not take
  | 'too-large'
  | 'bad-response' // what the registry said makes no sense
  | 'bad-image' // an archive that cannot be read or would leave its tree

/** A registry may say anything, and much of it. */
const maxMessageLength = 700

export class ImageError extends Error {
  readonly code: ImageErrorCode
  /** How long the registry asked us to stay away. */
  readonly retryAfterMs: number | undefined

  constructor(
    code: ImageErrorCode,
    message: string,
    options: { cause?: unknown; retryAfterMs?: number | undefined } = {},
  ) {
    super(plainExcerpt(message, maxMessageLength), options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'ImageError'
    this.code = code
    this.retryAfterMs = options.retryAfterMs
  }
}

/** The code of an ImageError; undefined for everything else. */
export function imageErrorCode(error: unknown): ImageErrorCode | undefined {
  return error instanceof ImageError ? error.code : undefined
}

/** The errno name of a system error (`ENOENT`), also where Node or OpenSSL chose the name. */
export function systemCode(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined
  return typeof code === 'string' ? code : undefined
}
