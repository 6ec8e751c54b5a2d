import type { RoutedRequest, SimRequest, Verb } from './request.ts'

export type AuditEntry = {
  /** Wall clock. */
  readonly atMs: number
  readonly client: string
  readonly verb: Verb
  /** `nodes/status`, or the path where the server does not serve it. */
  readonly resource: string
  readonly namespace: string
  readonly name: string
  readonly query: SimRequest['query']
  readonly code: number
  readonly isCommitted: boolean
}

export function auditEntry(request: RoutedRequest, atMs: number, code: number, isCommitted: boolean): AuditEntry {
  const { client, verb, location, path, query } = request
  const { namespace = '', name = '', subresource } = location ?? {}
  const suffix = subresource === undefined ? '' : `/${subresource}`
  const resource = location === undefined ? path : `${location.resource.plural}${suffix}`
  return { atMs, client, verb, resource, namespace, name, query, code, isCommitted }
}
