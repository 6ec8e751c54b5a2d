import { isNotFound } from '../../kube/errors.ts'
import { evict } from '../../kube/evict.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { errorField, type Log } from '../telemetry/log.ts'
import type { State } from '../state/state.ts'
import type { Pod } from '../../stages/model/pods.ts'

/**
 * A replacement that is about to be ready frees the budget within a second or two; a budget that stays used is not
 * retried more often than this.
 */
const initialRetryMs = 1_000
const maxRetryMs = 5_000
const unknownRetryMs = 2_000

/**
 * How long to wait after a refusal where the server does not say: as long as refused already, from 1 s to 5 s, give or
 * take a quarter by `random` (0 to 1).
 * /
 */
export const evictionRetryMs = (refusedForMs: number, random: number): number =>
  Math.min(maxRetryMs, Math.max(initialRetryMs, refusedForMs)) * (0.75 + random / 2)

export type EvictionPorts = {
  readonly transport: KubeTransport
  readonly state: State
  readonly log: Log
  readonly signal: AbortSignal
  /** The chart gave the agents the right to delete pods of their own node (value drain.allowDelete). */
  readonly mayDelete: boolean
}

/**
 * Asks for one eviction and keeps the answer for the next decision. Forced (spec.drain.onTimeout: delete, past its
 * deadline) the pod is deleted without asking the disruption budgets, in its own grace period.
 */
export async function evictPod(ports: EvictionPorts, { metadata }: Pod, isForced: boolean): Promise<void> {
  const { transport, state, log, signal, mayDelete } = ports
  const { namespace, name, uid } = metadata
  const previous = state.evictions.get(uid)
  const blocked = (message: string, afterMs: number): void => {
    const nowMs = Date.now()
    state.evictions.set(uid, {
      state: 'blocked',
      message,
      sinceMs: previous?.state === 'blocked' ? previous.sinceMs : nowMs,
      retryAtMs: nowMs + afterMs,
    })
  }
  if (isForced && mayDelete) {
    await deletePod(transport, metadata, signal)
    state.evictions.set(uid, { state: 'requested' })
    return log.warn({ pod: `${namespace}/${name}` }, 'pod deleted after the deadline of spec.drain')
  }
  const result = await evict(transport, { namespace, name, uid }, signal)
  const refusedForMs = previous?.state === 'blocked' ? Date.now() - previous.sinceMs : 0
  switch (result.outcome) {
    case 'requested':
    case 'gone':
      state.evictions.set(uid, { state: 'requested' })
      return log.info({ pod: `${namespace}/${name}` }, 'pod evicted')
    case 'blocked':
      return blocked(
        isForced ? `${result.message}; onTimeout: delete needs the chart value drain.allowDelete` : result.message,
        result.retryAfterMs ?? evictionRetryMs(refusedForMs, Math.random()),
      )
    case 'unknown':
      return blocked(`the API server did not answer: ${errorField(result.error).error}`, unknownRetryMs)
  }
}

async function deletePod(
  transport: KubeTransport,
  { namespace, name, uid }: Pod['metadata'],
  signal: AbortSignal,
): Promise<void> {
  try {
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } }
    await transport.json(
      'DELETE',
      `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${encodeURIComponent(name)}`,
      { body, signal },
    )
  } catch (error) {
    if (!isNotFound(error)) throw error
  }
}
