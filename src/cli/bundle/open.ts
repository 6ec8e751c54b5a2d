/** Opens a support archive in place of an API server: commands that only read work on it as on a cluster. */
import { resolve } from 'node:path'
import { createLocalRoot } from '../../host/fs/host-root.ts'
import type { KubeTransport, Query } from '../../kube/transport.ts'
import type { Clock, Random } from '../../schemas/clock.ts'
import { messageOf, isObject, parseJson } from '../../schemas/json.ts'
import { usageError } from '../base/framework/command-error.ts'
import { unpackBundle, type BundleIndex, type Bundle, type SourceEntry, isNamedObject } from './archive.ts'
import { apiErrorFrom } from '../../kube/errors.ts'
import type { KubeObject } from '../../kube/objects.ts'
import { UnreadError } from '../fleet/fleet-view/readable.ts'
import type { Context } from '../base/framework/command.ts'

type OpenBundle = {
  readonly transport: KubeTransport
  /** The namespace of the agents. */
  readonly namespace: string
  /** Its wall clock stands at the time at which the archive was made. */
  readonly clock: Clock
  readonly index: BundleIndex
}

/** @throws CommandError for a file that cannot be read or is not a support archive */
export async function openBundle(
  file: string,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): Promise<OpenBundle> {
  const root = createLocalRoot(random)
  const packed = await root.readFile(resolve(file)).catch((error: unknown) => {
    throw usageError(`cannot read ${file}: ${messageOf(error)}`, 'name a file that kubectl skyhook bundle wrote')
  })
  const bundle = await unpackBundle(packed, file)
  const { index } = bundle
  return { transport: archivedApi(bundle), namespace: index.namespace, clock: archivedClock(clock, bundle), index }
}

/**
 * Answers LISTs that the archive has, in whole or in part, and GETs of their objects. All other requests fail with an
 * `UnreadError`, which views show as unknown with its reason.
 */
function archivedApi({ index, files }: Bundle): KubeTransport {
  const sourceOf = (path: string, query: Query): SourceEntry | undefined =>
    index.sources.find((one) => one.path === path && covers(one, query))

  function itemsOf(source: SourceEntry): readonly KubeObject[] {
    if ('unknown' in source) throw new UnreadError(`when the bundle was made: ${source.unknown}`)
    const list = parseJson(files.get(source.file) ?? '')
    if (!isObject(list) || !Array.isArray(list['items']) || !list['items'].every(isNamedObject))
      throw new UnreadError(`${source.file} of the bundle cannot be read`)
    return list['items'] as readonly KubeObject[]
  }

  function listed(source: SourceEntry, query: Query): object {
    const terms = termsOf(query)
    const items = itemsOf(source).filter((item) => terms.every(([field, value]) => fieldAt(item, field) === value))
    return { metadata: { resourceVersion: '' }, items }
  }

  function single(path: string): KubeObject {
    const end = path.lastIndexOf('/')
    const source = sourceOf(path.slice(0, end), {})
    if (source === undefined) throw new UnreadError(whyAbsent(path))
    const name = decodeURIComponent(path.slice(end + 1))
    const found = itemsOf(source).find(({ metadata }) => metadata.name === name)
    if (found === undefined) throw apiErrorFrom(404, undefined, `the bundle does not have ${path}`)
    return found
  }

  return {
    async json<T>(
      method: string,
      path: string,
      { query = {} }: { readonly query?: Query | undefined } = {},
    ): Promise<T> {
      if (method !== 'GET') throw new UnreadError('a support archive has no API server')
      const source = sourceOf(path, query)
      return (source === undefined ? single(path) : listed(source, query)) as T
    },
    stream: () => Promise.reject(new UnreadError('a bundle has no watches')),
    close: () => undefined,
  }
}

/** The clock stands at the time of the archive. */
const archivedClock = (clock: Clock, { index }: Bundle): Clock => ({
  ...clock,
  wallMs: () => Date.parse(index.takenAt),
})

/** Whether the source has everything that the query selects. */
function covers(source: SourceEntry, query: Query): boolean {
  const asked = termsOf(query).map(String)
  const isWithin = termsOf(source.query).every((term) => asked.includes(String(term)))
  return source.query['labelSelector'] === query['labelSelector'] && isWithin
}

/** The terms of a field selector: queries use only equality. */
const termsOf = ({ fieldSelector }: Query): readonly (readonly [field: string, value: string])[] =>
  typeof fieldSelector !== 'string'
    ? []
    : fieldSelector.split(',').map((term) => {
        const [field = '', value = ''] = term.split('=')
        return [field, value]
      })

function fieldAt(object: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, name) => (isObject(value) ? value[name] : undefined), object)
}

const whyAbsent = (path: string): string =>
  path === '/api/v1/pods'
    ? 'the bundle has the pods of nodes that were out of service, and of those named with --node'
    : `the bundle does not have ${path}`

export const fromFlag = {
  type: 'text',
  placeholder: 'FILE',
  complete: 'files',
  replacesCluster: true,
  summary: 'a support archive instead of a cluster; ages are those of the time when it was made',
} as const

/** `file`: an archive; undefined: the cluster of the call. */
export async function openSource(context: Context, file: string | undefined): Promise<Omit<OpenBundle, 'index'>> {
  if (file !== undefined) return await openBundle(file, context)
  const { transport, agentNamespace } = await context.connect()
  return { transport, namespace: await agentNamespace(), clock: context.clock }
}
