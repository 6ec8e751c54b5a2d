import { hostSockets } from '../../host/dbus/connection.ts'
import { type BusConnection, createBusConnection } from '../../host/dbus/reconnecting.ts'
import { failpoint } from '../../host/fs/failpoint.ts'
import { createHostRoot, type HostRoot } from '../../host/fs/host-root.ts'
import { sweepPluginFiles } from '../../host/kubelet/run-plugin.ts'
import { claimSingleAgent, type SingleAgentClaim } from '../../host/single-agent.ts'
import { type CompletedRequest, createKubeTransport, type KubeTransport } from '../../kube/transport.ts'
import { type ImageStore, openImageStore } from '../../packages/store/image-store.ts'
import { unpackInChild } from '../../packages/store/unpack-child.ts'
import type { Clock, Random } from '../../schemas/clock.ts'
import { version } from '../../schemas/version.ts'
import type { ProviderSettings, Settings } from '../settings/settings.ts'
import {
  type HealthChecks,
  type ListenOptions,
  type MetricsRegistry,
  serveHealth,
  serveMetrics,
} from '../telemetry/http.ts'
import { createLog, type Log } from '../telemetry/log.ts'
import { type CensusProcess, startCensusProcess } from './census-process.ts'
import { createHostCredentialProviders } from './credential-providers.ts'
import { disableTurboFan, startHeapTrim } from './heap-trim.ts'
import { podCredentials } from './service-account.ts'
import { systemClock, systemRandom } from './system-clock.ts'

/**
 * Everything that an agent needs from outside: time, random numbers, its host, the API server, other processes. An
 * agent gets the platform once, passes on its parts, and uses nothing else, so that many agents can run in one process.
 */
export type Platform = {
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  /** Id of the agent's process, for the log. */
  readonly processId: number
  /** Files of the host. */
  readonly root: HostRoot
  /** The system bus of the host, or systemd itself. Connects at the first use and stays connected until it is closed. */
  connectBus(): BusConnection
  /** The API server. `onRequest` is called after each finished exchange. */
  connectApi(onRequest: (request: CompletedRequest) => void): KubeTransport
  /** The packages below a folder of the host, fetched from registries. */
  openImageStore(folder: string): ImageStore
  /** A child process that counts for the cluster. */
  startCensus(): CensusProcess
  /** Resolves when this agent is the only one of its host; rejects when the signal aborts. */
  claimHost(options: {
    readonly description: string
    readonly onWaiting: (holder: string) => void
    readonly signal: AbortSignal
  }): Promise<SingleAgentClaim>
  /** Answers the kubelet's probes. Returns a function that stops it. */
  serveHealth(checks: HealthChecks, events: ListenEvents): () => void
  /** Answers Prometheus. Returns a function that stops it. */
  serveMetrics(registry: MetricsRegistry, events: ListenEvents): () => void
  /** Calls `stop` with the signal's name when the process receives a signal to terminate. */
  onTermination(stop: (signalName: string) => void): void
  /** Called after all code is loaded, with effect until the signal aborts. */
  saveMemory(signal: AbortSignal): void
}

/** Whether a server can listen. */
export type ListenEvents = Pick<ListenOptions, 'onError' | 'onRecovered'>

/** The machine of this process: the only place where parts of an agent use the real system. */
export function systemPlatform(settings: Settings, providerSettings: ProviderSettings): Platform {
  const root = createHostRoot(settings.hostRoot, systemRandom)
  const connectBus = (): BusConnection =>
    createBusConnection({ clock: systemClock, random: systemRandom, sockets: hostSockets(settings.hostRoot) })
  const loginProvider = createHostCredentialProviders(providerSettings, {
    root,
    connectBus,
    clock: systemClock,
    random: systemRandom,
  })
  return {
    clock: systemClock,
    random: systemRandom,
    log: createLog(settings.logLevel, { node: settings.nodeName }),
    processId: process.pid,
    root,
    connectBus,
    connectApi: (onRequest) =>
      withFailpoints(createKubeTransport({ credentials: podCredentials(), version, clock: systemClock, onRequest })),
    openImageStore: (folder) =>
      openImageStore(folder, {
        root,
        clock: systemClock,
        random: systemRandom,
        loginProvider,
        unpack: (job, signal) => unpackInChild(job, { signal }),
      }),
    startCensus: () => startCensusProcess(),
    async claimHost(options) {
      const claim = await claimSingleAgent({ root, clock: systemClock, random: systemRandom, ...options })
      await sweepPluginFiles(root).catch(() => undefined) // only root can read what remains
      return claim
    },
    serveHealth: (checks, events) => serveHealth(checks, { ...settings.health, clock: systemClock, ...events }).close,
    serveMetrics: (registry, events) =>
      serveMetrics(registry, {
        host: settings.fieldValues.hostIp,
        port: settings.metrics.port,
        clock: systemClock,
        ...events,
      }).close,
    onTermination(stop) {
      for (const name of ['SIGTERM', 'SIGINT'] as const) process.once(name, () => stop(name))
    },
    saveMemory(signal) {
      disableTurboFan()
      startHeapTrim(signal)
    },
  }
}

/** Passes a failpoint, named by verb and resource, after each acknowledged write except Events. */
export function withFailpoints(transport: KubeTransport): KubeTransport {
  return {
    ...transport,
    async json(method, path, options) {
      const answer = await transport.json(method, path, options)
      const resource = resourceOf(path)
      if (method !== 'GET' && resource !== 'events') failpoint(`api:${method}-${resource}`)
      return answer as never
    },
  }
}

/** `nodes/status` for `/api/v1/nodes/n/status`, `leases` for `/apis/…/namespaces/x/leases/y`. */
function resourceOf(path: string): string {
  const parts = path.split('/').filter((part) => part !== '')
  const start = parts[0] === 'api' ? 2 : 3
  const rest = parts[start] === 'namespaces' && parts.length > start + 2 ? parts.slice(start + 2) : parts.slice(start)
  const [resource = '', , subresource] = rest
  return subresource === undefined ? resource : `${resource}/${subresource}`
}
