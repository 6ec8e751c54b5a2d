/** One simulated host with its agent and a simulated API server, for tests. */
import type { CompletedRequest } from '../../../src/kube/transport.ts'
import { reasonKey, statusKey } from '../../../src/schemas/annotations.ts'
import { skyhookTypeMeta } from '../../../src/schemas/api.ts'
import { agentFolder, journalPath } from '../../../src/host/fs/journal-file.ts'
import type { KubernetesNode } from '../../../src/schemas/kubernetes.ts'
import type { Interrupt, PackageSpec } from '../../../src/schemas/skyhook.ts'
import type { Settings } from '../../../src/daemon/settings/settings.ts'
import { settingsOf } from '../objects/sample-settings.ts'
import { createSeededRandom, createVirtualClock } from '../virtual-clock.ts'
import { createClient } from '../api-server/client.ts'
import { createSimulatedApiServer } from '../api-server/server.ts'
import { type AgentOptions, type LogLine, type SimulatedAgent, startSimulatedAgent } from './agent.ts'
import { startKubelet } from './kubelet.ts'
import type { HostEvent } from './observer.ts'
import { packageImage } from './package-image.ts'
import { createSimulatedHost, type HostOptions } from './simulated-host.ts'

export const packageSpec = (name: string, interrupt?: Interrupt, version = '1.0.0'): PackageSpec => ({
  version,
  image: `registry.test/${name}`,
  uninstall: { enabled: true },
  ...(interrupt && { interrupt }),
})

export type SampleLife = Awaited<ReturnType<typeof startSampleLife>>

/** Starts the host, and an agent on it whenever it is up and has none. */
export async function startSampleLife(
  options: Partial<HostOptions> & {
    readonly seed: number
    /** Other than the chart's defaults. */
    readonly settings?: Partial<Settings>
    /** False: there is no agent until `setKept`. */
    readonly isKept?: boolean
    readonly run?: AgentOptions['run']
  },
) {
  const { seed, settings = {}, run } = options
  const clock = createVirtualClock(1_700_000_000_000, { settleTurns: 0 })
  const server = createSimulatedApiServer({ clock, random: createSeededRandom(seed) })
  const admin = createClient(server, { name: 'admin', clock, random: createSeededRandom(seed + 1) })
  const host = createSimulatedHost({
    name: 'n1',
    clock,
    registry: ({ repository, tag = '' }) => packageImage(repository, tag),
    runStep: () => ({ durationMs: 1_000 }),
    ...options,
  })
  const events: HostEvent[] = []
  const lines: LogLine[] = []
  const requests: CompletedRequest[] = []
  host.observe((event) => void events.push(event))
  await admin.json('POST', '/api/v1/namespaces', { body: { metadata: { name: 'skyhook' } } })
  startKubelet(host, {
    clock,
    transport: createClient(server, { name: 'kubelet', clock, random: createSeededRandom(seed + 2) }),
    nodeName: 'n1',
    labels: { pool: 'x' },
  })

  let agent: SimulatedAgent | undefined
  const start = (): SimulatedAgent =>
    startSimulatedAgent(host, {
      settings: { ...settingsOf('n1', '/'), ...settings },
      connectApi: ({ clock, random, onRequest }) =>
        createClient(server, {
          name: 'agent',
          clock,
          random,
          onRequest(request) {
            onRequest(request)
            requests.push(request)
          },
        }),
      onLog: (line) => void lines.push(line),
      ...(run && { run }),
    })
  let failure: unknown
  let { isKept = true } = options
  const keepRunning = (): void => {
    if (isKept && host.power() === 'up' && agent?.process.isAlive() !== true) {
      agent = start()
      agent.ended.catch((error: unknown) => (failure = error))
    }
    clock.startTimer(500, keepRunning)
  }
  keepRunning()

  const annotation = (key: string): string | undefined =>
    (server.objects('nodes')[0]?.metadata as { annotations?: Record<string, string> } | undefined)?.annotations?.[key]

  return {
    clock,
    server,
    admin,
    host,
    events,
    lines,
    requests,
    agent: () => agent,
    /** Beside the one that is there. */
    startAnother: start,
    /** Whether a dead agent is started again. */
    setKept: (next: boolean) => void (isKept = next),
    status: () => annotation(statusKey('s')),
    reason: () => annotation(reasonKey('s')),
    node: () => server.objects('nodes')[0] as KubernetesNode | undefined,
    /** `apply 1.0.0`, in the order in which they were started on the host. */
    steps: () => events.flatMap((one) => (one.event === 'stepStarted' ? [`${one.step.package} ${one.step.mode}`] : [])),
    journal: () => host.disk.read(host.disk.locate(journalPath)).toString(),
    files: () => host.disk.list(host.disk.locate(agentFolder)).map(([name]) => name),
    async apply(packages: Readonly<Record<string, PackageSpec>>) {
      const spec = {
        nodeSelectors: { matchLabels: { pool: 'x' } },
        interruptionBudget: { count: 1 },
        packages,
      }
      const path = `/apis/${skyhookTypeMeta.apiVersion}/skyhooks`
      if (server.objects('skyhooks').length === 0)
        await admin.json('POST', path, { body: { ...skyhookTypeMeta, metadata: { name: 's' }, spec } })
      else
        await admin.json('PATCH', `${path}/s`, {
          contentType: 'application/merge-patch+json',
          body: { spec: { packages } },
        })
    },
    /** Lets virtual time pass until the condition holds; throws with the last log lines when it does not. */
    async until(isReached: () => boolean, withinMs = 600_000) {
      const startMs = clock.monotonicMs()
      while (!isReached()) {
        if (failure) throw failure as Error
        if (clock.monotonicMs() - startMs > withinMs)
          throw new Error(
            `not reached in ${withinMs} ms:\n${lines
              .slice(-20)
              .map((one) => JSON.stringify(one))
              .join('\n')}`,
          )
        await clock.advance(50)
      }
      return clock.monotonicMs() - startMs
    },
  }
}
