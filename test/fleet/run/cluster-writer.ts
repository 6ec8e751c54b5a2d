/** Requests of those who are not under test: an administrator, owners of pods, kubelets. They take no time. */
import { type Clock } from '../../../src/schemas/clock.ts'
import { skyhooksPath } from '../../../src/schemas/api.ts'
import type { Answer } from '../api-server/refusals.ts'
import type { SimRequest } from '../api-server/request.ts'
import type { SimulatedApiServer } from '../api-server/server.ts'

export type ClusterWriter = {
  /** Sends it as soon as the API server is there; refusals other than of an overload are final. Then calls back. */
  send(method: SimRequest['method'], path: string, body?: unknown, onAnswered?: () => void): void
  patch(path: string, body: unknown): void
}

export const nodePath = (name: string): string => `/api/v1/nodes/${name}`
export const skyhookPath = (name: string): string => `${skyhooksPath}/${name}`

const retryMs = 500
const merge = 'application/merge-patch+json'

export function createClusterWriter(
  server: SimulatedApiServer,
  {
    clock,
    client,
    isCut = () => false,
  }: { readonly clock: Clock; readonly client: string; readonly isCut?: () => boolean },
): ClusterWriter {
  const keepTrying = (request: SimRequest, onAnswered?: () => void): void => {
    const answer: Answer | undefined = server.isAway() || isCut() ? undefined : server.handle(request)
    if (answer !== undefined && answer.code < 429) return onAnswered?.()
    clock.startTimer(retryMs, () => keepTrying(request, onAnswered), { isBackground: true })
  }
  const base = { client, manager: client, query: {} }
  return {
    send: (method, path, body, onAnswered) => keepTrying({ ...base, method, path, body }, onAnswered),
    patch: (path, body) => keepTrying({ ...base, method: 'PATCH', path, body, contentType: merge }),
  }
}
