import type { Credentials, Identity } from '../../../src/kube/credentials.ts'

/** Credentials that never change: a client certificate or a token. Without `ca`, the server must be plain http. */
export function staticCredentials(options: Omit<Identity, 'tlsRevision'> & { readonly server: string }): Credentials {
  const { server, ...rest } = options
  const identity: Identity = { ...rest, tlsRevision: 1 }
  return { server: server.replace(/\/$/, ''), isRenewable: false, current: () => Promise.resolve(identity) }
}
