import { isAbsolute, join } from 'node:path'
import type { HostRoot } from '../../../host/fs/host-root.ts'
import { ImageError } from '../errors.ts'
import { type JsonObject, messageOf } from '../../../schemas/json.ts'
import { parseToml, readBoolean, readString, readStrings, readTable, wrongType } from './toml.ts'

/** Reads files of the host; links resolve inside its root. Undefined if there is no such file. */
export type HostFiles = Pick<HostRoot, 'readText' | 'list'>

export type Capability = 'pull' | 'resolve' | 'push'

/**
 * One `[host."…"]` of a hosts.toml, or the top of the file for the registry itself. Paths are replaced by the content
 * of their files.
 */
export type HostEntry = {
  /**
   * As written: with or without scheme, port and path. Undefined at the top of the file: the registry's own address.
   */
  readonly address: string | undefined
  readonly capabilities: readonly Capability[]
  readonly ca: readonly string[]
  readonly client: readonly { readonly cert: string; readonly key: string }[]
  readonly skipVerify: boolean
  readonly overridePath: boolean
  readonly headers: Readonly<Record<string, readonly string[]>>
  /** The name of the repository at this address, if it differs from the image's. */
  readonly repository?: string
}

const allCapabilities: readonly Capability[] = ['pull', 'resolve', 'push']

/** The registry's own address, without settings. */
export const defaultHostEntry: HostEntry = {
  address: undefined,
  capabilities: allCapabilities,
  ca: [],
  client: [],
  skipVerify: false,
  overridePath: false,
  headers: {},
}

/**
 * The configuration of this host's containerd for a registry: mirrors in order, the registry itself last. Undefined if
 * neither its own directory nor `_default` exists. containerd's documentation of registry hosts defines names and
 * meaning of the directories.
 * @throws ImageError misconfigured, naming file and line
 */
export async function readCertsDirectory(
  root: string,
  host: string,
  files: HostFiles,
): Promise<HostEntry[] | undefined> {
  for (const name of new Set([host.replace(/:(\d+)$/, '_$1_'), host, '_default'])) {
    const directory = join(root, name)
    const text = await files.readText(join(directory, 'hosts.toml'))
    if (text !== undefined && text.trim() !== '') return await readHostsFile(text, directory, files)
    const names = await files.list(directory)
    // the first existing directory decides, even if it is empty
    if (names !== undefined) return [await readLooseCertificates(names, directory, files)]
  }
  return undefined
}

async function readHostsFile(text: string, directory: string, files: HostFiles): Promise<HostEntry[]> {
  try {
    const head = parseToml(text)
    const hosts = readTable(head, 'host')
    const entries: HostEntry[] = []
    for (const address of Object.keys(hosts))
      entries.push(await readEntry(address, readTable(hosts, address), directory, files))
    return [...entries, await readEntry(readString(head, 'server'), head, directory, files)]
  } catch (error) {
    throw new ImageError('misconfigured', `${join(directory, 'hosts.toml')}: ${messageOf(error)}`, { cause: error })
  }
}

async function readEntry(
  address: string | undefined,
  table: JsonObject,
  directory: string,
  files: HostFiles,
): Promise<HostEntry> {
  const read = async (path: string): Promise<string> => {
    const absolute = isAbsolute(path) ? path : join(directory, path)
    const text = await files.readText(absolute)
    if (text === undefined) throw new Error(`${absolute} does not exist`)
    return text
  }
  const capabilities = readStrings(table, 'capabilities').map((one) => one.toLowerCase())
  const unknown = capabilities.find((one) => !allCapabilities.includes(one as Capability))
  if (unknown !== undefined) throw new Error(`unknown capability "${unknown}"`)
  const header = readTable(table, 'header')
  return {
    address,
    capabilities: capabilities.length === 0 ? allCapabilities : (capabilities as Capability[]),
    ca: await Promise.all(readStrings(table, 'ca').map(read)),
    client: await Promise.all(
      readPairs(table).map(async ([cert, key]) => ({ cert: await read(cert), key: await read(key) })),
    ),
    skipVerify: readBoolean(table, 'skip_verify'),
    overridePath: readBoolean(table, 'override_path'),
    headers: Object.fromEntries(Object.keys(header).map((name) => [name.toLowerCase(), readStrings(header, name)])),
  }
}

/** Docker's older layout: `*.crt` are authorities, `x.cert` and `x.key` a client's pair. */
export async function readLooseCertificates(
  names: readonly string[],
  directory: string,
  files: HostFiles,
): Promise<HostEntry> {
  const read = async (name: string) => (await files.readText(join(directory, name))) ?? ''
  const sorted = [...names].sort()
  const clients = sorted.filter((name) => name.endsWith('.cert') && names.includes(name.replace(/cert$/, 'key')))
  return {
    ...defaultHostEntry,
    ca: await Promise.all(sorted.filter((name) => name.endsWith('.crt')).map(read)),
    client: await Promise.all(
      clients.map(async (name) => ({ cert: await read(name), key: await read(name.replace(/cert$/, 'key')) })),
    ),
  }
}

/** A file with certificate and key, a list of such files, or a list of pairs. */
function readPairs({ client = [] }: JsonObject): [cert: string, key: string][] {
  const items: readonly unknown[] = Array.isArray(client) ? client : [client]
  return items.map((item): [string, string] => {
    if (typeof item === 'string') return [item, item]
    const [cert, key, ...more]: readonly unknown[] = Array.isArray(item) ? item : []
    if (typeof cert === 'string' && typeof key === 'string' && more.length === 0) return [cert, key]
    throw wrongType('client', 'a file, or a list of files or pairs of them', client)
  })
}
