import { rootCertificates } from 'node:tls'
import { type JsonObject, messageOf } from '../../../schemas/json.ts'
import { ImageError } from '../errors.ts'
import { matchLength, serverHost } from '../reference.ts'
import {
  type Capability,
  defaultHostEntry,
  type HostEntry,
  type HostFiles,
  readCertsDirectory,
  readLooseCertificates,
} from './certs-directory.ts'
import type { Trust } from './http.ts'
import { parseToml, readBoolean, readString, readTables } from './toml.ts'

/** The settings of one registry host in the chart's `registries`. */
export type RegistryRule = {
  readonly host: string
  /**
   * Tried in order before the registry: `https://mirror:5000`, with a path if the mirror needs one. The default scheme
   * is https.
   */
  readonly mirrors?: readonly string[]
  /** PEM: the certificate authority of the registry and of these mirrors. */
  readonly ca?: string
  readonly plainHTTP?: boolean
}

export type EndpointSources = {
  readonly files: HostFiles
  /** containerd's `config_path` on the host; if undefined, the configuration of containerd and CRI-O is not read. */
  readonly certsDirectory: string | undefined
  readonly rules: readonly RegistryRule[]
}

/** One address that may answer for a registry host. Plain data, because it is sent to other processes. */
export type Endpoint = {
  /** Root of the distribution API, without a slash at its end. */
  readonly base: string
  /** `host[:port]` to which connections and logins belong. */
  readonly host: string
  /** The registry that a mirror serves, sent to it as `ns`, as containerd does; some mirrors serve several. */
  readonly namespace: string | undefined
  readonly trust: Trust
  readonly headers: Readonly<Record<string, readonly string[]>>
  readonly capabilities: readonly Capability[]
  /** The name of the repository at this address, if it differs from the image's. */
  readonly repository?: string
}

/** Where Linux distributions keep the bundle of trusted authorities; the first existing file is used. */
const trustBundlePaths = [
  '/etc/ssl/certs/ca-certificates.crt', // Debian, Ubuntu, Arch
  '/etc/pki/tls/certs/ca-bundle.crt', // Fedora, RHEL
  '/etc/ssl/ca-bundle.pem', // SUSE
  '/etc/pki/tls/cacert.pem',
  '/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem',
  '/etc/ssl/cert.pem', // Alpine
]

/**
 * The addresses to try for a repository of a registry host, in order: mirrors in the configuration of this host's
 * containerd or CRI-O, mirrors of the chart, the registry itself. Each must present a certificate of an authority in
 * the host's own bundle (or of Node's roots if there is no bundle), or of an authority configured for it.
 * @throws ImageError misconfigured
 */
export async function readEndpoints(host: string, sources: EndpointSources, repository = ''): Promise<Endpoint[]> {
  const { files, rules } = sources
  const ruleOf = (name: string) => rules.find((rule) => rule.host === name)
  const { mirrors, upstream } = (await readRuntimeHosts(host, repository, sources)) ?? defaultHosts
  const chartMirrors = (ruleOf(host)?.mirrors ?? []).map((address): HostEntry => ({ ...defaultHostEntry, address }))
  const bundle = await readBundle(files)

  const endpoints = [...mirrors, ...chartMirrors, ...upstream].map((entry): Endpoint => {
    const url = addressOf(entry, host, ruleOf)
    // a rule's authority applies to all addresses that it names
    const isCoveredByRule = upstream.includes(entry) || chartMirrors.includes(entry)
    const ownAuthorities = [...entry.ca, ruleOf(url.host)?.ca, isCoveredByRule ? ruleOf(host)?.ca : undefined].filter(
      (ca) => ca !== undefined,
    )
    return {
      base: `${url.protocol}//${url.host}${url.pathname.replace(/\/$/, '')}`,
      host: url.host,
      // CRI-O configures the repository at the mirror instead
      namespace: url.host === serverHost(host) || entry.repository !== undefined ? undefined : host,
      trust: { ca: authorities(bundle, new Set(ownAuthorities)), skipVerify: entry.skipVerify, client: entry.client },
      headers: entry.headers,
      capabilities: entry.capabilities,
      ...(entry.repository !== undefined && entry.repository !== repository && { repository: entry.repository }),
    }
  })
  return endpoints.filter((endpoint, index) => endpoints.findIndex((other) => isSamePlace(other, endpoint)) === index)
}

