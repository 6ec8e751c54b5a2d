/** The way of one host's processes to the API server. It can be cut, and it notices a client that does not pause. */
import type { KubeTransport } from '../../../src/kube/transport.ts'
import type { Clock } from '../../../src/schemas/clock.ts'
import { createClient, type SimClient } from '../api-server/client.ts'
import type { SimulatedApiServer } from '../api-server/server.ts'
import type { ConnectApi } from '../host/agent.ts'

export type HostNetwork = {
  readonly connect: ConnectApi
  readonly connectKubelet: () => KubeTransport
  cut(): void
  heal(how: 'resume' | 'reset'): void
  readonly isCut: () => boolean
}

/** As the agent's own transport. */
const rate = { perSecond: 50, burst: 200 }

/** So many calls without a moment between them are a loop that would never end. */
const maxCallsPerInstant = 2_000

export function createHostNetwork(
  host: string,
  server: SimulatedApiServer,
  {
    clock,
    createRandom,
    onEndlessLoop,
  }: {
    readonly clock: Clock
    readonly createRandom: () => Parameters<typeof createClient>[1]['random']
    readonly onEndlessLoop: (call: string) => void
  },
): HostNetwork {
  const clients = new Set<SimClient>()
  let isCut = false

  const open = (options: Parameters<typeof createClient>[1]): KubeTransport => {
    const client = createClient(server, {
      latencyMs: (random) => 2 + Math.floor(8 * random.number() ** 3) * (random.number() < 0.02 ? 50 : 1),
      ...options,
    })
    clients.add(client)
    if (isCut) client.cut()
    return {
      ...client,
      close() {
        clients.delete(client)
        client.close()
      },
    }
  }

  return {
    connect({ clock: ownClock, random, onRequest, isCensus }) {
      const transport = open({
        name: `${isCensus ? 'census' : 'agent'}:${host}`,
        clock: ownClock,
        random,
        onRequest,
        rate,
      })
      let [calls, atMs] = [0, 0]
      const isEndless = (call: string): boolean => {
        const nowMs = clock.monotonicMs()
        calls = nowMs === atMs ? calls + 1 : 0
        atMs = nowMs
        if (calls === maxCallsPerInstant) onEndlessLoop(call)
        return calls >= maxCallsPerInstant
      }
      return {
        ...transport,
        json: (method, path, options) =>
          isEndless(`${method} ${path}`) ? new Promise(() => undefined) : transport.json(method, path, options),
        stream: (path, options) =>
          isEndless(`stream ${path}`) ? new Promise(() => undefined) : transport.stream(path, options),
      }
    },
    connectKubelet: () => open({ name: `kubelet:${host}`, manager: 'kubelet', clock, random: createRandom() }),
    cut() {
      isCut = true
      for (const client of clients) client.cut()
    },
    heal(how) {
      isCut = false
      for (const client of clients) client.heal(how)
    },
    isCut: () => isCut,
  }
}
