/** One host of a simulated fleet with all that is around it: kubelet, agents, network, the pod of its agent. */
import type { Budget } from '../../../src/schemas/budget.ts'
import type { Clock } from '../../../src/schemas/clock.ts'
import { perObject } from '../../../src/schemas/per-object.ts'
import type { SimulatedApiServer } from '../api-server/server.ts'
import { followTruth } from '../host/host-truth.ts'
import { type Kubelet, startKubelet } from '../host/kubelet.ts'
import type { FetchFate, SimulatedImage } from '../host/images.ts'
import type { HostEvent } from '../host/observer.ts'
import { journalPath } from '../../../src/host/fs/journal-file.ts'
import { createSimulatedHost, type SimulatedHost } from '../host/simulated-host.ts'
import { type AgentSupervisor, superviseAgents } from './agent-supervisor.ts'
import { startAgentPod } from './agent-pod.ts'
import { createBusyLoopDetector } from './busy-loop.ts'
import { createChance } from './chance.ts'
import { type Conditions, createConditions, type HostConditions } from './host-conditions.ts'
import { createHostNetwork, type HostNetwork } from './host-network.ts'
import { registry } from './package-images.ts'
import { isLastStep } from './last-step.ts'
import { startStaticPod } from './static-pod.ts'
import { type AgentVersion, journalVersionOf } from './journal-versions.ts'
import type { NodePlan } from './plan.ts'
import type { HostView } from './world-view.ts'
import type { Fact } from '../../promises/facts.ts'

export type FleetHost = Omit<HostView, 'isFaulty' | 'isHindered' | 'phase' | 'reachesApi'> & {
  readonly conditions: Conditions
  readonly network: HostNetwork
  readonly supervisor: AgentSupervisor
  /** Live processes that count for the cluster. */
  readonly killCensus: () => boolean
  /** Those that live hang until the returned function is called, and with `isLasting` those that start meanwhile. */
  readonly hangCensus: (isLasting: boolean) => () => void
  /** As its kubelet starts again: it registers the Node if that is gone. */
  restartKubelet(): void
  /** The cluster may have forgotten what it knew of this host. */
  restore(): void
  /** Its kubelet and its agents are another Node's from now on. */
  rename(nodeName: string): void
}

/** Each host restarts it where a package asks for that. */
export const serviceName = 'web.service'

/** As the agent's settings have it. */
export const requiredTaint = { key: 'skyhook.nvidia.com', value: 'runtime-required', effect: 'NoSchedule' } as const

export const controlPlaneLabel = 'node-role.kubernetes.io/control-plane'

