import { readFile, stat } from 'node:fs/promises'
import { isIPv6 } from 'node:net'
import { join } from 'node:path'

/**
 * What a client presents and trusts. `tlsRevision` changes exactly when `ca`, `cert` or `key` do: connections made
 * before are then stale.
 */
export type Identity = {
  readonly token?: string
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly tlsRevision: number
}

export type Credentials = {
  /** `https://host:port`, or plain `http://` for a server of a test. */
  readonly server: string
  /** The identity of now, from memory when it was read within the last minute; `fresh` reads again at once. */
  current(options?: { readonly forceRefresh?: boolean }): Promise<Identity>
  /**
   * Whether reading again can give another token, that is, whether a request refused with 401 deserves a second try.
   */
  readonly isRenewable: boolean
}

/**
 * Bound tokens live an hour and the kubelet renews them after 80 %: once a minute is early enough, and what client-go
 * does.
 */
const rereadAfterMs = 60_000
const serviceAccountDir = '/var/run/secrets/kubernetes.io/serviceaccount'

/**
 * The pod's ServiceAccount: token re-read once a minute and on demand, CA re-read when its file changed.
 * A file that cannot be read any more leaves the last known content in force; the first read throws.
 */
export function inClusterCredentials(
  options: { readonly env?: NodeJS.ProcessEnv; readonly dir?: string; readonly nowMs?: () => number } = {},
): Credentials {
  const { env = process.env, dir = serviceAccountDir, nowMs = () => performance.now() } = options
  const host = env['KUBERNETES_SERVICE_HOST']
  const port = env['KUBERNETES_SERVICE_PORT']
  if (!host || !port)
    throw new Error('not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set')

  let cached: (Identity & { readonly caModifiedMs: number }) | undefined
  let readAtMs = 0
  let pendingRead: Promise<Identity> | undefined

  const read = async (): Promise<Identity> => {
    try {
      const token = (await readFile(join(dir, 'token'), 'utf8')).trim()
      const caFile = join(dir, 'ca.crt')
      const caModifiedMs = (await stat(caFile)).mtimeMs // of the file behind the volume's link, so a swapped link counts
      if (cached !== undefined && cached.caModifiedMs === caModifiedMs) cached = { ...cached, token }
      else
        cached = {
          token,
          ca: await readFile(caFile, 'utf8'),
          caModifiedMs,
          tlsRevision: (cached?.tlsRevision ?? 0) + 1,
        }
    } catch (error) {
      if (cached === undefined) throw new Error(`cannot read the ServiceAccount's files in ${dir}`, { cause: error })
    }
    readAtMs = nowMs()
    return cached
  }

  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    isRenewable: true,
    async current({ forceRefresh = false } = {}) {
      if (cached !== undefined && !forceRefresh && nowMs() - readAtMs < rereadAfterMs) return cached
      pendingRead ??= read().finally(() => {
        pendingRead = undefined
      })
      return await pendingRead
    },
  }
}

/**
 * Fixed credentials: a client certificate or a token, for tests and tools. Without `ca` only a plain http server can be
 * meant.
 */
export function staticCredentials(options: {
  readonly server: string
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  readonly token?: string
}): Credentials {
  const { server, ...rest } = options
  const identity: Identity = { ...rest, tlsRevision: 1 }
  return { server: server.replace(/\/$/, ''), isRenewable: false, current: () => Promise.resolve(identity) }
}
