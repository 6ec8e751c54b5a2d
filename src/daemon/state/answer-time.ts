import type { KubeTransport } from '../../kube/transport.ts'
import type { Clock } from '../../schemas/clock.ts'

/** How long the API server currently takes for this agent's writes. */
export type AnswerTime = {
  /** The transport whose writes are measured. */
  readonly transport: KubeTransport
  /** The longest time of the last half minute in ms, including the age of unanswered writes. 0 without writes. */
  currentMs(): number
}

/** One fast answer among slow ones does not mean that the next one is fast. An old answer means nothing. */
const lastsMs = 30_000

export function measureAnswers(transport: KubeTransport, clock: Pick<Clock, 'monotonicMs'>): AnswerTime {
  /** Unanswered writes, the oldest first. */
  const pending = new Set<{ readonly sentAtMs: number }>()
  let answered: readonly { readonly atMs: number; readonly tookMs: number }[] = []

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
          answered = [...recent(answered, atMs), { atMs, tookMs: atMs - write.sentAtMs }]
        }
      },
    },
    currentMs() {
      const nowMs = clock.monotonicMs()
      const [oldest] = pending
      answered = recent(answered, nowMs)
      return Math.max(oldest ? nowMs - oldest.sentAtMs : 0, ...answered.map(({ tookMs }) => tookMs))
    },
  }
}

const recent = <T extends { readonly atMs: number }>(answers: readonly T[], nowMs: number): readonly T[] =>
  answers.filter(({ atMs }) => nowMs - atMs < lastsMs)