/** Starts it: it boots, registers, and runs an agent. */
export function startFleetHost(
  plan: NodePlan,
  ports: {
    readonly clock: Clock
    readonly server: SimulatedApiServer
    readonly seed: number
    /** Of Skyhooks that name none. */
    readonly defaultBudget?: Budget | undefined
    readonly tell: (event: Fact) => void
    /** The program is broken: an agent ended by itself, or never pauses. */
    readonly onBroken: (rule: string, message: string) => void
  },
): FleetHost {
  const { name, isControlPlane, joinsAtMs = 0, isTainted = false, startsWithOlderAgent = false } = plan
  const { clock, server, seed, defaultBudget, tell, onBroken } = ports
  const chance = createChance(seed, 1)
  const conditions = createConditions()
  const current = (): HostConditions => conditions.current()
  let nodeName = name.replace('host', 'node')
  const host = createSimulatedHost({
    name,
    clock,
    seed,
    registry,
    runStep: (step) => ({
      durationMs: current().stepMs * (0.2 + 1.6 * chance.random.number()),
      exitCode: current().isFailing(step) ? 1 : 0,
      stopMs: chance.integer(0, 2_000),
    }),
    fetchFate: (image) => fetchFateOf(current().fetch, image),
    shutdownMs: () => current().shutdownMs,
    bootMs: () => current().bootMs,
  })
  if (joinsAtMs > 0) host.cutPower({ downMs: joinsAtMs })
  host.systemd.addService(serviceName, { restart: () => current().restart })
  const truth = followTruth(host, (step) => isLastStep(server, step))
  host.observe((event) => tell({ kind: 'host', host: name, event }))

  const watchEffects = createBusyLoopDetector((effect, count) =>
    onBroken('no-endless-loop', `${name} repeats ${count} effects in a second, the last one ${effect}`),
  )
  host.observe(watchEffects)

  const network = createHostNetwork(name, server, {
    clock,
    createRandom: host.fork,
    onEndlessLoop: (call) => onBroken('no-endless-loop', `${name} repeats without a pause: ${call}`),
  })
  const censuses = followCensuses((listener) => host.observe(listener))
  const liveCensuses = () => [...host.processes()].filter(({ id }) => censuses.has(id))
  const connectKubelet = (): Kubelet =>
    startKubelet(host, {
      clock,
      transport: network.connectKubelet(),
      nodeName,
      labels: { pool: 'a', ...(isControlPlane && { [controlPlaneLabel]: '' }) },
      taints: isTainted ? [requiredTaint] : [],
      readyMs: () => current().readyMs,
    })
  let kubelet = connectKubelet()
  const pod = startAgentPod(server, { clock, host: name, nodeName: () => nodeName, isCut: network.isCut })
  const staticPod = isControlPlane
    ? startStaticPod(server, { clock, host, nodeName: () => nodeName, isCut: network.isCut })
    : undefined
  const createPods = (): void => {
    pod.create()
    staticPod?.create()
  }
  const supervisor = superviseAgents(host, {
    clock,
    nodeName: () => nodeName,
    connectApi: network.connect,
    firstVersion: startsWithOlderAgent ? 'older' : 'current',
    defaultBudget,
    onLog: (line) => tell({ kind: 'log', host: name, line }),
    onDied: (error) => onBroken('agent-lives', `the agent of ${name} died: ${textOf(error)}`),
    onRunning: (isRunning) => pod.setReady(isRunning),
  })

  let hasJoined = joinsAtMs === 0
  if (hasJoined) createPods()
  host.observe(({ event }) => {
    if (event !== 'booted' || hasJoined) return
    hasJoined = true
    createPods()
  })

  return {
    name,
    hasJoined: () => hasJoined,
    isHalted: () => isHalted(host, supervisor.version()),
    nodeName: () => nodeName,
    isControlPlane,
    host,
    truth,
    conditions,
    network,
    supervisor,
    agents: supervisor.agents,
    defaultBudgets: supervisor.defaultBudgets,
    killCensus() {
      const live = liveCensuses()
      for (const process of live) process.kill()
      return live.length > 0
    },
    hangCensus(isLasting) {
      const endings = liveCensuses().map((process) => process.hang())
      const stop = host.observe(({ event }) => {
        if (isLasting && event === 'agentStarted')
          for (const process of liveCensuses()) if (!process.isHung()) endings.push(process.hang())
      })
      return () => {
        stop()
        for (const end of endings) end()
      }
    },
    restartKubelet: () => kubelet.restart(),
    restore() {
      kubelet.restart()
      if (hasJoined) createPods()
    },
    rename(next) {
      kubelet.stop()
      nodeName = next
      kubelet = connectKubelet()
      if (hasJoined) createPods()
    },
  }
}

/** Images of other packages than the one whose fetch is changed come as usual. */
function fetchFateOf(fetch: HostConditions['fetch'], { files }: SimulatedImage): FetchFate {
  const { package_name: name, package_version: version } = JSON.parse(files['config.json'] ?? '{}') as PackageNames
  return fetch.of === undefined || fetch.of === `${name}|${version}` ? fetch : { durationMs: fetch.durationMs }
}
type PackageNames = { readonly package_name?: string; readonly package_version?: string }

/** Whether the journal on its disk is of a newer version than the agent that runs can read. */
function isHalted({ disk }: SimulatedHost, version: AgentVersion | undefined): boolean {
  if (version === undefined) return false
  const { node } = disk.locate(journalPath)
  return node?.kind === 'file' && versionIn(node.data) > journalVersionOf(version)
}

/** It stands first in the document. */
const versionIn = perObject((document: Buffer): number =>
  Number(/^\{"v":(\d+)/.exec(document.toString('latin1', 0, 20))?.[1] ?? 0),
)

function followCensuses(observe: (listener: (event: HostEvent) => void) => unknown): ReadonlySet<number> {
  const live = new Set<number>()
  observe((one) => {
    if (one.event === 'agentStarted' && one.kind === 'census') live.add(one.process)
    else if (one.event === 'agentEnded') live.delete(one.process)
  })
  return live
}

const textOf = (error: unknown): string => (error instanceof Error ? (error.stack ?? error.message) : String(error))
