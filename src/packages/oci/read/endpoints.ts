import { rootCertificates } from 'node:tls'
import {
  type Capability,
  defaultHostEntry,
  type HostEntry,
  type HostFiles,
  readCertsDirectory,
} from './certs-directory.ts'
import { ImageError } from '../errors.ts'
import { serverHost } from '../reference.ts'
import { readRegistriesConf, type RuntimeHosts } from './registries-conf.ts'
import type { Trust } from './trust.ts'

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
