import type { Agent } from 'node:http'
import { isIPv6 } from 'node:net'
import { type Clock, sleep } from '../schemas/clock.ts'

/** What a client presents and trusts. `tlsRevision` changes with `ca`, `cert` or `key`: older connections are stale. */
export type Identity = {
  readonly token?: string
  readonly ca?: string
  readonly cert?: string
  readonly key?: string
  /** Further headers of each request, such as whom to impersonate. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>
  /** The name to expect in the server's certificate, if not its host's. */
  readonly servername?: string
  /** The user disabled verification of the server's certificate. */
  readonly isServerUnchecked?: boolean
  /**
   * Opens connections in another way, for example through a proxy. It is then responsible for `ca`, `cert` and `key`.
   */
  readonly agents?: { readonly calls: Agent; readonly streams: Agent }
  readonly tlsRevision: number
}

export type Credentials = {
  /** `https://host:port`, with a path behind a proxy of several clusters; plain `http://` for a server of a test. */
  readonly server: string
  /** The current identity, from memory if it was read within the last minute; `forceRefresh` reads it again at once. */
  current(options?: { readonly forceRefresh?: boolean }): Promise<Identity>
  /** Whether reading again can give another token: then a request refused with 401 is repeated. */
  readonly isRenewable: boolean
}

/** The files that the kubelet mounts for a pod's ServiceAccount, by name: `token`, `ca.crt`. */
export type ServiceAccountFiles = { read(name: string): Promise<string> }

export type InClusterOptions = {
  /** Environment of the pod: names the API server. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly files: ServiceAccountFiles
  readonly clock: Clock
}

/** Bound tokens live an hour and the kubelet renews them after 80 %. Once a minute is what client-go does. */
const rereadAfterMs = 60_000
/** A hanging disk blocks the threads that read files, even files in memory. */
const readTimeoutMs = 5_000

/**
 * The pod's ServiceAccount: token and CA, read again once a minute and on demand. If a file can no longer be read, or
 * the read hangs, the last known content stays in force. The first read throws.
 */
export function inClusterCredentials({ env, files, clock }: InClusterOptions): Credentials {
  const host = env['KUBERNETES_SERVICE_HOST']
  const port = env['KUBERNETES_SERVICE_PORT']
  if (!host || !port)
    throw new Error('not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set')

  let cached: Identity | undefined
  let readAtMs = 0
  let pendingRead: Promise<Identity> | undefined

  const read = async (): Promise<Identity> => {
    const token = (await files.read('token')).trim()
    const ca = await files.read('ca.crt')
    const tlsRevision = cached?.ca === ca ? cached.tlsRevision : (cached?.tlsRevision ?? 0) + 1
    cached = { token, ca, tlsRevision }
    return cached
  }

  /** One read at a time: each read that hangs occupies a thread. */
  const readInTime = async (): Promise<Identity> => {
    pendingRead ??= read().finally(() => {
      pendingRead = undefined
    })
    const isRead = new AbortController()
    const tooLate = sleep(clock, readTimeoutMs, isRead.signal).then(() => {
      throw new Error(`no answer from the disk within ${readTimeoutMs / 1000} s`)
    })
    try {
      return await Promise.race([pendingRead, tooLate])
    } finally {
      isRead.abort()
    }
  }

  return {
    server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
    isRenewable: true,
    async current({ forceRefresh = false } = {}) {
      if (cached !== undefined && !forceRefresh && clock.monotonicMs() - readAtMs < rereadAfterMs) return cached
      try {
        return await readInTime()
      } catch (error) {
        if (cached === undefined) throw new Error("cannot read the ServiceAccount's token and ca.crt", { cause: error })
        return cached
      } finally {
        readAtMs = clock.monotonicMs()
      }
    },
  }
}
