import { createKubeTransport } from '../../../kube/transport.ts'
import { version } from '../../../schemas/version.ts'
import type { Connect } from '../framework/run.ts'
import { findAgentNamespace } from './agent-namespace.ts'
import { resolveAccess, impersonationHeaders, type Access } from './kubeconfig.ts'
import type { Agent } from 'node:http'
import type { RequestOptions } from 'node:https'
import { KubeConfig } from '@kubernetes/client-node/dist/config.js'
import type { Cluster, User } from '@kubernetes/client-node/dist/config_types.js'
import type { Credentials, Identity } from '../../../kube/credentials.ts'
import type { Machine } from '../framework/command.ts'
import { createExecPlugin, type PluginCredential } from './exec-plugin.ts'

/** Connects to the API server of the kubeconfig, with kubectl's flags. Sends nothing before the first request. */
export const openConnection: Connect = async (flags, machine) => {
  const access = await resolveAccess(flags, machine)
  const transport = createKubeTransport({
    credentials: createLibraryCredentials(access, machine),
    program: 'kubectl-skyhook',
    version,
    clock: machine.clock,
    ...(flags.requestTimeout ? { defaultTimeoutMs: flags.requestTimeout } : {}),
    ...(flags.verbose && {
      onRequest: ({ verb, path, code, durationMs }) =>
        machine.stderr.write(`${verb} ${path} ${code || 'no answer'} in ${Math.round(durationMs)} ms\n`),
    }),
  })
  let namespace: Promise<string> | undefined
  return {
    transport,
    namespace: flags.namespace,
    contextName: access.contextName,
    server: access.cluster.server,
    agentNamespace: () =>
      (namespace ??=
        flags.namespace === undefined
          ? findAgentNamespace(transport, machine.signal)
          : Promise.resolve(flags.namespace)),
  }
}

/** Files and plugins are read again after this time, or at once after a 401. */
const rereadAfterMs = 60_000
/** For calls through a proxy: the number of connections that the transport opens without one. */
const maxProxySockets = 8

/** Credentials for the transport from the official library: certificates, tokens, plugins, providers. */
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
    const known = (): Identity | undefined => (cached?.fingerprint === fingerprint ? cached.identity : undefined)
    const opened = access.cluster.proxyUrl && !known() ? await openProxyAgents(access, { ca, cert, key }) : undefined
    const earlier = known() // another read may have finished first
    const agents = earlier?.agents ?? opened
    const identity: Identity = {
      ...(given.token !== undefined && { token: given.token }),
      ...(ca !== undefined && { ca }),
      ...(cert !== undefined && { cert }),
      ...(key !== undefined && { key }),
      headers: { ...impersonation, ...(authorization !== undefined && { authorization }) },
      ...(options.servername !== undefined && { servername: options.servername }),
      ...(access.cluster.skipTLSVerify && { isServerUnchecked: true }),
      ...(agents && { agents }),
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
      // a new plugin has no cached answer
      if (forceRefresh) plugin = access.exec && createExecPlugin(access.exec, access.cluster, machine)
      return await read()
    },
  }
}

function configOf({ cluster, user }: Access, { cert, key }: PluginCredential): KubeConfig {
  const withPlugin = {
    ...user,
    ...(cert !== undefined && { certData: base64(cert), certFile: undefined }),
    ...(key !== undefined && { keyData: base64(key), keyFile: undefined }),
  }
  return configFor(cluster, withPlugin as User)
}

function configFor(cluster: Cluster, user: User): KubeConfig {
  const config = new KubeConfig()
  const contexts = [{ name: 'chosen', cluster: cluster.name, user: user.name }]
  config.loadFromOptions({ clusters: [cluster], users: [user], contexts, currentContext: 'chosen' })
  return config
}

const base64 = (text: string): string => Buffer.from(text).toString('base64')

type Tls = { readonly [field in 'ca' | 'cert' | 'key']: string | undefined }

/** Streams have their own connections, because they stay open: calls would wait for their end. */
async function openProxyAgents(access: Access, tls: Tls): Promise<NonNullable<Identity['agents']>> {
  const calls = await openProxyAgent(access, tls)
  const streams = await openProxyAgent(access, tls)
  return { calls: Object.assign(calls, { maxSockets: maxProxySockets }), streams }
}

/** By default, the library's proxy agent opens a connection per request. */
async function openProxyAgent({ cluster }: Access, { ca, cert, key }: Tls): Promise<Agent> {
  const options: RequestOptions = { headers: {} }
  // with inline values, the library does not read files or log in a second time
  const { name, server, skipTLSVerify, proxyUrl, tlsServerName } = cluster
  const inline = {
    name,
    server,
    skipTLSVerify,
    ...(proxyUrl !== undefined && { proxyUrl }),
    ...(tlsServerName !== undefined && { tlsServerName }),
    ...(ca !== undefined && { caData: base64(ca) }),
  }
  const user = {
    name: 'user',
    ...(cert !== undefined && { certData: base64(cert) }),
    ...(key !== undefined && { keyData: base64(key) }),
  }
  await configFor(inline, user).applyToHTTPSOptions(options)
  return Object.assign(options.agent as Agent, { keepAlive: true })
}

function authorizationOf({ headers, auth }: RequestOptions): string | undefined {
  const header = (headers as Readonly<Record<string, string>> | undefined)?.['Authorization']
  return header ?? (auth ? `Basic ${Buffer.from(auth).toString('base64')}` : undefined)
}

/** PEM, as text or as the library read it from a file. */
const textOf = (value: unknown): string | undefined => {
  if (typeof value === 'string') return value
  return Buffer.isBuffer(value) ? value.toString() : undefined
}
