/** Requests of those who are not under test: an administrator, owners of pods, kubelets. They take no time. */
import { type Clock } from '../../../src/schemas/clock.ts'
import { skyhooksPath } from '../../../src/schemas/api.ts'
import type { Answer } from '../api-server/refusals.ts'
import type { SimRequest } from '../api-server/request.ts'
import type { SimulatedApiServer } from '../api-server/server.ts'

export type ClusterWriter = {
  /**
   * Sends it as soon as the API server is there and has answered all that was sent before. Refusals other than of an
   * overload are final. Then calls back.
   */
  send(method: SimRequest['method'], path: string, body?: unknown, onAnswered?: () => void): void
  patch(path: string, body: unknown): void
}

type Waiting = { readonly request: SimRequest; readonly onAnswered?: (() => void) | undefined }

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
  const queue: Waiting[] = []
  let isBusy = false

  /** The first one again and again, and no other one before it: a later state is not to be overwritten by an earlier. */
  function sendAll(): void {
    isBusy = true
    for (let [first] = queue; first !== undefined; [first] = queue) {
      const answer: Answer | undefined = server.isAway() || isCut() ? undefined : server.handle(first.request)
      if (answer === undefined || answer.code >= 429)
        return void clock.startTimer(retryMs, sendAll, { isBackground: true })
      queue.shift()
      first.onAnswered?.()
    }
    isBusy = false
  }

  function add(one: Waiting): void {
    queue.push(one)
    if (!isBusy) sendAll()
  }

  const base = { client, manager: client, query: {} }
  return {
    send: (method, path, body, onAnswered) => add({ request: { ...base, method, path, body }, onAnswered }),
    patch: (path, body) => add({ request: { ...base, method: 'PATCH', path, body, contentType: merge } }),
  }
}
