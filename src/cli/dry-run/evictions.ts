/** Asks the API server whether pods of nodes that would be drained could be evicted. */
import { ApiError } from '../../kube/errors.ts'
import { evict } from '../../kube/evict.ts'
import type { KubeTransport } from '../../kube/transport.ts'
import { messageOf } from '../../schemas/json.ts'
import type { Pod } from '../../stages/model/pods.ts'
import type { EvictionAnswer } from '../plan/drained-pods.ts'

/** Each pod needs two requests. More pods add little information. */
const maxAsked = 500
const concurrency = 4

/**
 * Asks for each pod whether it could be evicted now, without evicting it. Each answer assumes that no other pod is
 * evicted. Returns answers by uid; only the first 500 pods have one.
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
    // refusals of budgets are reliable; the answer of a webhook to a dry run may differ from its later answer
    return { answer: result.by === 'budget' ? 'refused' : 'unknown', message: result.message }
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return { answer: 'unknown', message: messageOf(error) }
  }
}
