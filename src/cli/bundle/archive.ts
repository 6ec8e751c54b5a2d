/** The content of a support archive: packs it, and unpacks what may come from anybody. */
import { Readable } from 'node:stream'
import { promisify } from 'node:util'
import { gunzip, gzip } from 'node:zlib'
import { extract, pack } from 'tar-stream'
import { addEntry } from '../../packages/oci/write/layer.ts'
import { isObject, type JsonObject, messageOf, parseJson } from '../../schemas/json.ts'
import { harmlessJson } from '../../schemas/plain-text.ts'
import { usageError } from '../base/framework/command-error.ts'
import type { Query } from '../../kube/transport.ts'

/** One LIST of the API server in the archive. */
export type SourceEntry = {
  /** Plural, for people. */
  readonly what: string
  readonly path: string
  readonly query: Query
} & ({ readonly file: string; readonly count: number } | { readonly unknown: string })

/** The version of the index, and of the names and format of the files. */
export const bundleFormat = 'cli.skyhookd/v1'

export type BundleIndex = {
  readonly apiVersion: typeof bundleFormat
  readonly kind: 'Bundle'
  /** When it was read, in ISO 8601. */
  readonly takenAt: string
  readonly toolVersion: string
  /** The namespace of the agents. */
  readonly namespace: string
  readonly sources: readonly SourceEntry[]
  /** Whole sentences with numbers. */
  readonly leftOut: readonly string[]
}

export type Bundle = {
  readonly index: BundleIndex
  /** Text by name within the archive, without the index. */
  readonly files: ReadonlyMap<string, string>
}

const indexFile = 'index.json'
/** All files are in one folder. */
const bundleFolder = 'skyhook-bundle'

/** A thousand nodes need a few megabytes: a larger file is not a support archive. */
const maxUnpackedBytes = 512 << 20
/** Byte of a gzip header that names the system; 255: unknown. */
const systemByte = 9

const compress = promisify(gzip)
const decompress = promisify(gunzip)

/** Equal bundles give equal bytes on every machine; the compression may differ between versions of Node. */
export async function packBundle({ index, files }: Bundle): Promise<Buffer> {
  const archive = pack()
  const chunks = (async () => {
    const all: Buffer[] = []
    for await (const chunk of archive as unknown as AsyncIterable<Buffer>) all.push(chunk)
    return Buffer.concat(all)
  })()
  const sorted = [...files].sort(([a], [b]) => (a < b ? -1 : 1))
  for (const [name, text] of [[indexFile, jsonText(index)] as const, ...sorted])
    await addEntry(archive, { name: `${bundleFolder}/${name}`, mode: 0o600 }, Buffer.from(text))
  archive.finalize()
  const packed = await compress(await chunks, { level: 9 })
  packed[systemByte] = 255
  return packed
}

/** @throws CommandError if the file is not a support archive */
export async function unpackBundle(packed: Uint8Array, file: string): Promise<Bundle> {
  const files = new Map<string, string>()
  try {
    const entries = extract()
    Readable.from([await decompress(packed, { maxOutputLength: maxUnpackedBytes })]).pipe(
      entries as unknown as NodeJS.WritableStream,
    )
    for await (const entry of entries) {
      const chunks: Buffer[] = []
      for await (const chunk of entry as AsyncIterable<Buffer>) chunks.push(chunk)
      const { name, type } = entry.header
      if (type === 'file') files.set(name.replace(`${bundleFolder}/`, ''), Buffer.concat(chunks).toString('utf8'))
    }
  } catch (error) {
    if (isCutOff(error)) throw usageError(`${file} is cut off: its end is missing`, `copy it again, or ${remedy}`)
    throw usageError(`${file} is not a support archive: ${messageOf(error)}`, remedy)
  }
  const index = parseJson(files.get(indexFile) ?? '')
  if (!isObject(index) || index['kind'] !== 'Bundle')
    throw usageError(`${file} is not a support archive: it has no ${indexFile} of a bundle`, remedy)
  refuseOtherFormat(index, file)
  if (!isIndex(index)) throw usageError(`${file} is damaged: its ${indexFile} is not complete`, remedy)
  files.delete(indexFile)
  return { index, files }
}

const remedy = 'create one with kubectl skyhook bundle'

/** Whether gzip, or the tar inside, reports a truncated file. */
const isCutOff = (error: unknown): boolean =>
  (isObject(error) && error['code'] === 'Z_BUF_ERROR') || messageOf(error) === 'Unexpected end of data'

function refuseOtherFormat({ apiVersion, toolVersion }: JsonObject, file: string): void {
  if (apiVersion === bundleFormat) return
  const newer = typeof toolVersion === 'string' ? `kubectl skyhook ${toolVersion}, which created it, or later` : ''
  throw usageError(
    `${file} has a format that this version cannot read: expected ${bundleFormat}, got ${String(apiVersion)}`,
    `read it with ${newer || 'the version that created it'}`,
  )
}

/** Has no effect on a terminal that displays it. */
export const jsonText = (value: unknown): string => `${harmlessJson(JSON.stringify(value, null, 2))}\n`

const isIndex = (value: JsonObject): value is JsonObject & BundleIndex =>
  isName(value['namespace']) &&
  typeof value['toolVersion'] === 'string' &&
  typeof value['takenAt'] === 'string' &&
  !Number.isNaN(Date.parse(value['takenAt'])) &&
  Array.isArray(value['sources']) &&
  value['sources'].every(isSource)

const isSource = (value: unknown): boolean =>
  isObject(value) &&
  typeof value['path'] === 'string' &&
  isObject(value['query']) &&
  (typeof value['file'] === 'string' || typeof value['unknown'] === 'string')

/**
 * Accepts the names that the API server accepts: explanations contain commands with names, and people paste these into
 * shells.
 */
const isName = (value: unknown): value is string =>
  typeof value === 'string' && /^[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?$/.test(value)

/** Whether an object has such a name, and such a namespace if it has one. */
export function isNamedObject(value: unknown): boolean {
  const metadata = isObject(value) ? value['metadata'] : undefined
  if (!isObject(metadata)) return false
  const { name, namespace } = metadata
  return isName(name) && (namespace === undefined || namespace === '' || isName(namespace))
}
