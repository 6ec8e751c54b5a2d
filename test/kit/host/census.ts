/** The census of one agent, in this process instead of a child. */
import { runCensus } from '../../../src/census/census.ts'
import { readCensusSettings } from '../../../src/census/model/messages.ts'
import type { CensusProcess } from '../../../src/daemon/platform/census-process.ts'
import type { CompletedRequest, KubeTransport } from '../../../src/kube/transport.ts'
import type { Clock, Random } from '../../../src/schemas/clock.ts'
import type { AgentProcess } from './agent-process.ts'

/**
 * Counts as the real one, and ends with `process`. `connectApi` is a connection of its own, closed at the end.
 */
export function startSimulatedCensus(
  process: AgentProcess,
  ports: {
    readonly random: Random
    readonly connectApi: (onRequest: (request: CompletedRequest) => void) => KubeTransport
  },
): CensusProcess {
  const clock: Clock = process.clock
  const stopping = new AbortController()
  const exited = Promise.withResolvers<string>()
  const lines = createLines()
  process.onEnd(() => stopping.abort(new Error('it was killed'))) // frees what its signals hold
  const end = (how: string): void => {
    process.kill()
    lines.end()
    exited.resolve(how)
  }
  return {
    pid: process.id,
    output: lines,
    exited: exited.promise,
    send(line) {
      const context = {
        clock,
        random: ports.random,
        connectApi: ports.connectApi,
        emit: (one: object) => lines.push(`${JSON.stringify(one)}\n`),
      }
      runCensus(readCensusSettings(line), context, stopping.signal).then(
        () => end('it ended with code 0'),
        () => end('it ended with code 1'),
      )
    },
    closeInput() {
      if (!process.isHung()) stopping.abort(new Error('the agent has exited'))
    },
    kill: () => end('it was ended by SIGKILL'),
  }
}

/** What one side writes, for one reader on the other. */
function createLines(): AsyncIterable<Uint8Array> & { push(text: string): void; end(): void } {
  const waiting: Uint8Array[] = []
  let isOver = false
  let wake = (): void => undefined
  return {
    push(text) {
      waiting.push(Buffer.from(text))
      wake()
    },
    end() {
      isOver = true
      wake()
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const next = waiting.shift()
        if (next !== undefined) yield next
        else if (isOver) return
        else await new Promise<void>((resolve) => (wake = resolve))
      }
    },
  }
}
