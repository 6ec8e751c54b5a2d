import { isGone } from './errors.ts'
import type { KubeObject, ObjectList } from './objects.ts'
import type { Query, KubeTransport } from './transport.ts'

export type ListResult<T> = { readonly items: readonly T[]; readonly resourceVersion: string }

export type ListOptions<T, U> = {
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
