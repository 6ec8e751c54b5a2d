/** Selects one cluster and one user from kubeconfig files and kubectl's flags, by kubectl's rules. */
import { delimiter, dirname, isAbsolute, join } from 'node:path'
import { KubeConfig } from '@kubernetes/client-node/dist/config.js'
import type { Cluster, Context, User } from '@kubernetes/client-node/dist/config_types.js'
import { parse } from 'yaml'
import { isObject, messageOf, type JsonObject } from '../../../schemas/json.ts'
import { CommandError, usageError, exitCodes } from '../framework/command-error.ts'
import type { Machine } from '../framework/command.ts'
import type { GlobalFlags } from '../framework/parse.ts'
import type { ExecConfig } from './exec-plugin.ts'

/** The server to connect to, and the user. */
export type Access = {
  readonly contextName: string | undefined
  readonly cluster: Cluster
  /** Without its credential plugin and its impersonation. */
  readonly user: User
  readonly exec: ExecConfig | undefined
  readonly impersonation: Impersonation
}

type Loaded = {
  readonly clusters: readonly Cluster[]
  readonly contexts: readonly Context[]
  readonly users: readonly User[]
  readonly currentContext: string | undefined
  /** Fields of users that the library drops, by the user's name. */
  readonly userFields: ReadonlyMap<string, JsonObject>
}

const nothing: Loaded = { clusters: [], contexts: [], users: [], currentContext: undefined, userFields: new Map() }

/** Reads the kubeconfig and applies the flags. Throws a `CommandError` that names the file, the name or the flag. */
export async function resolveAccess(flags: GlobalFlags, machine: Machine): Promise<Access> {
  const loaded = await load(flags, machine)
  const contextName = flags.context ?? loaded.currentContext
  const context = loaded.contexts.find(({ name }) => name === contextName)
  if (flags.context !== undefined && context === undefined)
    throw missing('context', flags.context, loaded.contexts, '--context')
  const cluster = clusterOf(flags, machine, loaded, context)
  const name = flags.user ?? context?.user
  const user = loaded.users.find((one) => one.name === name)
  if (flags.user !== undefined && user === undefined) throw missing('user', flags.user, loaded.users, '--user')
  const fields = (name === undefined ? undefined : loaded.userFields.get(name)) ?? {}
  return {
    contextName: context?.name,
    cluster,
    user: userOf(flags, user),
    exec: hasOwnCredentials(flags) ? undefined : ((user?.exec ?? undefined) as ExecConfig | undefined),
    impersonation: impersonationOf(flags, user, fields),
  }
}

/** Names of all contexts, for completion. */
export async function contextNames(flags: GlobalFlags, machine: Machine): Promise<readonly string[]> {
  return (await load(flags, machine)).contexts.map(({ name }) => name)
}

async function load(flags: GlobalFlags, machine: Machine): Promise<Loaded> {
  if (flags.kubeconfig !== undefined) {
    const loaded = await loadFile(flags.kubeconfig, machine)
    if (loaded === undefined) throw usageError(`--kubeconfig: there is no file ${flags.kubeconfig}`)
    return loaded
  }
  const { KUBECONFIG: list = '', HOME: home = '' } = machine.environment
  const files = list === '' ? [join(home, '.kube', 'config')] : list.split(delimiter).filter((file) => file !== '')
  let merged = nothing
  // The first file that contains a name decides, and the first file that sets the context. Ignores missing files.
  for (const file of files) merged = merge(merged, (await loadFile(file, machine)) ?? nothing)
  return merged.contexts.length + merged.clusters.length === 0 ? await loadInCluster(machine) : merged
}

