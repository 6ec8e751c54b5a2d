/** A request as the simulated server gets it. */
import { metadataOnlyAccept, metadataOnlyListAccept } from '../../../src/kube/objects.ts'
import { locate, type Location } from './resources.ts'
import type { Form } from './versions.ts'

export type SimRequest = {
  /** Who sends it; faults and the audit log go by it. */
  readonly client: string
  /** The field manager: the first part of the User-Agent. */
  readonly manager: string
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Without its query. */
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly body?: unknown
  readonly contentType?: string | undefined
  readonly accept?: string | undefined
}

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete'

/** A request with what its path means; `location` is absent for paths that the server does not serve. */
export type RoutedRequest = SimRequest & { readonly verb: Verb; readonly location: Location | undefined }

export const formOf = ({ accept }: SimRequest): Form =>
  accept === metadataOnlyAccept || accept === metadataOnlyListAccept ? 'metadata' : 'full'

export function queryOf(
  query: Readonly<Record<string, string | number | boolean | undefined>> = {},
): SimRequest['query'] {
  const texts: Record<string, string> = {}
  for (const [key, value] of Object.entries(query)) if (value !== undefined) texts[key] = String(value)
  return texts
}

const knownParameters = new Set([
  'labelSelector',
  'fieldSelector',
  'resourceVersion',
  'limit',
  'continue',
  'watch',
  'allowWatchBookmarks',
  'timeoutSeconds',
  'dryRun',
])

/** Throws for what is not simulated, before anything relies on it. */
export function routedRequest(request: SimRequest): RoutedRequest {
  for (const parameter of Object.keys(request.query))
    if (!knownParameters.has(parameter)) throw new Error(`the simulated API server does not know ${parameter}`)
  const location = locate(request.path)
  return { ...request, location, verb: verbOf(request, location) }
}

function verbOf({ method, query }: SimRequest, location: Location | undefined): Verb {
  switch (method) {
    case 'GET':
      if (query['watch'] === '1' || query['watch'] === 'true') return 'watch'
      return location?.name === undefined ? 'list' : 'get'
    case 'POST':
      return 'create'
    case 'PUT':
      return 'update'
    case 'PATCH':
      return 'patch'
    case 'DELETE':
      return 'delete'
  }
}
