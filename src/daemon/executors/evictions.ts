import { isNotFound } from '../../kube/errors.ts'
import { evict } from '../../kube/evict.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import type { Clock, Random } from '../../schemas/clock.ts'
import { ownerKeyOf, toleratesCordon } from '../../stages/drain/pods.ts'
import type { Pod } from '../../stages/model/pods.ts'
import type { EvictedOwner, Eviction } from '../../stages/model/snapshot.ts'
import { retain } from '../state/retain.ts'
import type { Log } from '../telemetry/log.ts'
import type { EvictionResult } from '../telemetry/metrics.ts'

/**
 * A replacement that is about to be ready frees the budget within a second or two; a budget that stays used is not
 * retried more often than this.
 */
const initialRetryMs = 1_000
const maxRetryMs = 4_000
/** Shared by all pods of a node: the first request gets what the budget frees. */
const maxRetryMsPerPod = 2_000

/**
 * The counters of a budget change all the time in a large rollout. Each change would be a write of the Node and an
 * Event. The shown message is at most this old.
 */
const messageLastsMs = 60_000
/** Replaces numbers that are words; numbers in names stay. */
const withoutCounters = (message: string): string => message.replaceAll(/ \d+\b/g, ' n')

/**
 * The pause after a refusal without a Retry-After. It is as long as the pod has been refused so far, but at least 1 s
 * and at most 2 s for each of the node's refused pods. The maximum is never below 4 s. `random` (0 to 1) adds up to a
 * half.
 */
export function evictionRetryMs(refusedForMs: number, refusedPods: number, random: number): number {
  const minMs = initialRetryMs * Math.max(1, refusedPods)
  const maxMs = Math.max(maxRetryMs, maxRetryMsPerPod * refusedPods)
  return Math.min(maxMs, Math.max(minMs, refusedForMs)) * (1 + random / 2)
}

/** More than a node has pods that tolerate its cordon. */
const maxOwners = 200

type Requested = Extract<Eviction, { state: 'requested' }>
type Blocked = Extract<Eviction, { state: 'blocked' }> & {
  /** When its message was formed, in ms by the steady clock. */
  readonly shownAtMs: number
}

export type Evictor = {
  /**
   * Requests one eviction and keeps the answer for the next decision. If forced (spec.drain.onTimeout: delete, after
   * its timeout), deletes the pod regardless of disruption budgets, with its own grace period.
   */
  evict(pod: Pod, isForced: boolean): Promise<void>
  /** By uid of the pod. */
  readonly current: () => ReadonlyMap<string, Eviction>
  /** By `ownerKeyOf`: owners whose pods were evicted and may return to the cordoned node. */
  readonly evictedOwners: () => ReadonlyMap<string, EvictedOwner>
  /** Called with the existing pods: forgets all others. */
  retain(uids: ReadonlySet<string>): void
}

export function createEvictor(options: {
  readonly transport: KubeTransport
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly signal: AbortSignal
  /** Agents may delete pods of their own node (chart value drain.allowDelete). */
  readonly mayDelete: boolean
  /** Called after the deletion of a pod, as namespace/name. */
  readonly onDeleted: (pod: string) => void
  /** Called after a request was answered or failed. */
  readonly onEnded: (result: EvictionResult) => void
}): Evictor {
  const { transport, clock, random, log, signal, mayDelete, onDeleted, onEnded } = options
  const evictions = new Map<string, Requested | Blocked>()
  const evictedOwners = new Map<string, EvictedOwner>()
  let presentUids: ReadonlySet<string> = new Set()
  const now = (): number => clock.steadyMs()

  /** Records a request. Pods that exist at the first eviction of their owner are not pods that came back. */
  function recordRequested(pod: Pod): void {
    evictions.set(pod.metadata.uid, { state: 'requested' })
    if (!toleratesCordon(pod)) return
    const key = ownerKeyOf(pod)
    if (evictedOwners.get(key)?.uids.has(pod.metadata.uid)) return
    evictedOwners.delete(key) // keeps the oldest first
    evictedOwners.set(key, { atMs: now(), uids: new Set([...presentUids, pod.metadata.uid]) })
    for (const oldest of evictedOwners.keys()) if (evictedOwners.size > maxOwners) evictedOwners.delete(oldest)
  }

  const countBlocked = (): number => [...evictions.values()].filter(({ state }) => state === 'blocked').length

  function recordBlocked(uid: string, message: string, retryAfterMs: (refusedForMs: number) => number): void {
    const nowMs = now()
    const previous = evictions.get(uid)
    const sinceMs = previous?.state === 'blocked' ? previous.sinceMs : nowMs
    const isAlike = previous?.state === 'blocked' && withoutCounters(previous.message) === withoutCounters(message)
    const kept = isAlike && nowMs - previous.shownAtMs < messageLastsMs ? previous : undefined
    evictions.set(uid, {
      state: 'blocked',
      message: kept?.message ?? message,
      shownAtMs: kept?.shownAtMs ?? nowMs,
      sinceMs,
      retryAtMs: nowMs + retryAfterMs(nowMs - sinceMs),
    })
  }

  async function request(pod: Pod, isForced: boolean): Promise<EvictionResult> {
    const { metadata } = pod
    const { namespace, name, uid } = metadata
    const podName = `${namespace}/${name}`
    if (isForced && mayDelete) {
      await deletePod(transport, metadata, signal)
      recordRequested(pod)
      onDeleted(podName)
      return 'deleted'
    }
    const result = await evict(transport, { namespace, name, uid }, signal)
    switch (result.outcome) {
      case 'gone': // the watch shows it soon
        recordBlocked(uid, 'the API server no longer has it, but the watch still shows it', () => maxRetryMs)
        return 'gone'
      case 'requested':
        recordRequested(pod)
        log.info({ pod: podName }, 'pod evicted')
        return 'evicted'
      case 'blocked':
        recordBlocked(
          uid,
          isForced ? `${result.message}; onTimeout: delete needs the chart value drain.allowDelete` : result.message,
          (refusedForMs) => result.retryAfterMs ?? evictionRetryMs(refusedForMs, countBlocked(), random.number()),
        )
        return 'blocked'
    }
  }

  return {
    async evict(pod, isForced) {
      try {
        onEnded(await request(pod, isForced))
      } catch (error) {
        if (!signal.aborted) onEnded('failed')
        throw error
      }
    },
    current: () => evictions,
    evictedOwners: () => evictedOwners,
    retain(uids) {
      presentUids = uids
      retain(evictions, uids)
    },
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
