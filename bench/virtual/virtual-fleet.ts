/**
 * Many whole agents on simulated hosts, one simulated API server, and virtual time: more of them than real ones fit on
 * a machine. Requests take as long as a real API server took.
 */
import { statusKey } from '../../src/schemas/annotations.ts'
import { censusLeaseName } from '../../src/lease/names.ts'
import { defaultTiming } from '../../src/lease/election-rule.ts'
import { policiesPath, skyhooksPath, skyhookTypeMeta } from '../../src/schemas/api.ts'
import { createClient, type SimClient } from '../../test/kit/api-server/client.ts'
import { startGarbageCollector } from '../../test/kit/api-server/garbage-collector.ts'
import { createSimulatedApiServer } from '../../test/kit/api-server/server.ts'
import { type SimulatedAgent, startSimulatedAgent } from '../../test/kit/host/agent.ts'
import { followTruth } from '../../test/kit/host/host-truth.ts'
import { packageImage } from '../../test/kit/host/package-image.ts'
import { createSimulatedHost } from '../../test/kit/host/simulated-host.ts'
import { settingsOf } from '../../test/kit/objects/sample-settings.ts'
import { createSeededRandom, createVirtualClock } from '../../test/kit/virtual-clock.ts'
import {
  type FleetPlan,
  lastModeOf,
  policyName,
  policyOf,
  poolLabel,
  service,
  specOf,
  stagesOf,
} from '../fleet/plan.ts'
import { registerNode } from '../fleet/register-node.ts'

export type VirtualPlan = Pick<FleetPlan, 'nodes' | 'budget' | 'strategy'> & {
  /** How long each step of the package takes. */
  readonly stepMs: number
  /** From a request to its answer, and half of it for an event of a watch. */
  readonly latencyMs: number
  readonly seed: number
}

export type VirtualFleet = Awaited<ReturnType<typeof startVirtualFleet>>

/** The chart's default; agents count themselves later. */
const estimatedNodeCount = 100
/** The node controller answers a cordon this fast. */
const taintMs = 20
const skyhook = 's'
/** What a measurement on real time has beside. */
const restOfPlan = { skyhooks: 1, stepMs: 0, workers: 1, idleSeconds: 0, restart: false }

