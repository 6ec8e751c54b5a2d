import { createHash } from 'node:crypto'

/**
 * `sha256:` and 64 lower-case hex digits: the only algorithm we take (the other registered one, sha512, is not in use).
 */
export type Digest = `sha256:${string}`

export function isDigest(text: string): text is Digest {
  return /^sha256:[0-9a-f]{64}$/.test(text)
}

export function digestOf(bytes: Uint8Array | string): Digest {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`
}

/** The 64 hex digits: the name under which a blob or a tree is filed. */
export function hexOf(digest: Digest): string {
  return digest.slice('sha256:'.length)
}
