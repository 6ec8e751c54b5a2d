import { isAbsolute, join } from 'node:path'
import type { HostRoot } from '../../../host/fs/host-root.ts'
import { ImageError } from '../errors.ts'
import { parseToml, type TomlTable, type TomlValue } from './hosts-toml.ts'
import { messageOf } from '../../../schemas/json.ts'

/**
 * Reads files of the host; links resolve inside its root. Undefined: there is no such file.
 */
export type HostFiles = Pick<HostRoot, 'readText' | 'list'>

export type Capability = 'pull' | 'resolve' | 'push'

/** One `[host."…"]` of a hosts.toml, or the file's head for the registry itself; files are read, paths are gone. */
export type HostEntry = {
  /** As written: with or without scheme, port and path. Undefined in the head: the registry's own address. */
  readonly address: string | undefined
  readonly capabilities: readonly Capability[]
  readonly ca: readonly string[]
  readonly client: readonly { readonly cert: string; readonly key: string }[]
  readonly skipVerify: boolean
  readonly overridePath: boolean
  readonly headers: Readonly<Record<string, readonly string[]>>
  /** How the repository is named there, if not as in the image. */
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
 * What containerd on this host knows about a registry: mirrors in order, the registry itself last. Undefined where
 * neither its own directory nor `_default` exists. Directory names and meaning as in containerd's
 * documentation of registry hosts.
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
    // the first directory decides, full or empty
    if (names !== undefined) return [await readLooseCertificates(names, directory, files)]
  }
  return undefined
}

async function readHostsFile(text: string, directory: string, files: HostFiles): Promise<HostEntry[]> {
  const path = join(directory, 'hosts.toml')
  try {
    const [head, ...tables] = parseToml(text)
    const headersOf = (address: string) =>
      tables.find((table) => table.path[0] === 'host' && table.path[1] === address && table.path[2] === 'header')
    const entries: HostEntry[] = []
    for (const table of tables) {
      const [kind, address] = table.path
      if (kind === 'host' && address !== undefined && table.path.length === 2)
        entries.push(await readEntry(address, table, headersOf(address), directory, files))
    }
    const rootHeaders = tables.find((table) => table.path.length === 1 && table.path[0] === 'header')
    if (head !== undefined)
      entries.push(
        await readEntry(readOptionalString(head.values.get('server'), 'server'), head, rootHeaders, directory, files),
      )
    return entries
  } catch (error) {
    throw new ImageError('misconfigured', `${path}: ${messageOf(error)}`, { cause: error })
  }
}

async function readEntry(
  address: string | undefined,
  { values }: TomlTable,
  header: TomlTable | undefined,
  directory: string,
  files: HostFiles,
): Promise<HostEntry> {
  const read = async (path: string): Promise<string> => {
    const absolute = isAbsolute(path) ? path : join(directory, path)
    const text = await files.readText(absolute)
    if (text === undefined) throw new Error(`${absolute} does not exist`)
    return text
  }
  const capabilities = readStrings(values.get('capabilities'), 'capabilities').map((one) => one.toLowerCase())
  const unknown = capabilities.find((one) => !allCapabilities.includes(one as Capability))
  if (unknown !== undefined) throw new Error(`unknown capability "${unknown}"`)
  return {
    address,
    capabilities: capabilities.length === 0 ? allCapabilities : (capabilities as Capability[]),
    ca: await Promise.all(readStrings(values.get('ca'), 'ca').map(read)),
    client: await Promise.all(
      readPairs(values.get('client')).map(async ([cert, key]) => ({ cert: await read(cert), key: await read(key) })),
    ),
    skipVerify: boolean(values.get('skip_verify'), 'skip_verify'),
    overridePath: boolean(values.get('override_path'), 'override_path'),
    headers: Object.fromEntries(
      [...(header?.values ?? [])].map(([name, value]) => [name.toLowerCase(), readStrings(value, name)]),
    ),
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

function readOptionalString(value: TomlValue | undefined, name: string): string | undefined {
  if (value === undefined || typeof value === 'string') return value === '' ? undefined : value
  throw new Error(`${name} is not a string`)
}

function readStrings(value: TomlValue | undefined, name: string): string[] {
  if (value === undefined) return []
  if (typeof value === 'string') return [value]
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return [...value]
  throw new Error(`${name} is not a string or a list of strings`)
}

function boolean(value: TomlValue | undefined, name: string): boolean {
  if (value === undefined || typeof value === 'boolean') return value ?? false
  throw new Error(`${name} is not true or false`)
}

/** A file with both halves, a list of those, or a list of pairs. */
function readPairs(value: TomlValue | undefined): [cert: string, key: string][] {
  const items = value === undefined ? [] : typeof value === 'string' ? [value] : value
  if (!Array.isArray(items)) throw new Error('client is not a file or a list')
  return items.map((item: TomlValue): [string, string] => {
    if (typeof item === 'string') return [item, item]
    const [cert, key, ...more] = readStrings(item, 'client')
    if (cert === undefined || key === undefined || more.length > 0)
      throw new Error('client has an entry that is not a pair')
    return [cert, key]
  })
}
