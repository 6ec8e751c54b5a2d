/** Pods of nodes that would be drained, and what the API server says of their evictions. */
import { ApiError } from '../../kube/errors.ts'
import { evict } from '../../kube/evict.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { messageOf } from '../../schemas/json.ts'
import type { Pod } from '../../stages/model/pods.ts'
import type { EvictionAnswer } from '../plan/drained-pods.ts'

/** Each asks the API server twice; more than that many say little more. */
const maxAsked = 500
const concurrency = 4

/**
 * Asks for each pod whether it could be evicted now; nobody is evicted. Each pod is judged as if it were the only one.
 * Returns answers by uid; pods beyond the first 500 have none.
 */
export async function askEvictions(
  transport: KubeTransport,
  pods: readonly Pod[],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, EvictionAnswer>> {
  const answers = new Map<string, EvictionAnswer>()
  const waiting = pods.slice(0, maxAsked).values()
  const work = async (): Promise<void> => {
    for (const { metadata } of waiting) {
      const { uid, namespace, name } = metadata
      answers.set(uid, await askEviction(transport, { namespace, name, uid }, signal))
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work))
  return answers
}

async function askEviction(
  transport: KubeTransport,
  pod: { readonly namespace: string; readonly name: string; readonly uid: string },
  signal: AbortSignal,
): Promise<EvictionAnswer> {
  try {
    const result = await evict(transport, pod, signal, true)
    if (result.outcome !== 'blocked') return { answer: 'granted' }
    // refusals are counted by budget; what a webhook says about a dry run need not be what it says later
    return { answer: result.by === 'budget' ? 'refused' : 'unknown', message: result.message }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { answer: 'unknown', message: messageOf(error) }
  }
}