const defaultHosts: RuntimeHosts = { mirrors: [], upstream: [defaultHostEntry] }

async function readRuntimeHosts(
  host: string,
  repository: string,
  { files, certsDirectory }: EndpointSources,
): Promise<RuntimeHosts | undefined> {
  if (certsDirectory === undefined) return undefined
  const entries = await readCertsDirectory(certsDirectory, host, files)
  if (entries !== undefined) return { mirrors: entries.slice(0, -1), upstream: entries.slice(-1) }
  return await readRegistriesConf({ host, repository }, files)
}

function isSamePlace(one: Endpoint, other: Endpoint): boolean {
  return one.base === other.base && one.repository === other.repository
}

function addressOf(
  { address, overridePath }: HostEntry,
  host: string,
  ruleOf: (name: string) => RegistryRule | undefined,
): URL {
  const configuredAddress = address ?? host
  const isPlain = ruleOf(configuredAddress.replace(/\/.*$/, ''))?.plainHTTP === true
  const url = URL.parse(
    /^https?:\/\//.test(configuredAddress) ? configuredAddress : `${isPlain ? 'http' : 'https'}://${configuredAddress}`,
  )
  if (url === null)
    throw new ImageError('misconfigured', `${host}: "${configuredAddress}" is not the address of a registry`)
  url.host = serverHost(url.host)
  url.pathname = url.pathname.replace(/\/+$/, '')
  const hasApiRoot = overridePath || /(?:^|\/)v2$/.test(url.pathname) || url.pathname.startsWith('/v2/')
  if (!hasApiRoot) url.pathname = `${url.pathname === '/' ? '' : url.pathname}/v2`
  return url
}

function authorities(bundle: string | undefined, ownAuthorities: ReadonlySet<string>): string[] {
  if (ownAuthorities.size === 0) return bundle === undefined ? [] : [bundle]
  // configured authorities replace Node's, so the default ones are added
  return [...(bundle === undefined ? rootCertificates : [bundle]), ...ownAuthorities]
}

async function readBundle(files: HostFiles): Promise<string | undefined> {
  for (const path of trustBundlePaths) {
    const text = await files.readText(path)
    if (text !== undefined && text !== '') return text
  }
  return undefined
}

/** The configuration of this host's container runtime for a repository's registry. */
type RuntimeHosts = { readonly mirrors: readonly HostEntry[]; readonly upstream: readonly HostEntry[] }

const crioSocketFolders = ['/run/crio', '/var/run/crio']
const configPath = '/etc/containers/registries.conf'
const dropInFolder = '/etc/containers/registries.conf.d'
const certsFolders = ['/etc/containers/certs.d', '/etc/docker/certs.d']

/** One `[[registry]]` with its mirrors. */
type Registry = Place & {
  readonly path: string
  readonly prefix: string
  readonly isBlocked: boolean
  readonly mirrors: readonly Place[]
}

type Place = {
  readonly location: string | undefined
  readonly isInsecure: boolean
  readonly capabilities: readonly Capability[]
}

/**
 * The configuration of this host's CRI-O for a repository, from the files that it shares with podman. Undefined if the
 * host does not run CRI-O, or the files do not mention the repository. The documentation of containers-registries.conf,
 * version 2, defines the settings.
 * @throws ImageError misconfigured, naming the file: the file is unreadable or blocks the registry
 */
