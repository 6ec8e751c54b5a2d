import type { BusConnection } from '../host/dbus/reconnecting.ts'
import { createUnits, type Units } from '../host/systemd/units.ts'
import { startEventRecorder } from '../kube/events.ts'
import type { ReflectorFact } from '../kube/reflector.ts'
import { findCordonManager } from '../kube/cordon-writer.ts'
import type { TimedReason } from '../stages/model/plan.ts'
import type { ReasonName } from '../schemas/catalogue/reasons.ts'
import type { Random } from '../schemas/clock.ts'
import { countRequests } from '../stages/package/run-requests.ts'
import { detectSingleNode } from './executors/count-nodes.ts'
import { evictPod } from './executors/evictions.ts'
import { createInterrupter } from './executors/interrupts.ts'
import { createPreparer } from './executors/prepare.ts'
import { publish } from './executors/publish.ts'
import { createStepRunner } from './executors/steps/run.ts'
import type { Executors } from './executors/execute.ts'
import { errorField } from './telemetry/log.ts'
import { campaignForCensus, type CensusCampaign } from './census/term.ts'
import { createMetrics, type Metrics } from './telemetry/metrics.ts'
import { followNode, type NodeSource } from './state/node.ts'
import { followPackageStatuses } from './state/package-statuses.ts'
import { createPodSource, type PodSource } from './state/pods.ts'
import { createReferences } from './state/references.ts'
import type { Settings } from './settings/settings.ts'
import { followSkyhooks, type SkyhookSource } from './state/skyhooks.ts'
import { createSlotManager } from './slots/slot-manager.ts'
import { createSlotWatch, type SlotWatch } from './slots/slot-watch.ts'
import type { State } from './state/state.ts'
import type { Platform } from './platform/platform.ts'
import { createEventReporter, type EventReporter } from './telemetry/reporter.ts'
import { version } from './settings/version.ts'

/** Up to this many nodes one edit may be read by all agents at once. */
const maxNodesWithoutReadDelay = 100
const maxReadDelayMs = 5_000

/** The parts of a running agent, connected. */
export type AgentComponents = {
  readonly units: Units
  readonly connection: BusConnection
  readonly nodes: NodeSource
  readonly skyhooks: SkyhookSource
  readonly pods: PodSource
  readonly slotWatch: SlotWatch
  readonly executors: Executors
  readonly metrics: Metrics
  /** Once the own Node is known: its uid goes into Events. */
  createEventReporter(): EventReporter
  setReasons(reasons: ReadonlyMap<string, TimedReason>): void
  /** Begins the candidacy for the census; resolves when it is over and the Lease given back. */
  campaignForCensus(): Promise<void>
  /** Whom the sources wake. */
  onWake(wake: () => void): void
  close(): void
}

export type WireOptions = {
  readonly settings: Settings
  readonly platform: Platform
  readonly state: State
  readonly signal: AbortSignal
}

