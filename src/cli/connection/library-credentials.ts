import type { Agent } from 'node:http'
import type { RequestOptions } from 'node:https'
import { KubeConfig } from '@kubernetes/client-node/dist/config.js'
import type { Credentials, Identity } from '../../kube/credentials.ts'
import type { Machine } from '../framework/machine.ts'
import { createExecPlugin, type PluginCredential } from './exec-plugin.ts'
import { impersonationHeaders } from './impersonation.ts'
import type { Access } from './kubeconfig.ts'

/** Files and plugins are asked again after this; a request refused with 401 asks at once. */
const rereadAfterMs = 60_000
/** Of a proxy's agent: what the transport's own have. */
const maxProxySockets = 8

/** Credentials for the transport as the official library finds them: certificates, tokens, plugins, providers. */
export function createLibraryCredentials(access: Access, machine: Machine): Credentials {
  const { clock } = machine
  let plugin = access.exec && createExecPlugin(access.exec, access.cluster, machine)
  const impersonation = impersonationHeaders(access.impersonation)
  let cached: { readonly identity: Identity; readonly fingerprint: string; readonly readAtMs: number } | undefined

  const read = async (): Promise<Identity> => {
    const given = (await plugin?.credential()) ?? {}
    const options: RequestOptions = { headers: {} }
    await configOf(access, given).applyToHTTPSOptions(options)
    const [ca, cert, key] = [options.ca, options.cert, options.key].map(textOf)
    const authorization = given.token === undefined ? authorizationOf(options) : undefined
    const fingerprint = JSON.stringify([ca, cert, key])
    const earlier = cached?.fingerprint === fingerprint ? cached.identity : undefined
    const identity: Identity = {
      ...(given.token !== undefined && { token: given.token }),
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
      headers: { ...impersonation, ...(authorization !== undefined && { authorization }) },
      ...(options.servername !== undefined && { servername: options.servername }),
      ...(access.cluster.skipTLSVerify && { isServerUnchecked: true }),
      ...(access.cluster.proxyUrl && { agent: earlier?.agent ?? keptAlive(options.agent as Agent) }),
      tlsRevision: earlier?.tlsRevision ?? (cached?.identity.tlsRevision ?? 0) + 1,
    }
    cached = { identity, fingerprint, readAtMs: clock.monotonicMs() }
    return identity
  }

  return {
    server: access.cluster.server,
    isRenewable: plugin !== undefined || access.user.authProvider !== undefined,
    async current({ forceRefresh = false } = {}) {
      if (cached && !forceRefresh && clock.monotonicMs() - cached.readAtMs < rereadAfterMs) return cached.identity
      // a new one has no answer that it could repeat
      if (forceRefresh) plugin = access.exec && createExecPlugin(access.exec, access.cluster, machine)
      return await read()
    },
  }
}

function configOf({ cluster, user }: Access, { cert, key }: PluginCredential): KubeConfig {
  const config = new KubeConfig()
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const withPlugin = {
    ...user,
    ...(cert !== undefined && { certData: base64(cert), certFile: undefined }),
    ...(key !== undefined && { keyData: base64(key), keyFile: undefined }),
  }
  const contexts = [{ name: 'chosen', cluster: cluster.name, user: user.name }]
  config.loadFromOptions({ clusters: [cluster], users: [withPlugin], contexts, currentContext: 'chosen' })
  return config
}

/** The library's agent of a proxy opens a connection per request unless it is told otherwise. */
const keptAlive = (agent: Agent): Agent => Object.assign(agent, { keepAlive: true, maxSockets: maxProxySockets })

function authorizationOf({ headers, auth }: RequestOptions): string | undefined {
  const header = (headers as Readonly<Record<string, string>> | undefined)?.['Authorization']
  return header ?? (auth ? `Basic ${Buffer.from(auth).toString('base64')}` : undefined)
}

/** PEM, as text or as the library read it from a file. */
const textOf = (value: unknown): string | undefined => {
  if (typeof value === 'string') return value
  return Buffer.isBuffer(value) ? value.toString() : undefined
}
