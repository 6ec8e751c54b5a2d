import { createHash } from 'node:crypto'

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