export function wire({ settings, platform, state, signal }: WireOptions): AgentComponents {
  const { clock, random, log, root } = platform
  let wakeListener = (): void => undefined
  let reasons: ReadonlyMap<string, TimedReason> = new Map()
  const wake = (): void => wakeListener()

  const metrics = createMetrics({
    version,
    slots: () => slots.kinds(),
    packageRequests: () => countRequests(state.statuses, state.bootId),
    isCensusLeader: () => census?.isLeader() === true,
    reasons: () => oldestReasons(reasons, clock.wallMs()),
    reflectorAges: () =>
      new Map([
        ['nodes', nodes.ageMs() / 1000],
        ['skyhooks', skyhooks.ageMs() / 1000],
      ]),
  })
  const transport = platform.connectApi(({ verb, code }) => metrics.apiRequest(verb, code))
  const recorder = startEventRecorder(transport, { component: 'skyhookd', host: settings.nodeName, signal })

  const connection = platform.connectBus()
  const units = createUnits(connection)
  connection.onState((bus) => {
    state.host =
      bus.state === 'connected'
        ? { state: 'usable' }
        : { state: 'unusable', reason: 'HostUnreachable', message: `the host's system bus does not answer: ${bus.why}` }
    wake()
  })
  connection.withBus(async () => undefined, { signal }).catch(() => undefined) // connects now; its state says how that went

  const onFact =
    (kind: string) =>
    (fact: ReflectorFact): void => {
      if (fact.fact === 'failed')
        log.warn(
          { kind, during: fact.during, retryInMs: fact.retryInMs, ...errorField(fact.error) },
          'watch interrupted',
        )
      else log.debug({ kind, ...fact }, 'watch')
    }
  const nodes = followNode(transport, settings.nodeName, {
    onNode: (node) => {
      state.node = node
      wake()
    },
    onFact: onFact('nodes'),
    signal,
  })
  const skyhooks = followSkyhooks(transport, {
    readDelayMs: () => readDelayMs(settings.estimatedNodeCount, random),
    onSkyhooks: (known) => {
      state.skyhooks = known
      wake()
    },
    onFact: onFact('skyhooks'),
    onReadFailed: (skyhook, error) => log.warn({ skyhook, ...errorField(error) }, 'a Skyhook could not be read'),
    signal,
  })
  const pods = createPodSource(transport, settings.nodeName, state, wake, signal)
  const slotWatch = createSlotWatch({ transport, namespace: settings.namespace, state, wake, signal })
  const slots = createSlotManager({
    transport,
    leases: { transport, namespace: settings.namespace },
    state,
    node: () => ({ name: settings.nodeName, uid: state.node?.metadata.uid ?? '', bootId: state.bootId }),
    log,
    signal,
    onReleased: (phase, seconds) => metrics.slotHeld(phase, seconds),
    onAcquired: (seconds) => metrics.slotWaited(seconds),
  })
  let census: CensusCampaign | undefined
  const references = createReferences(transport, settings.namespace)
  const preparer = createPreparer({ platform, settings, state, references, signal })
  const steps = createStepRunner({
    root,
    units,
    connection,
    state,
    settings,
    references,
    contentOf: preparer.contentOf,
    metrics,
    log,
    wake,
  })
  const statuses = followPackageStatuses(root, settings, state, log, wake)
  const interrupter = createInterrupter({
    root,
    units,
    connection,
    state,
    settings,
    pods,
    slots,
    clock: platform.clock,
    log,
    signal,
  })

  return {
    units,
    connection,
    nodes,
    skyhooks,
    pods,
    slotWatch,
    metrics,
    executors: {
      preparer,
      slots,
      steps,
      interrupter,
      statuses,
      evict: (pod, isForced) =>
        evictPod({ transport, state, log, signal, mayDelete: settings.drain.allowDelete }, pod, isForced),
      detectSingleNode: () => detectSingleNode(transport, state, signal),
      publish: (patch, computedFrom) => publish(transport, nodes, state, patch, computedFrom, signal),
    },
    createEventReporter: () => {
      const node = { apiVersion: 'v1', kind: 'Node', name: settings.nodeName, uid: state.node?.metadata.uid ?? '' }
      const findCordoner = (): Promise<string | undefined> =>
        findCordonManager(transport, `/api/v1/nodes/${settings.nodeName}`, 'skyhookd', signal).catch(() => undefined)
      return createEventReporter(log, recorder, node, findCordoner)
    },
    setReasons: (newReasons) => {
      reasons = newReasons
    },
    campaignForCensus: () => {
      census = campaignForCensus({
        platform,
        leases: { transport, namespace: settings.namespace },
        settings,
        metrics,
        signal,
      })
      return census.ended
    },
    onWake: (onWakeRequested) => {
      wakeListener = onWakeRequested
    },
    close() {
      statuses.close()
      steps.close()
      connection.close()
      transport.close()
    },
  }
}

/**
 * Spreads the reads of a fleet after one edit (design §5): nothing for small ones, else up to 1 ms per node and 5 s in
 * all.
 */
function readDelayMs(nodes: number, random: Random): number {
  return nodes <= maxNodesWithoutReadDelay ? 0 : random.number() * Math.min(maxReadDelayMs, nodes)
}

function oldestReasons(reasons: ReadonlyMap<string, TimedReason>, nowMs: number): ReadonlyMap<ReasonName, number> {
  const ages = new Map<ReasonName, number>()
  for (const { reason, sinceMs } of reasons.values())
    ages.set(reason, Math.max(ages.get(reason) ?? 0, (nowMs - sinceMs) / 1000))
  return ages
}
