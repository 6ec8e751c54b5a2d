import type { Method } from '../../../src/kube/transport.ts'
import { locate } from './resources.ts'
import type { SimulatedApiServer } from './server.ts'
import type { SimObject } from './versions.ts'

type PutObject = {
  readonly metadata: { readonly name: string; readonly [field: string]: unknown }
  readonly [field: string]: unknown
}

/** Edits of an administrator who needs no client: they take effect at once, whatever faults there are. */
export type Edits = {
  /** Creates or replaces an object, status included. `collection`: a path. */
  readonly put: (collection: string, object: PutObject) => SimObject
  /** Also a pod; finalizers keep what has them. */
  readonly remove: (collection: string, name: string) => void
  readonly get: (collection: string, name: string) => SimObject | undefined
}

/** @throws for what the server refuses */
export function editsOf(server: SimulatedApiServer): Edits {
  const get: Edits['get'] = (collection, name) => {
    const location = locate(`${collection}/${name}`)
    return location && server.object(location.resource.plural, location.namespace, name)
  }
  const write = (method: Method, path: string, body?: unknown): void => {
    const { code, body: answer } = server.handle({ client: 'admin', manager: 'kubectl', method, path, query: {}, body })
    if (code >= 300) throw new Error(`${method} ${path}: ${code} ${JSON.stringify(answer)}`)
  }
  const replace = (collection: string, subresource: string, object: PutObject): void => {
    const { name } = object.metadata
    const { uid, resourceVersion } = get(collection, name)?.metadata ?? {}
    const metadata = { ...object.metadata, uid, resourceVersion }
    write('PUT', `${collection}/${name}${subresource}`, { ...object, metadata })
  }
  return {
    get,
    put(collection, object) {
      const { name, resourceVersion: _, ...metadata } = object.metadata
      if (get(collection, name) !== undefined) replace(collection, '', object)
      else write('POST', collection, { ...object, metadata: { name, ...metadata } })
      if (object['status'] !== undefined) replace(collection, '/status', object)
      return get(collection, name) as SimObject
    },
    remove: (collection, name) => write('DELETE', `${collection}/${name}`, { gracePeriodSeconds: 0 }),
  }
}