/** Registers the nodes and starts their agents; resolves two minutes later. */
export async function startVirtualFleet(plan: VirtualPlan) {
  const { nodes, budget, strategy, latencyMs, seed } = plan
  const interrupt = budget === 'none' ? 'none' : 'service'
  const clock = createVirtualClock(undefined, { settleTurns: 0 })
  const random = createSeededRandom(seed)
  const server = createSimulatedApiServer({ clock, random, historyLength: 50_000 })
  server.faults.rules.push({ name: 'network', fault: { kind: 'slow-watch', byMs: latencyMs / 2 } })
  startGarbageCollector(server, { clock, random: createSeededRandom(seed) })
  const admin = createClient(server, { name: 'admin', clock, random })
  await admin.json('POST', '/api/v1/namespaces', { body: { metadata: { name: 'skyhook' } } })

  const requests = new Map<string, number>()
  const perSecond = new Map<number, number>()
  const completedAtMs = new Map<string, number>()
  let [out, mostOut, slots, mostSlots] = [0, 0, 0, 0]
  server.observe({
    answered({ client, verb, resource, name }) {
      if (client === 'admin') return
      const what = `${verb} ${name === censusLeaseName ? 'election' : resource}`
      requests.set(what, (requests.get(what) ?? 0) + 1)
      const second = Math.floor(clock.monotonicMs() / 1000)
      perSecond.set(second, (perSecond.get(second) ?? 0) + 1)
      server.audit.length = 0
    },
    committed({ type, resource, version }) {
      const { name, annotations = {} } = version.object.metadata
      if (resource.plural === 'leases' && name.includes('.slot-')) {
        if (type !== 'MODIFIED') slots += type === 'ADDED' ? 1 : -1
        mostSlots = Math.max(mostSlots, slots)
      }
      if (resource.plural !== 'nodes') return
      const isComplete = (annotations as Record<string, string>)[statusKey(skyhook)] === 'complete'
      if (isComplete && !completedAtMs.has(name)) completedAtMs.set(name, clock.monotonicMs())
    },
  })

  const members: {
    readonly start: () => void
    readonly kill: () => void
    readonly client: () => SimClient | undefined
  }[] = []
  let synced = 0

  async function join(index: number): Promise<void> {
    const name = `node-${String(index).padStart(5, '0')}`
    const host = createSimulatedHost({
      name,
      clock,
      seed: seed * 100_000 + index,
      registry: ({ repository, tag = '' }) => packageImage(repository, tag, stagesOf({ interrupt })),
      runStep: () => ({ durationMs: plan.stepMs }),
    })
    host.systemd.addService(service, { restart: () => ({ durationMs: plan.stepMs, result: 'done' }) })
    const lastMode = lastModeOf({ interrupt })
    const truth = followTruth(host, ({ mode }) => mode === lastMode)
    let wasOut = false
    host.observe(() => {
      const isOut = truth.isOut()
      if (isOut !== wasOut) out += isOut ? 1 : -1
      mostOut = Math.max(mostOut, out)
      wasOut = isOut
    })
    const labels = { [poolLabel]: 'all' }
    await registerNode(admin, { name, labels, bootID: host.bootId(), namespace: 'skyhook', wallMs: clock.wallMs() })

    let client: SimClient | undefined
    let agent: SimulatedAgent | undefined
    const start = (): void => {
      agent = startSimulatedAgent(host, {
        settings: { ...settingsOf(name, '/'), estimatedNodeCount },
        connectApi: ({ clock: own, random: ownRandom, onRequest, isCensus }) => {
          const connected = createClient(server, {
            name: isCensus ? `census:${name}` : name,
            clock: own,
            random: ownRandom,
            latencyMs: () => latencyMs,
            rate: { perSecond: 20, burst: 40 },
            onRequest,
          })
          if (!isCensus) client = connected
          return connected
        },
        onLog: ({ message }) => void (message === 'synced' && synced++),
      })
    }
    start()
    members.push({ start, kill: () => agent?.kill(), client: () => client })
  }
  /** As the node controller does. */
  server.observe({
    committed({ type, resource, version, previous }) {
      if (resource.plural !== 'nodes' || type !== 'MODIFIED') return
      const isCordoned = (one: typeof version | undefined): boolean =>
        (one?.object as { readonly spec?: { readonly unschedulable?: boolean } } | undefined)?.spec?.unschedulable ===
        true
      if (isCordoned(version) === isCordoned(previous)) return
      const one = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }
      const body = { spec: { taints: isCordoned(version) ? [one] : null } }
      const path = `/api/v1/nodes/${version.object.metadata.name}`
      const contentType = 'application/merge-patch+json'
      clock.startTimer(taintMs, () => void admin.json('PATCH', path, { body, contentType }).catch(() => undefined))
    },
  })

  for (let index = 0; index < nodes; index++) await join(index)
  await clock.advance(defaultTiming.secondLookDelayMs + 5_000) // each knows how many they are

  return {
    clock,
    server,
    members,
    synced: () => synced,
    complete: () => completedAtMs.size,
    /** Since the last call. */
    takeCounts() {
      const perNode = Object.fromEntries([...requests].map(([what, count]) => [what, count / nodes]))
      const busiest = Math.max(0, ...perSecond.values())
      requests.clear()
      perSecond.clear()
      return { perNode, busiest }
    },
    most: () => ({ slots: mostSlots, out: mostOut }),
    async apply(): Promise<void> {
      const rollout: FleetPlan = { ...restOfPlan, nodes, budget, strategy, interrupt }
      const policy = policyOf(rollout)
      if (policy !== undefined)
        await admin.json('POST', policiesPath, {
          body: { ...skyhookTypeMeta, kind: 'DeploymentPolicy', metadata: { name: policyName }, spec: policy },
        })
      const spec = specOf(rollout, { [poolLabel]: 'all' })
      await admin.json('POST', skyhooksPath, { body: { ...skyhookTypeMeta, metadata: { name: skyhook }, spec } })
    },
    /** Lets time pass until it is so; resolves with the virtual ms that took, and throws after `withinMs`. */
    async until(isSo: () => boolean, withinMs: number): Promise<number> {
      const startedAtMs = clock.monotonicMs()
      while (!isSo()) {
        if (clock.monotonicMs() - startedAtMs > withinMs)
          throw new Error(`after ${withinMs / 1000} s, ${completedAtMs.size} of ${nodes} nodes are complete`)
        await clock.advance(100)
      }
      return clock.monotonicMs() - startedAtMs
    },
    completionTimes: () => [...completedAtMs.values()].toSorted((a, b) => a - b),
    stop(): void {
      for (const { kill } of members) kill()
    },
  }
}
