import type { KubeTransport } from '../../kube/transport.ts'
import type { Clock } from '../../schemas/clock.ts'

/** How long the API server takes for this agent's writes at the moment. */
export type AnswerTime = {
  /** The transport whose writes are measured. */
  readonly transport: KubeTransport
  /** In ms: the time of the last write, or so far of one that is not answered yet. 0 without one in the last minute. */
  currentMs(): number
}

/** Later, the last answer says nothing about the next one. */
const lastsMs = 60_000

export function measureAnswers(transport: KubeTransport, clock: Pick<Clock, 'monotonicMs'>): AnswerTime {
  /** When each write was sent that is not answered yet, the oldest first. */
  const pending = new Set<{ readonly sentAtMs: number }>()
  let last = { atMs: -Infinity, tookMs: 0 }

  return {
    transport: {
      ...transport,
      async json<T>(...request: Parameters<KubeTransport['json']>): Promise<T> {
        if (request[0] === 'GET') return await transport.json<T>(...request)
        const write = { sentAtMs: clock.monotonicMs() }
        pending.add(write)
        try {
          return await transport.json<T>(...request)
        } finally {
          pending.delete(write)
          const atMs = clock.monotonicMs()
          last = { atMs, tookMs: atMs - write.sentAtMs }
        }
      },
    },
    currentMs() {
      const nowMs = clock.monotonicMs()
      const [oldest] = pending
      return Math.max(oldest ? nowMs - oldest.sentAtMs : 0, nowMs - last.atMs < lastsMs ? last.tookMs : 0)
    },
  }
}
