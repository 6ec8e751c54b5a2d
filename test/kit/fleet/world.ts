/** A simulated fleet: hosts with agents, pods and an API server with controllers, all on one virtual clock. */
import { policiesPath, skyhooksPath, skyhookTypeMeta } from '../../../src/schemas/api.ts'
import { createVirtualClock, type VirtualClock } from '../virtual-clock.ts'
import { readSchemas } from '../api-server/definitions.ts'
import { startDisruptionController } from '../api-server/disruption-controller.ts'
import { startGarbageCollector } from '../api-server/garbage-collector.ts'
import { createSimulatedApiServer } from '../api-server/server.ts'
import type { Backup } from '../api-server/store.ts'
import { type Chance, createChance } from './chance.ts'
import { type ClusterWriter, createClusterWriter } from './cluster-writer.ts'
import { type FleetHost, startFleetHost } from './fleet-host.ts'
import type { Phase } from './phase.ts'
import { trackPhase } from './phase-tracker.ts'
import type { Plan, PlannedAction, SkyhookPlan } from './plan.ts'
import { skyhooksAtMs } from './plan-time.ts'
import { startDaemonSet } from './daemon-set.ts'
import { startWorkload, type Workload } from './workload.ts'
import { type HostView, simulated, type WorldView } from './world-view.ts'
import type { Fact } from '../../promises/facts.ts'

/** Faults that only replace the agent. */
const otherVersions: Readonly<Record<string, true>> = { 'agent-older': true, 'agent-newer': true }

export type WorldHost = FleetHost & HostView

export type World = Omit<WorldView, 'clock' | 'hosts'> & {
  readonly clock: VirtualClock
  readonly hosts: ReadonlyMap<string, WorldHost>
  readonly chance: Chance
  /** Requests of an administrator. */
  readonly admin: ClusterWriter
  readonly workload: Workload
  /** Faults and edits that have begun and not ended. */
  readonly active: Set<PlannedAction>
  /** The youngest copy of the store that is at least so old. */
  backupFrom(ageMs: number): Backup | undefined
  createSkyhook(plan: SkyhookPlan): void
  readonly tell: (event: Fact) => void
}

const schemas = readSchemas()
const backupIntervalMs = 10_000
const startWallMs = 1_700_000_000_000

/**
 * Starts everything of the plan but its actions. `onEvent` hears all that happens, `onBroken` of a program that is
 * broken whatever the rules say.
 */
export function startWorld(
  plan: Plan,
  ports: {
    readonly onEvent: (event: Fact, atMs: number) => void
    readonly onBroken: (rule: string, message: string) => void
    readonly faultsEndedAtMs: () => number | undefined
  },
): World {
  const { seed, nodes, skyhooks } = plan
  const clock = createVirtualClock(startWallMs, { settleTurns: 0 })
  const chance = createChance(seed, 2)
  const server = createSimulatedApiServer({ clock, random: createChance(seed, 3).random, schemas })
  const tell = (event: Fact): void => ports.onEvent(event, clock.monotonicMs())
  const active = new Set<PlannedAction>()
  const backups: { readonly atMs: number; readonly backup: Backup }[] = []

  for (const name of ['skyhook', 'apps'])
    server.handle({
      client: 'admin',
      manager: 'kubectl',
      method: 'POST',
      path: '/api/v1/namespaces',
      query: {},
      body: { metadata: { name } },
    })
  server.observe({
    committed: (change, client) => tell({ kind: 'commit', change, client }),
    answered(entry) {
      server.audit.length = 0 // nobody reads it here
      tell({ kind: 'answered', entry })
    },
    restored() {
      tell({ kind: 'restored' })
      clock.startTimer(0, () => {
        for (const host of hosts.values()) host.restore()
      })
    },
  })
  startGarbageCollector(server, { clock, random: createChance(seed, 4).random })
  startDisruptionController(server, { clock })

  const hosts = new Map<string, WorldHost>()
  for (const [index, node] of nodes.entries()) {
    const host = startFleetHost(node, {
      clock,
      server,
      seed: seed * 64 + index,
      defaultBudget: plan.defaultBudget,
      tell,
      onBroken: ports.onBroken,
    })
    const isHit = ({ node: target, detail }: PlannedAction): boolean =>
      target === undefined || target === node.name || detail?.['isEverywhere'] === true
    hosts.set(node.name, {
      ...host,
      phase: trackPhase(host, server),
      reachesApi: () => !host.network.isCut() && !server.isAway(),
      isFaulty: () => [...active].some(isHit),
      isHindered: () => [...active].some((action) => isHit(action) && !(action.kind in otherVersions)),
    })
  }
  const hasGuard = nodes.some(({ pods }) => pods.some(({ isGuarded }) => isGuarded))
  if (plan.hasDaemonSet === true) startDaemonSet(server, { clock, chance: createChance(seed, 6), hosts })
  const workload = startWorkload(server, { clock, chance: createChance(seed, 5), hasGuard })
  clock.startTimer(4_000, () => {
    for (const { name, pods } of nodes) for (const pod of pods) workload.place(pod, hosts.get(name)?.nodeName() ?? '')
  })

  const admin = createClusterWriter(server, { clock, client: 'admin' })
  const createSkyhook = ({ name, spec }: SkyhookPlan): void =>
    admin.send('POST', skyhooksPath, { ...skyhookTypeMeta, metadata: { name }, spec })
  for (const { name, spec, createdAtMs = skyhooksAtMs } of plan.policies ?? [])
    clock.startTimer(createdAtMs, () => admin.send('POST', policiesPath, { metadata: { name }, spec }))
  clock.startTimer(skyhooksAtMs, () => skyhooks.forEach(createSkyhook))

  const backUp = (): void => {
    backups.push({ atMs: clock.monotonicMs(), backup: server.backUp() })
    clock.startTimer(backupIntervalMs, backUp)
  }
  if (plan.actions.some(({ kind }) => kind === 'etcd-restored')) backUp()

  return {
    ...simulated,
    clock,
    server,
    hosts,
    plan,
    faultsEndedAtMs: ports.faultsEndedAtMs,
    chance,
    admin,
    workload,
    active,
    backupFrom: (ageMs) => backups.findLast(({ atMs }) => atMs <= clock.monotonicMs() - ageMs)?.backup,
    createSkyhook,
    tell,
  }
}

export const phaseOf = (world: World, host: string | undefined): Phase | undefined =>
  host === undefined ? undefined : world.hosts.get(host)?.phase()