async function readRegistriesConf(
  image: { readonly host: string; readonly repository: string },
  files: HostFiles,
): Promise<RuntimeHosts | undefined> {
  const sockets = await Promise.all(crioSocketFolders.map(async (folder) => await files.list(folder)))
  if (!sockets.some((names) => names?.includes('crio.sock'))) return undefined // at most podman reads the files
  const name = `${image.host}/${image.repository}`
  const matches = (await readRegistries(files))
    .map((registry) => ({ registry, length: matchLength(registry.prefix, 'registriesConf', name) }))
    .filter(({ length }) => length > 0)
    .sort((one, other) => other.length - one.length)
  const [best] = matches
  if (best === undefined) return undefined
  const { registry, length } = best
  if (registry.isBlocked)
    throw new ImageError('misconfigured', `${image.host}: ${registry.path} blocks ${registry.prefix}`)
  const rest = name.slice(length)
  const location = registry.location ?? name.slice(0, length)
  return {
    mirrors: (await Promise.all(registry.mirrors.map((one) => entriesOf(one, rest, files)))).flat(),
    upstream: await entriesOf({ ...registry, location }, rest, files),
  }
}

/**
 * The registries of all files in their order; a registry of a later file replaces an earlier one with the same prefix.
 */
async function readRegistries(files: HostFiles): Promise<Registry[]> {
  const dropIns = ((await files.list(dropInFolder)) ?? []).filter((name) => name.endsWith('.conf')).sort()
  const registries = new Map<string, Registry>()
  for (const path of [configPath, ...dropIns.map((name) => `${dropInFolder}/${name}`)]) {
    const text = await files.readText(path)
    for (const registry of text === undefined ? [] : parseRegistries(text, path))
      registries.set(registry.prefix, registry)
  }
  return [...registries.values()]
}

function parseRegistries(text: string, path: string): Registry[] {
  try {
    return readTables(parseToml(text), 'registry').map((table) => parseRegistry(table, path))
  } catch (error) {
    throw new ImageError('misconfigured', `${path}: ${messageOf(error)}`, { cause: error })
  }
}

function parseRegistry(table: JsonObject, path: string): Registry {
  const place = parsePlace(table, false)
  const prefix = readPlaceName(table, 'prefix') ?? place.location
  if (prefix === undefined) throw new Error('a [[registry]] has neither prefix nor location')
  const isDigestOnly = readBoolean(table, 'mirror-by-digest-only')
  return {
    ...place,
    path,
    prefix,
    isBlocked: readBoolean(table, 'blocked'),
    mirrors: readTables(table, 'mirror').map((mirror) => parsePlace(mirror, isDigestOnly)),
  }
}

function parsePlace(table: JsonObject, isDigestOnly: boolean): Place {
  const pull = readString(table, 'pull-from-mirror')
  return {
    location: readPlaceName(table, 'location'),
    isInsecure: readBoolean(table, 'insecure'),
    capabilities: isDigestOnly || pull === 'digest-only' ? ['pull'] : defaultHostEntry.capabilities,
  }
}

const readPlaceName = (table: JsonObject, key: string): string | undefined =>
  readString(table, key)?.replace(/\/+$/, '')

/** An insecure registry may have any certificate. Without TLS, it is reached over HTTP. */
async function entriesOf(
  { location, isInsecure, capabilities }: Place,
  rest: string,
  files: HostFiles,
): Promise<HostEntry[]> {
  if (location === undefined) return []
  const [host = '', ...path] = `${location}${rest}`.split('/')
  const certificates = await readCertificates(host, files)
  const entry = { ...defaultHostEntry, ...certificates, capabilities, repository: path.join('/') }
  if (!isInsecure) return [{ ...entry, address: host }]
  return ['https', 'http'].map((scheme) => ({ ...entry, address: `${scheme}://${host}`, skipVerify: true }))
}

async function readCertificates(host: string, files: HostFiles): Promise<Partial<HostEntry>> {
  for (const folder of certsFolders) {
    const names = await files.list(`${folder}/${host}`)
    if (names === undefined) continue
    const { ca, client } = await readLooseCertificates(names, `${folder}/${host}`, files)
    return { ca, client }
  }
  return {}
}
