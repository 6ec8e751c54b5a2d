import { ImageError } from '../errors.ts'
import { matchLength } from '../image-pattern.ts'
import { type JsonObject, messageOf } from '../../../schemas/json.ts'
import {
  type Capability,
  defaultHostEntry,
  type HostEntry,
  type HostFiles,
  readLooseCertificates,
} from './certs-directory.ts'
import { parseToml, readBoolean, readString, readTables } from './toml.ts'

/** The configuration of this host's container runtime for a repository's registry. */
export type RuntimeHosts = { readonly mirrors: readonly HostEntry[]; readonly upstream: readonly HostEntry[] }

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
export async function readRegistriesConf(
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
