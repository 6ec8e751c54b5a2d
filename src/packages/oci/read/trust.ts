import { createHash } from 'node:crypto'
import { createSecureContext, type SecureContext } from 'node:tls'

/** The authorities that a TLS peer's certificate must come from. */
export type Trust = {
  /** PEM bundles; empty means Node's own roots. */
  readonly ca: readonly string[]
  readonly skipVerify: boolean
  /** The certificates for a peer that requests one; PEM. */
  readonly client?: readonly { readonly cert: string; readonly key: string }[]
}

const contexts = new Map<string, SecureContext>()
const maxContexts = 8 // a host's registries and mirrors; each holds 1.5 MB of parsed authorities

/**
 * The parsed form of a trust, shared by all connections with equal trust. Parsing a distribution's bundle takes 30 ms,
 * and memory that V8 does not count and therefore does not collect in time: with a context per pull, the agent grew by
 * 70 MB over a hundred pulls.
 */
export function secureContextOf({ ca, client = [] }: Trust): SecureContext {
  const key = createHash('sha256')
    .update(JSON.stringify([ca, client]))
    .digest('hex')
  const context =
    contexts.get(key) ??
    createSecureContext({
      ...(ca.length > 0 && { ca: [...ca] }),
      ...(client.length > 0 && { cert: client.map(({ cert }) => cert), key: client.map((pair) => pair.key) }),
    })
  contexts.delete(key)
  contexts.set(key, context) // the most recently used is last
  const [oldest] = contexts.keys()
  if (contexts.size > maxContexts && oldest !== undefined) contexts.delete(oldest)
  return context
}
