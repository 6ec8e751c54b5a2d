import type { ObjectMeta } from '../schemas/kubernetes.ts'
import { isGone, isNotFound } from './errors.ts'
import type { KubeRequestOptions, KubeTransport, Query } from './transport.ts'

/** Any object of the API, as far as this agent reads it. Objects stay plain JSON, so fields we do not know survive. */
export type KubeObject = {
  readonly apiVersion?: string
  readonly kind?: string
  readonly metadata: ObjectMeta
}

export type ObjectList<T extends KubeObject> = {
  readonly metadata: {
    readonly resourceVersion: string
    readonly continue?: string
    /** On a page of a collection: how many items follow. */
    readonly remainingItemCount?: number
  }
  readonly items?: readonly T[]
}

/** Accept headers that make the server send metadata only: a status of any size then costs nothing on the wire. */
export const metadataOnlyAccept = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'
export const metadataOnlyListAccept = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'

/** One object; undefined if it is not there. Without a resourceVersion in the query it is a consistent read. */
export async function getIfExists<T>(
  transport: Pick<KubeTransport, 'json'>,
  path: string,
  options?: KubeRequestOptions,
): Promise<T | undefined> {
  try {
    return await transport.json<T>('GET', path, options)
  } catch (error) {
    if (isNotFound(error)) return undefined
    throw error
  }
}

export type ListResult<T> = { readonly items: readonly T[]; readonly resourceVersion: string }

type ListOptions<T, U> = {
  readonly query?: Query | undefined
  readonly accept?: string | undefined
  readonly signal?: AbortSignal | undefined
  readonly pageSize?: number
  /** What to keep of each object. Applied page by page, so that dropped fields never accumulate in memory. */
  readonly transform: (object: T) => U
}

/**
 * All objects of a collection as of one resourceVersion, read in pages. Without a resourceVersion in `query` the read
 * is consistent: it shows every write acknowledged before it started. A continue token that expires half way (410) is
 * answered by one LIST without pages.
 */
export async function listAll<T extends KubeObject, U>(
  transport: KubeTransport,
  path: string,
  options: ListOptions<T, U>,
): Promise<ListResult<U>> {
  const { query, accept, signal, pageSize = 500, transform } = options
  const items: U[] = []
  for (let token: string | undefined; ; ) {
    let page: ObjectList<T>
    try {
      page = await transport.json<ObjectList<T>>('GET', path, {
        query: { ...query, limit: pageSize, continue: token },
        accept,
        signal,
      })
    } catch (error) {
      if (token === undefined || !isGone(error)) throw error
      items.length = 0
      page = await transport.json<ObjectList<T>>('GET', path, { query, accept, signal })
    }
    for (const object of page.items ?? []) items.push(transform(object))
    token = page.metadata.continue || undefined // the last page carries an empty one
    if (token === undefined) return { items, resourceVersion: page.metadata.resourceVersion }
  }
}