async function loadFile(file: string, machine: Machine): Promise<Loaded | undefined> {
  let text: string
  try {
    text = await machine.readFile(file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw usageError(`cannot read the kubeconfig ${file}: ${messageOf(error)}`)
  }
  try {
    const config = new KubeConfig()
    const raw: unknown = parse(text) ?? {}
    config.loadFromString(JSON.stringify(raw))
    config.makePathsAbsolute(dirname(file))
    const entries = isObject(raw) && Array.isArray(raw['users']) ? raw['users'].filter(isObject) : []
    const userFields = new Map(entries.map(({ name, user }) => [String(name), isObject(user) ? user : {}] as const))
    const users = config.users.map((user) => withPaths(user, userFields.get(user.name) ?? {}, dirname(file)))
    const { clusters, contexts, currentContext } = config
    return { clusters, contexts, users, currentContext: currentContext || undefined, userFields }
  } catch (error) {
    throw usageError(`the kubeconfig ${file} is not valid: ${messageOf(error)}`)
  }
}

/** Paths of token files and plugins are relative to the kubeconfig. */
function withPaths(user: User, fields: JsonObject, folder: string): User {
  const absolute = (path: string): string => (isAbsolute(path) ? path : join(folder, path))
  const { tokenFile } = fields
  const exec = user.exec as ExecConfig | null | undefined
  return {
    ...user,
    ...(typeof tokenFile === 'string' && {
      authProvider: { name: 'tokenFile', config: { tokenFile: absolute(tokenFile) } },
    }),
    ...(exec?.command.includes('/') && { exec: { ...exec, command: absolute(exec.command) } }),
  }
}

const merge = (first: Loaded, second: Loaded): Loaded => ({
  clusters: [...first.clusters, ...others(second.clusters, first.clusters)],
  contexts: [...first.contexts, ...others(second.contexts, first.contexts)],
  users: [...first.users, ...others(second.users, first.users)],
  currentContext: first.currentContext ?? second.currentContext,
  userFields: new Map([...second.userFields, ...first.userFields]),
})

const others = <T extends { readonly name: string }>(all: readonly T[], known: readonly T[]): T[] =>
  all.filter(({ name }) => !known.some((one) => one.name === name))

/** The ServiceAccount of the pod, if this runs in one. */
async function loadInCluster(machine: Machine): Promise<Loaded> {
  const hasToken = await machine.readFile('/var/run/secrets/kubernetes.io/serviceaccount/token').then(
    () => true,
    () => false,
  )
  if (!hasToken || !machine.environment['KUBERNETES_SERVICE_HOST']) return nothing
  const config = new KubeConfig()
  config.loadFromCluster()
  const { clusters, contexts, users, currentContext } = config
  return { clusters, contexts, users, currentContext, userFields: new Map() }
}

function clusterOf(flags: GlobalFlags, machine: Machine, loaded: Loaded, context: Context | undefined): Cluster {
  const name = flags.cluster ?? context?.cluster
  const found = loaded.clusters.find((one) => one.name === name)
  if (found === undefined && flags.cluster !== undefined)
    throw missing('cluster', flags.cluster, loaded.clusters, '--cluster')
  if (found === undefined && flags.server === undefined) throw noCluster(flags, machine, loaded, context)
  const server = (flags.server ?? found?.server ?? '').replace(/\/$/, '')
  if (!/^https?:\/\//.test(server)) throw usageError(`--server must start with https:// or http://, got "${server}"`)
  if (flags.insecureSkipTlsVerify && flags.certificateAuthority !== undefined)
    throw usageError('--certificate-authority and --insecure-skip-tls-verify contradict each other: choose one')
  const proxyUrl = flags.proxyUrl ?? found?.proxyUrl ?? proxyOfEnvironment(server, machine.environment)
  const tlsServerName = flags.tlsServerName ?? found?.tlsServerName
  const isUnchecked = flags.insecureSkipTlsVerify || (found?.skipTLSVerify ?? false)
  const { certificateAuthority } = flags
  const authority: Pick<Cluster, 'caFile' | 'caData'> =
    certificateAuthority === undefined ? { ...found } : { caFile: certificateAuthority }
  const { caFile, caData } = authority
  return {
    name: name ?? 'server',
    server,
    // without this, the library refuses http
    skipTLSVerify: isUnchecked || server.startsWith('http:'),
    ...(!isUnchecked && caFile && { caFile }),
    ...(!isUnchecked && caData && { caData }),
    ...(proxyUrl && { proxyUrl }),
    ...(tlsServerName && { tlsServerName }),
  }
}

const hasOwnCredentials = (flags: GlobalFlags): boolean =>
  flags.token !== undefined || flags.username !== undefined || flags.clientCertificate !== undefined

/** Flags replace the kubeconfig's credentials of the same kind. A token or a password replaces all of them. */
function userOf(flags: GlobalFlags, found: User | undefined): User {
  if (flags.token !== undefined) return { name: 'user', token: flags.token }
  if (flags.username !== undefined) return { name: 'user', username: flags.username, password: flags.password ?? '' }
  return {
    ...(found ?? { name: 'user' }),
    exec: undefined,
    impersonateUser: undefined,
    ...(flags.clientCertificate !== undefined && { certFile: flags.clientCertificate, certData: undefined }),
    ...(flags.clientKey !== undefined && { keyFile: flags.clientKey, keyData: undefined }),
  } as unknown as User
}

function impersonationOf(flags: GlobalFlags, user: User | undefined, fields: JsonObject): Impersonation {
  if (flags.as !== undefined || flags.asGroup.length > 0)
    return { user: flags.as, uid: flags.asUid, groups: flags.asGroup, extra: parseExtra(flags.asUserExtra) }
  const { 'as-uid': uid, 'as-groups': groups, 'as-user-extra': extra } = fields
  return {
    user: user?.impersonateUser ?? undefined,
    uid: flags.asUid ?? (typeof uid === 'string' ? uid : undefined),
    groups: Array.isArray(groups) ? groups.map(String) : [],
    extra: isObject(extra) ? (extra as Readonly<Record<string, readonly string[]>>) : {},
  }
}

function missing(kind: string, name: string, known: readonly { readonly name: string }[], flag: string): CommandError {
  const names = known.map((one) => one.name).join(', ')
  const remedy = known.length === 0 ? `the kubeconfig has no ${kind}s` : `the kubeconfig has: ${names}`
  return usageError(`${flag}: no ${kind} "${name}" in the kubeconfig`, remedy)
}

function noCluster(flags: GlobalFlags, machine: Machine, loaded: Loaded, context: Context | undefined): CommandError {
  const where = flags.kubeconfig ?? machine.environment['KUBECONFIG'] ?? '~/.kube/config'
  if (context !== undefined)
    return usageError(`the context "${context.name}" names a cluster "${context.cluster}" that ${where} does not have`)
  if (loaded.contexts.length > 0) {
    const names = loaded.contexts.map(({ name }) => name).join(', ')
    return usageError(`no current context in ${where}`, `choose one with --context: ${names}`)
  }
  const remedy = 'set KUBECONFIG, or give --kubeconfig or --server'
  return new CommandError(exitCodes.usage, `no cluster to connect to: ${where} has none`, remedy)
}

/**
 * The proxy for a server from the environment, as in kubectl: HTTPS_PROXY or HTTP_PROXY by the server's scheme, in
 * upper or lower case, unless NO_PROXY names the host. Loopback addresses need no proxy.
 */
export function proxyOfEnvironment(
  server: string,
  environment: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const url = new URL(server)
  const read = (name: string): string => environment[name] || environment[name.toLowerCase()] || ''
  const proxy = url.protocol === 'http:' ? read('HTTP_PROXY') : read('HTTPS_PROXY')
  if (proxy === '' || isLoopback(url.hostname) || isExcluded(url, read('NO_PROXY'))) return undefined
  return proxy.includes('://') ? proxy : `http://${proxy}`
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '[::1]' || /^127(\.\d+){3}$/.test(host)

function isExcluded({ hostname, port, protocol }: URL, list: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase()
  const actualPort = port || (protocol === 'http:' ? '80' : '443')
  return list
    .split(',')
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== '')
    .some((entry) => {
      if (entry === '*') return true
      if (entry.includes('/')) return isInNetwork(host, entry)
      const [, name = entry, entryPort] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? []
      if (entryPort !== undefined && entryPort !== actualPort) return false
      const suffix = name.replace(/^\*?\./, '')
      return host === suffix || host.endsWith(`.${suffix}`)
    })
}

/** Whether an IPv4 address is in a network such as `10.0.0.0/8`. */
function isInNetwork(host: string, network: string): boolean {
  const [base = '', bits = ''] = network.split('/')
  const [address, start] = [host, base].map(numberOf)
  const length = Number(bits)
  if (address === undefined || start === undefined || !(length >= 0 && length <= 32)) return false
  const size = 2 ** (32 - length)
  return Math.floor(address / size) === Math.floor(start / size)
}

function numberOf(text: string): number | undefined {
  const parts = text.split('.').map(Number)
  if (parts.length !== 4 || parts.some((part) => !(part >= 0 && part <= 255))) return undefined
  return parts.reduce((sum, part) => sum * 256 + part, 0)
}

/** The user to impersonate, from flags or from a user of the kubeconfig. */
type Impersonation = {
  readonly user?: string | undefined
  readonly uid?: string | undefined
  readonly groups: readonly string[]
  readonly extra: Readonly<Record<string, readonly string[]>>
}

/** The impersonation headers; none without a user. Throws a usage error for groups without a user. */
export function impersonationHeaders({ user, uid, groups, extra }: Impersonation): Record<string, string | string[]> {
  const others = [
    groups.length > 0 && '--as-group',
    uid !== undefined && '--as-uid',
    Object.keys(extra).length > 0 && '--as-user-extra',
  ]
  const other = others.find((one) => one !== false)
  if (user === undefined && other !== undefined) throw usageError(`${other} needs --as USER`)
  return {
    ...(user !== undefined && { 'impersonate-user': user }),
    ...(uid !== undefined && { 'impersonate-uid': uid }),
    ...(groups.length > 0 && { 'impersonate-group': [...groups] }),
    ...Object.fromEntries(
      // keys may contain characters that are invalid in a header's name
      Object.entries(extra).map(([key, values]) => [
        `impersonate-extra-${encodeURIComponent(key.toLowerCase())}`,
        [...values],
      ]),
    ),
  }
}

/** Parses the `KEY=VALUE` of each `--as-user-extra`. */
function parseExtra(texts: readonly string[]): Record<string, string[]> {
  const extra: Record<string, string[]> = {}
  for (const text of texts) {
    const at = text.indexOf('=')
    if (at < 1) throw usageError(`--as-user-extra must be KEY=VALUE, got "${text}"`)
    ;(extra[text.slice(0, at)] ??= []).push(text.slice(at + 1))
  }
  return extra
}
