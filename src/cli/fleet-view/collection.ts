/** How the tool reads a collection of the API. */
import { listAll } from '../../kube/list.ts'
import { metadataOnlyListAccept } from '../../kube/objects.ts'
import type { KubeTransport, Query } from '../../kube/transport.ts'
import type { Known } from '../../stages/model/snapshot.ts'
import { readable } from './readable.ts'

export type Collection<T> = {
  /** Plural, as in "you may not read Leases in namespace skyhook". */
  readonly what: string
  readonly path: string
  readonly query?: Query
  /** What is kept of an object; undefined: nothing. Called page by page: the rest never accumulates in memory. */
  readonly keep: (object: never) => T | undefined
  /** Only metadata is requested: `keep` gets nothing else. */
  readonly metadataOnly?: boolean
  /** The number of objects in one answer, which is parsed in one piece. */
  readonly pageSize?: number
}

/** Reads a collection in one consistent LIST by pages. Throws the errors of the transport. */
export async function listCollection<T>(
  transport: KubeTransport,
  { path, query, keep, metadataOnly = false, pageSize }: Collection<T>,
  signal?: AbortSignal,
): Promise<readonly T[]> {
  const { items } = await listAll<never, T | undefined>(transport, path, {
    query,
    signal,
    transform: keep,
    ...(metadataOnly && { accept: metadataOnlyListAccept }),
    ...(pageSize !== undefined && { pageSize }),
  })
  return items.flatMap((item) => (item === undefined ? [] : [item]))
}

export type CollectionReader = <T>(collection: Collection<T>) => Promise<Known<readonly T[]>>

/** Lists collections. Those that the caller may not read are unknown. Throws if the API server does not answer. */
export const readerOf =
  (transport: KubeTransport, signal?: AbortSignal): CollectionReader =>
  async (collection) =>
    await readable(collection.what, listCollection(transport, collection, signal))
