import type { ImageErrorCode } from '../../schemas/catalogue/reason-codes.ts'
import { plainExcerpt } from '../../schemas/plain-text.ts'

/** Messages of registries can be of any length. */
const maxMessageLength = 700

/** People read `message`, which carries the registry's own message if it gave one. */
export class ImageError extends Error {
  readonly code: ImageErrorCode
  /** How long the registry asked clients to wait. */
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
