/** One agent on a simulated host: its platform, and the whole program of src/daemon on it. */
import { runAgent } from '../../../src/daemon/agent.ts'
import type { Platform } from '../../../src/daemon/platform/platform.ts'
import type { Settings } from '../../../src/daemon/settings/settings.ts'
import type { HealthChecks, MetricsRegistry } from '../../../src/daemon/telemetry/http.ts'
import { createBusConnection } from '../../../src/host/dbus/reconnecting.ts'
import type { HostRoot } from '../../../src/host/fs/host-root.ts'
import type { CompletedRequest, KubeTransport } from '../../../src/kube/transport.ts'
import { type Clock, type Random, sleep } from '../../../src/schemas/clock.ts'
import { type AgentProcess, mortal } from './agent-process.ts'
import { startSimulatedCensus } from './census.ts'
import { openSimulatedStore } from './images.ts'
import type { SimulatedHost } from './simulated-host.ts'
import { createSimulatedRoot } from './simulated-root.ts'

export type LogLine = {
  readonly atMs: number
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
  readonly fields: object
}

/** How a process gets to the API server. It is closed when the process ends. */
export type ConnectApi = (client: {
  readonly clock: Clock
  readonly random: Random
  readonly onRequest: (request: CompletedRequest) => void
  /** The connection is the census's. */
  readonly isCensus: boolean
}) => KubeTransport

export type AgentOptions = {
  readonly settings: Settings
  readonly connectApi: ConnectApi
  readonly onLog?: (line: LogLine) => void
  /** What stands between the agent and the files of its host. */
  readonly aroundRoot?: (root: HostRoot) => HostRoot
  /** What `runAgent` is, for agents of another version. */
  readonly run?: typeof runAgent
}

export type SimulatedAgent = {
  readonly process: AgentProcess
  /** SIGKILL: nothing of it acts from here on. */
  kill(): void
  /** SIGTERM. */
  terminate(): void
  /** Resolves with its exit code, or `killed`, and rejects with what it died of. */
  readonly ended: Promise<number | 'killed'>
  /** Undefined while it serves none. */
  health(): HealthChecks | undefined
  /** As Prometheus gets them; undefined while it serves none. */
  metrics(): Promise<string> | undefined
}

/** After so many effects in one instant each takes a ms: time passes in a loop, too, and a test can count its rounds. */
const maxCrowd = 500

/** Starts an agent on the host, beside those that are there. */
export function startSimulatedAgent(host: SimulatedHost, options: AgentOptions): SimulatedAgent {
  const { settings, run = runAgent } = options
  const process = host.startProcess('agent')
  const ended = Promise.withResolvers<number | 'killed'>()
  process.onEnd(() => ended.resolve('killed')) // without effect after the exit
  const surroundings = platformOf(host, process, options)
  run(settings, surroundings.platform)
    .then(ended.resolve, ended.reject)
    .finally(() => process.kill())
  return {
    process,
    kill: () => process.kill(),
    terminate: () => surroundings.terminate(),
    ended: ended.promise,
    health: surroundings.health,
    metrics: surroundings.metrics,
  }
}

function platformOf(host: SimulatedHost, process: AgentProcess, options: AgentOptions) {
  const { connectApi, onLog, aroundRoot = (root) => root } = options
  const { disk, bus, claims, registry, fetchFate } = host
  const { clock } = process
  const random = host.fork()
  let stop: (signalName: string) => void = () => undefined
  let health: HealthChecks | undefined
  let served: MetricsRegistry | undefined
  let crowd = 0
  let crowdAtMs = 0
  // Node holds composite signals until they abort, and with them all that a dead agent has left behind
  process.onEnd(() => stop('SIGKILL'))

  /** An effect has happened; whoever listens may kill the process right there. */
  const passed = async (name: string): Promise<void> => {
    host.tell({ event: 'effect', process: process.id, name })
    if (!process.isAlive()) await new Promise(() => undefined)
    const nowMs = clock.monotonicMs()
    crowd = nowMs === crowdAtMs ? crowd + 1 : 0
    crowdAtMs = nowMs
    if (crowd >= maxCrowd) await sleep(clock, 1)
  }

  const connect = (owner: AgentProcess, isCensus: boolean, onRequest: (request: CompletedRequest) => void) => {
    const transport = connectApi({ clock: owner.clock, random: host.fork(), onRequest, isCensus })
    owner.onEnd(() => transport.close())
    return mortal(owner, { ...transport, json: withEffects(transport, passed) })
  }

  const startCensus: Platform['startCensus'] = () => {
    const child = host.startProcess('census')
    process.onEnd(() => child.kill())
    return startSimulatedCensus(child, {
      random: host.fork(),
      connectApi: (onRequest) => connect(child, true, onRequest),
    })
  }

  const logAt =
    (level: LogLine['level']) =>
    (fields: object, message: string): void => {
      if (process.isAlive()) onLog?.({ atMs: clock.wallMs(), level, message, fields })
    }

  const platform: Platform = {
    clock,
    random,
    log: { debug: logAt('debug'), info: logAt('info'), warn: logAt('warn'), error: logAt('error') },
    processId: process.id,
    root: mortal(process, aroundRoot(createSimulatedRoot({ disk, random, passed }))),
    connectBus: () =>
      createBusConnection({
        clock,
        random,
        sockets: { bus: host.name, systemd: '' },
        connect: async () => mortal(process, bus.connect(process, passed)),
      }),
    connectApi: (onRequest) => connect(process, false, onRequest),
    openImageStore: (folder) =>
      mortal(
        process,
        openSimulatedStore(folder, {
          disk,
          clock,
          registry,
          fetchFate,
          onStored: (digest) => host.tell({ event: 'imageStored', digest }),
        }),
      ),
    startCensus,
    claimHost: (request) => process.whileAlive(claims.claim(process, request)),
    serveHealth(checks) {
      health = checks
      return () => (health = undefined)
    },
    serveMetrics(metrics) {
      served = metrics
      return () => (served = undefined)
    },
    onTermination: (callback) => (stop = callback),
    saveMemory: () => undefined,
  }
  return {
    platform,
    terminate: () => process.isAlive() && stop('SIGTERM'),
    health: () => (process.isAlive() ? health : undefined),
    metrics: () => (process.isAlive() ? served?.metrics() : undefined),
  }
}

/** The same requests, each acknowledged write of which is an effect. */
function withEffects(transport: KubeTransport, passed: (name: string) => Promise<void>): KubeTransport['json'] {
  return async (method, path, options) => {
    const answer = await transport.json(method, path, options)
    if (method !== 'GET') await passed(`api:${method} ${path}`)
    return answer as never
  }
}
