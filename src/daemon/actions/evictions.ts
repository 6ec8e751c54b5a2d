import { evict } from '../../kube/evict.ts'
import type { Transport } from '../../kube/transport.ts'
import type { Pod } from '../../stages/pods.ts'
import { errorField } from '../log.ts'
import type { Log } from '../log.ts'
import type { State } from '../state.ts'

/** A refused eviction is tried again after this, give or take a quarter, unless the server says when. */
const retryMs = 5_000
const unknownRetryMs = 2_000

/** Asks for one eviction and keeps the answer for the next decision. */
export async function evictPod(transport: Transport, state: State, { metadata }: Pod, log: Log, signal: AbortSignal): Promise<void> {
  const { namespace, name, uid } = metadata
  const before = state.evictions.get(uid)
  const answer = await evict(transport, { namespace, name, uid }, signal)
  const nowMs = Date.now()
  const blocked = (message: string, afterMs: number): void => {
    const sinceMs = before?.state === 'blocked' ? before.sinceMs : nowMs
    state.evictions.set(uid, { state: 'blocked', message, sinceMs, retryAtMs: nowMs + afterMs })
  }
  switch (answer.outcome) {
    case 'asked':
    case 'gone':
      state.evictions.set(uid, { state: 'asked' })
      return log.info({ pod: `${namespace}/${name}` }, 'pod evicted')
    case 'blocked':
      return blocked(answer.message, answer.retryAfterMs ?? retryMs * (0.75 + Math.random() / 2))
    case 'unknown':
      return blocked(`the API server did not answer: ${errorField(answer.error).error}`, unknownRetryMs)
  }
}
