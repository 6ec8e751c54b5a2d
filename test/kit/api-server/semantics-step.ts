/** The steps of the script of requests, and a server as the script reaches it. */

export type WireRequest = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With its query. */
  readonly path: string
  readonly body?: unknown
  readonly contentType?: string
  readonly accept?: string
}
export type WireAnswer = { readonly code: number; readonly retryAfter: string | undefined; readonly body: unknown }

/** A server as the script reaches it. */
export type Wire = {
  send(request: WireRequest): Promise<WireAnswer>
  /** The events of a watch until the server ends it. */
  watch(request: WireRequest): Promise<readonly unknown[]>
  /** Forgets all old versions and restarts the server. */
  compact(): Promise<void>
}

export type Step = Omit<WireRequest, 'method' | 'path'> & {
  readonly title: string
  /** `GET /api/v1/nodes`; texts may refer to saved answers: `{{lease.metadata.uid}}`. */
  readonly request: string
  /** The code, for refusals with the reason. A watch has the first letters of its events instead. */
  readonly expected: string
  readonly save?: string
}

/** The part of a query that all watches have: they end by themselves. */
export const watched = 'watch=1&timeoutSeconds=1'
export const ofName = (name: string): string => `fieldSelector=metadata.name%3D${name}`
